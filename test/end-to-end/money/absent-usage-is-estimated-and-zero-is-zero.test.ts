/**
 * Usage of chat-completions: missing is estimated, zero is zero, and cached tokens are a part of the input.
 * See docs/failure-modes.md, "Money", rows 8 and 12.
 */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { callConfig, estimatedTokens, eventsIn, rowsOf, say, textIn, traceOf } from '../support.ts'

const MESSAGES = say('how much is it')
const PROMPT_TOKENS = Math.ceil(JSON.stringify(MESSAGES).length / 4)
const TEXT = 'Grüße 🙂 from here'
const SAID_TOKENS = estimatedTokens(TEXT)

/** Tokens of `usage` as the upstream reports it: 40 of 100 prompt tokens cached, 6 of 26 output tokens reasoned. */
const REPORTED = 'prompt_tokens=100,cached=40,reasoning=6,tokens=20'
const reported = { input_tokens: 100, cached_tokens: 40, output_tokens: 26, reasoning_tokens: 6 }
/** 60 at 1 credit, 40 at 0.1, 26 at 2. */
const REPORTED_COST = '116'

const MODELS = {
  none: { simulate: `usage=none,text=${encodeURIComponent(TEXT)}` },
  zero: { simulate: `usage=zero,text=${encodeURIComponent(TEXT)}` },
  asked: { simulate: `usage=asked,${REPORTED}` },
  always: { simulate: `usage=always,${REPORTED}` },
  early: { simulate: `usage=early,${REPORTED}` },
  with_finish: { simulate: `usage=with_finish,${REPORTED}` },
}

t.test('usage', async (t) => {
  const config = callConfig(MODELS).replaceAll(
    'output: "2000000"',
    'output: "2000000", cached_input: "100000"',
  )
  const service = await borrowService(t, config)
  const { key } = await service.newKey('1000000')

  const ways = [
    ['streamed', { stream: true }],
    ['streamed with usage asked for', { stream: true, stream_options: { include_usage: true } }],
    ['in one piece', {}],
  ] as const

  /** Calls these models in each way; what the client read, and the row. */
  async function callAll(...models: string[]) {
    const calls: { what: string; text: string; isStream: boolean; trace: string }[] = []
    for (const model of models)
      for (const [way, more] of ways) {
        const response = await service.chat(key, { model, messages: MESSAGES, ...more })
        const text = await response.text()
        calls.push({ what: `${model}, ${way}`, text, isStream: 'stream' in more, trace: traceOf(response) })
      }
    const rows = await rowsOf(
      service,
      key,
      calls.map(({ trace }) => trace),
    )
    return calls.map((call, index) => ({ ...call, row: rows[index]! }))
  }

  await t.test('absent: the prompt and what was said are estimated', async (t) => {
    for (const { what, row } of await callAll('none'))
      t.match(
        row,
        {
          status: 'success',
          input_tokens: PROMPT_TOKENS,
          output_tokens: SAID_TOKENS,
          cached_tokens: 0,
          cost: String(PROMPT_TOKENS + 2 * SAID_TOKENS),
        },
        what,
      )
  })

  await t.test('zero: nothing is billed, though much was said', async (t) => {
    for (const { what, text, isStream, row } of await callAll('zero')) {
      t.match(row, { status: 'success', input_tokens: 0, output_tokens: 0, cost: '0' }, what)
      if (isStream) t.equal(textIn(eventsIn(text)), TEXT)
    }
  })

  await t.test('reported: cached tokens are within the prompt, reasoning within the output', async (t) => {
    for (const { what, row } of await callAll('asked', 'always', 'early', 'with_finish'))
      t.match(row, { status: 'success', ...reported, cost: REPORTED_COST }, what)
  })
})
