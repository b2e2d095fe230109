/**
 * Each field of a public chat-completions request, and those of other vendors that clients send, is said to an upstream
 * of another protocol or named in the warning. A value that changes nothing is neither.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import * as toGenerateContent from '../generate-content/requests.ts'
import * as toMessages from '../messages/request.ts'

const FUNCTION = { name: 'f', parameters: { type: 'object', properties: { a: { type: 'string' } } } }
const TOOL = { type: 'function', function: FUNCTION }
const SCHEMA = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }

interface Case {
  /** Says something. */
  readonly value: unknown
  /** Fields that it needs. */
  readonly beside?: object
  /** Ask for what happens without the field. */
  readonly defaults?: readonly unknown[]
}

/** What the gateway itself obeys; `max_tokens` reaches the translation as the call's output limit. */
const OBEYED = ['model', 'messages', 'stream', 'max_tokens', 'max_completion_tokens', 'stream_options']

const PUBLIC: Readonly<Record<string, Case>> = {
  audio: { value: { voice: 'Kore', format: 'pcm16' }, beside: { modalities: ['text', 'audio'] } },
  frequency_penalty: { value: 0.5, defaults: [0] },
  function_call: { value: { name: 'f' }, beside: { functions: [FUNCTION] } },
  functions: { value: [FUNCTION], defaults: [[]] },
  logit_bias: { value: { 50256: -100 }, defaults: [{}] },
  logprobs: { value: true, defaults: [false] },
  metadata: { value: { order: '7' }, defaults: [{}] },
  modalities: { value: ['text', 'audio'], defaults: [['text']] },
  moderation: { value: { model: 'm' } },
  n: { value: 2, defaults: [1] },
  parallel_tool_calls: { value: false, beside: { tools: [TOOL] }, defaults: [true] },
  prediction: { value: { type: 'content', content: 'x' } },
  presence_penalty: { value: 0.5, defaults: [0] },
  prompt_cache_key: { value: 'k', defaults: [''] },
  prompt_cache_options: { value: { mode: 'x' }, defaults: [{}] },
  prompt_cache_retention: { value: '24h', defaults: ['in_memory'] },
  reasoning_effort: { value: 'low', defaults: ['none'] },
  response_format: {
    value: { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA } },
    defaults: [{ type: 'text' }],
  },
  safety_identifier: { value: 'u-1', defaults: [''] },
  seed: { value: 7 },
  service_tier: { value: 'flex', defaults: ['auto', 'default'] },
  stop: { value: ['END'], defaults: [[]] },
  store: { value: true, defaults: [false] },
  temperature: { value: 0.5 },
  tool_choice: { value: 'required', beside: { tools: [TOOL] } },
  tools: { value: [TOOL], defaults: [[]] },
  top_logprobs: { value: 3, beside: { logprobs: true }, defaults: [0] },
  top_p: { value: 0.5 },
  user: { value: 'u-1', defaults: [''] },
  verbosity: { value: 'low', defaults: ['medium'] },
  web_search_options: { value: {} },
}

const OF_OTHER_VENDORS: Readonly<Record<string, Case>> = {
  cache_control: { value: { type: 'ephemeral' } },
  enable_thinking: { value: true, defaults: [false] },
  include_reasoning: { value: false, beside: { reasoning_effort: 'low' }, defaults: [true] },
  min_p: { value: 0.1, defaults: [0] },
  reasoning: {
    value: { effort: 'low' },
    defaults: [{ effort: 'none' }, { enabled: false }, {}, { effort: null }],
  },
  repetition_penalty: { value: 1.2, defaults: [1] },
  thinking: { value: { type: 'enabled', budget_tokens: 2000 }, defaults: [{ type: 'disabled' }, {}] },
  thinking_budget: { value: 2000, beside: { enable_thinking: true } },
  top_a: { value: 0.1, defaults: [0] },
  top_k: { value: 40, defaults: [0, -1] },
  transforms: { value: ['middle-out'] },
  something_new: { value: 1 },
}

t.test('the list has every field that the openai SDK knows', async (t) => {
  const url = new URL(
    '../../../../node_modules/openai/resources/chat/completions/completions.d.ts',
    import.meta.url,
  )
  const [, params] = readFileSync(url, 'utf8').split('export interface ChatCompletionCreateParamsBase {')
  const fields = params!.slice(0, params!.indexOf('\n}')).matchAll(/^ {4}([a-z_]+)\??:/gm)
  const listed = new Set([...OBEYED, ...Object.keys(PUBLIC)])
  t.same(
    [...fields].map(([, name]) => name!).filter((name) => !listed.has(name)),
    [],
  )
})

const UPSTREAMS = {
  messages: (body: object) => toMessages.sent(body),
  'generate-content': (body: object) => toGenerateContent.sent(body),
}

/** Without a value in it. */
const isNothing = (value: unknown): boolean =>
  value === null ||
  (typeof value === 'object' && Object.values(value as object).every((inner) => inner === null))

for (const [upstream, sent] of Object.entries(UPSTREAMS))
  for (const [field, { value, beside = {}, defaults = [] }] of Object.entries({
    ...PUBLIC,
    ...OF_OTHER_VENDORS,
  }))
    t.test(`${upstream}: ${field}`, async (t) => {
      const { dropped: before, ...without } = sent(beside)
      const { dropped, ...wire } = sent({ ...beside, [field]: value })
      const isSaid = JSON.stringify(wire) !== JSON.stringify(without)
      const isNamed = dropped.some((name: string) => name.split(' ')[0] === field)
      t.ok(isSaid || isNamed, `neither said nor named: ${dropped}`)
      for (const nothing of [...defaults, null]) {
        const { dropped: named, ...rest } = sent({ ...beside, [field]: nothing })
        t.same(named, before, `named although ${JSON.stringify(nothing)} says nothing`)
        if (isNothing(nothing)) t.same(rest, without, `${JSON.stringify(nothing)} changes the request`)
      }
    })

t.test('the output limit, by either name, is what the upstream gets', async (t) => {
  t.equal(toMessages.sent({}, { outputLimit: 5 }).max_tokens, 5)
  t.equal(toGenerateContent.sent({}, {}, { outputLimit: 5 }).generationConfig.maxOutputTokens, 5)
})

for (const [upstream, sent] of Object.entries(UPSTREAMS))
  t.test(`${upstream}: what messages say beyond their text is named`, async (t) => {
    const named = (...messages: object[]) => sent({ messages }).dropped
    t.same(named({ role: 'user', content: 'Hi', name: 'Ann' }), ['messages.name'])
    t.same(named(toMessages.HI, { role: 'assistant', content: 'x', audio: { id: 'audio_1' } }), [
      'messages.audio',
    ])
    const image_url = { url: `data:image/png;base64,${toMessages.PNG}`, detail: 'high' }
    t.same(named({ role: 'user', content: [{ type: 'image_url', image_url }] }), ['image_url.detail'])
    t.same(sent({ stream_options: { include_obfuscation: true } }).dropped, [
      'stream_options.include_obfuscation',
    ])
  })

const MARKED = { cache_control: { type: 'ephemeral' } }
const PART = { type: 'text', text: 'x' }
/** Wherever a cache marker may stand. */
const MARKED_REQUESTS: Readonly<Record<string, object>> = {
  request: MARKED,
  message: { messages: [{ role: 'user', content: 'Hi', ...MARKED }] },
  'instruction, by its part': {
    messages: [{ role: 'system', content: [{ ...PART, ...MARKED }] }, toMessages.HI],
  },
  part: { messages: [{ role: 'user', content: [{ ...PART, ...MARKED }, PART] }] },
  'message whose last part is blank': {
    messages: [{ role: 'user', content: [PART, { type: 'text', text: ' ' }], ...MARKED }],
  },
  tool: { tools: [{ ...TOOL, ...MARKED }] },
  function: { tools: [{ type: 'function', function: { ...FUNCTION, ...MARKED } }] },
  search: { tools: [{ type: 'web_search', ...MARKED }] },
}

for (const [place, request] of Object.entries(MARKED_REQUESTS))
  t.test(`the cache marker of a ${place} is said or named`, async (t) => {
    const { dropped, ...wire } = toMessages.sent(request)
    t.match(JSON.stringify(wire), '"cache_control":{"type":"ephemeral"}')
    t.same(dropped, [])
    t.same(toGenerateContent.sent(request).dropped, ['cache_control'])
  })

for (const [upstream, sent] of Object.entries(UPSTREAMS))
  t.test(`${upstream}: a breakpoint of the prompt cache is named`, async (t) => {
    const part = { ...PART, prompt_cache_breakpoint: { mode: 'explicit' } }
    t.same(sent({ messages: [{ role: 'user', content: [part] }] }).dropped, ['prompt_cache_breakpoint'])
  })

t.test('generate-content: a voice of the client’s own is named', async (t) => {
  const audio = { voice: { id: 'voice_1' }, format: 'pcm16' }
  t.same(toGenerateContent.sent({ modalities: ['text', 'audio'], audio }).dropped, ['audio.voice'])
})

t.test('names of fields are bounded in number, and stand in a header', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`field_${index}`, 1]))
  const { dropped } = toMessages.sent({ ...many, 'x: y;\r\n': 1, ü: 1, ['z'.repeat(99)]: 1 })
  t.equal(dropped.length, 103)
  t.same(dropped.slice(-3), ['x:?y???', '?', 'z'.repeat(64)])
  const beyond = Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`field_${index}`, 1]))
  t.equal(toMessages.sent(beyond).dropped.length, 1000)
})
