/** Sampling and reasoning are said as each generation of models takes them. See docs/translation.md, "The request". */
import t from 'tap'
import { call, HI, lookUp, sent, tool } from './request.ts'

const JSON_FORMAT = {
  type: 'json_schema',
  json_schema: { name: 'x', schema: { type: 'object', properties: {} } },
}
const sentTo = (upstreamModel: string, body: object) => sent(body, { outputLimit: 5000 }, { upstreamModel })
const EARLIER = ['claude-opus-4-20250514', 'claude-3-7-sonnet-latest', 'deepseek-chat', 'opus-9']
const OF_ONE_SETTING = [
  'claude-opus-4-1-20250805',
  'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  'claude-opus-4-6',
]
const OF_NO_SETTING = [
  'claude-opus-4-7',
  'claude-opus-4-10',
  'claude-sonnet-5',
  'claude-fable-5-2',
  'anthropic/claude-opus-4.8',
]

t.test('temperature or top_p alone, for models that refuse the two together', async (t) => {
  const both = { temperature: 0.7, top_p: 0.9 }
  for (const model of EARLIER) t.match(sentTo(model, both), { ...both, dropped: { length: 0 } }, model)
  for (const model of OF_ONE_SETTING) {
    t.match(sentTo(model, both), {
      temperature: 0.7,
      top_p: undefined,
      dropped: ['top_p (not together with temperature for this model)'],
    })
    t.match(sentTo(model, { ...both, temperature: 1 }), {
      temperature: undefined,
      top_p: 0.9,
      dropped: { length: 0 },
    })
    t.match(sentTo(model, { top_p: 0.9 }), { top_p: 0.9, dropped: { length: 0 } })
  }
})

t.test('no sampling settings, for models without them', async (t) => {
  for (const model of OF_NO_SETTING) {
    const settings = { temperature: 0.7, top_p: 0.9, top_k: 40 }
    for (const more of [{}, { reasoning_effort: 'low' }]) {
      const { dropped, ...wire } = sentTo(model, { ...settings, ...more })
      for (const name of Object.keys(settings)) t.notOk(name in wire, `${model}: ${name}`)
      t.same(
        dropped,
        Object.keys(settings).map((name) => `${name} (this model has no such setting)`),
      )
    }
    t.same(sentTo(model, { temperature: 1, top_p: 1, top_k: 0 }).dropped, [], 'the defaults')
  }
})

t.test('reasoning by effort, for models that take no budget', async (t) => {
  const shown = { type: 'adaptive', display: 'summarized' }
  for (const model of OF_NO_SETTING) {
    const efforts = { minimal: 'low', low: 'low', medium: 'medium', high: 'high', xhigh: 'xhigh', max: 'max' }
    for (const [reasoning_effort, effort] of Object.entries(efforts))
      t.match(sentTo(model, { reasoning_effort }), {
        thinking: shown,
        output_config: { effort },
        dropped: { length: 0 },
      })
    t.match(sentTo(model, { reasoning: { max_tokens: 2000 } }), {
      thinking: shown,
      output_config: undefined,
      dropped: ['reasoning (this model takes no budget)'],
    })
    t.strictSame(sentTo(model, { thinking: { type: 'adaptive' } }).thinking, shown)
    t.match(sentTo(model, { reasoning_effort: 'low', include_reasoning: false }), {
      thinking: { type: 'adaptive', display: 'omitted' },
    })
    const format = { response_format: JSON_FORMAT, reasoning_effort: 'low' }
    t.match(sentTo(model, format).output_config, { effort: 'low', format: { type: 'json_schema' } })
  }
  for (const model of [...EARLIER, ...OF_ONE_SETTING])
    t.strictSame(sentTo(model, { reasoning_effort: 'max' }).thinking, {
      type: 'enabled',
      budget_tokens: 4096,
    })
})

t.test('reasoning whose depth is left to the model, where it takes that', async (t) => {
  const body = { thinking: { type: 'adaptive' } }
  for (const model of ['claude-opus-4-6', 'claude-sonnet-4-6', 'claude-opus-5', 'deepseek-chat'])
    t.match(sentTo(model, body), { thinking: { type: 'adaptive' }, dropped: { length: 0 } }, model)
  for (const model of ['claude-sonnet-4-5', 'claude-opus-4-1-20250805', 'claude-3-7-sonnet-latest'])
    t.match(
      sentTo(model, body),
      {
        thinking: { type: 'enabled', budget_tokens: 2048 },
        dropped: ['thinking (a budget: this model takes nothing else)'],
      },
      model,
    )
})

t.test('reasoning that the client turns off, where the model does not reason unasked', async (t) => {
  const claude = [...EARLIER, ...OF_ONE_SETTING].filter((model) => model.includes('claude'))
  for (const model of [...claude, 'claude-opus-4-7', 'claude-opus-4-8'])
    t.match(
      sentTo(model, { reasoning_effort: 'none' }),
      { thinking: undefined, output_config: undefined, dropped: { length: 0 } },
      model,
    )
})

t.test('reasoning that the client turns off, where the model reasons by default', async (t) => {
  const off = [
    { reasoning_effort: 'none' },
    { reasoning: { enabled: false } },
    { thinking: { type: 'disabled' } },
    { thinking: { type: 'between_tools' } },
    { enable_thinking: false },
  ]
  const types = {
    'claude-opus-5': 'disabled',
    'claude-sonnet-5': 'disabled',
    'anthropic.claude-sonnet-5-v1:0': 'disabled',
    'claude-haiku-5-5': 'disabled',
    'claude-sonnet-5-5': 'between_tools',
    // Of other vendors' models nothing is known.
    'deepseek-chat': 'disabled',
  }
  for (const [model, type] of Object.entries(types))
    for (const body of off)
      t.match(sentTo(model, body), { thinking: { type }, dropped: { length: 0 } }, model)
})

t.test('reasoning that is turned off leaves the other settings as they are', async (t) => {
  const settings = { temperature: 0.3, top_p: 0.5, top_k: 4 }
  t.match(sentTo('deepseek-chat', { ...settings, reasoning_effort: 'none' }), {
    ...settings,
    thinking: { type: 'disabled' },
    dropped: { length: 0 },
  })
})

t.test('reasoning turned off, where the model always reasons: the least, and named', async (t) => {
  for (const model of ['claude-opus-5-5', 'claude-fable-5', 'claude-mythos-5-1', 'claude-mythos-preview'])
    t.match(
      sentTo(model, { reasoning_effort: 'none' }),
      {
        thinking: undefined,
        output_config: { effort: 'low' },
        dropped: ['reasoning_effort (this model always reasons: it is asked for the least)'],
      },
      model,
    )
})

t.test('reasoning by effort needs no signed thinking in the turn to go on with', async (t) => {
  const messages = [HI, { role: 'assistant', tool_calls: [call('a', 'f', '')] }, tool('a', 'A')]
  for (const model of OF_NO_SETTING)
    t.match(sentTo(model, { messages, reasoning_effort: 'low' }), {
      thinking: { type: 'adaptive' },
      dropped: { length: 0 },
    })
})

t.test('a tool that the client forces, where no tool can be forced', async (t) => {
  const choices = [
    'required',
    lookUp,
    { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [lookUp] } },
  ]
  const named = ['tool_choice (this model cannot be made to call a tool)']
  for (const tool_choice of choices) {
    const body = { tools: [lookUp], tool_choice, reasoning_effort: 'low' }
    for (const model of ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-fable-5-1', 'claude-mythos-5-2'])
      t.match(sentTo(model, body), {
        tool_choice: { type: 'auto' },
        thinking: { type: 'adaptive' },
        dropped: named,
      })
    for (const model of ['claude-opus-5', 'claude-sonnet-5', 'claude-fable-5', 'claude-haiku-5-5'])
      t.match(sentTo(model, body).tool_choice, { type: /^(any|tool)$/ }, model)
  }
  const single = { tools: [lookUp], tool_choice: 'required', parallel_tool_calls: false }
  t.strictSame(sentTo('claude-opus-5-5', single).tool_choice, {
    type: 'auto',
    disable_parallel_tool_use: true,
  })
})
