/** The estimate is exact to the byte on all protocols. See docs/failure-modes.md, "Money", row 3. */
import t from 'tap'
import { type Credits, parseCredits, printCredits } from '../../../schemas/money.ts'
import { borrowService } from '../../support/lend-services.ts'
import type { LentService } from '../../support/service.ts'
import { callConfig, chatRaw, upstreamCalls } from '../support.ts'

const UNIT: Credits = 1n
/** Prices that end at the last decimal of a credit: nothing is lost in a rounding. */
const INPUT_PER_TOKEN = '0.00000003'
const OUTPUT_PER_TOKEN = '0.00000007'

const MODELS = {
  // One word is said, whatever is allowed.
  small_default: { simulate: 'tokens=1', input: '0.03', output: '0.07', extra: 'default_max_tokens: 11' },
  large_default: { simulate: 'tokens=1', input: '0.03', output: '0.07', extra: 'default_max_tokens: 50000' },
  no_default: { simulate: 'tokens=1', input: '0.03', output: '0.07' },
}
type ModelId = keyof typeof MODELS

interface Case {
  readonly what: string
  readonly model: ModelId
  /** The JSON of `messages`, as it is sent. */
  readonly messages: string
  /** More of the body, as it is sent. */
  readonly more?: string
  readonly outputTokens: number
}

const ONE = '[{"role":"user","content":"hi"}]'
const said = (text: string) => `[{"role":"user","content":"${text}"}]`

const CASES: readonly Case[] = [
  {
    what: 'max_tokens counts in full',
    model: 'small_default',
    messages: ONE,
    more: '"max_tokens":7',
    outputTokens: 7,
  },
  {
    what: 'max_tokens above the cap of what is assumed counts in full',
    model: 'small_default',
    messages: ONE,
    more: '"max_tokens": 40000',
    outputTokens: 40_000,
  },
  {
    what: 'max_completion_tokens is its synonym',
    model: 'small_default',
    messages: ONE,
    more: '"max_completion_tokens":7',
    outputTokens: 7,
  },
  {
    what: 'of both, the larger counts',
    model: 'small_default',
    messages: ONE,
    more: '"max_completion_tokens":7,"max_tokens":9',
    outputTokens: 9,
  },
  { what: "omitted: the model's default", model: 'small_default', messages: ONE, outputTokens: 11 },
  {
    what: 'null is omitted',
    model: 'small_default',
    messages: ONE,
    more: '"max_tokens":null',
    outputTokens: 11,
  },
  { what: 'omitted: 32768 of a larger default', model: 'large_default', messages: ONE, outputTokens: 32_768 },
  { what: 'omitted, and no default: 32768', model: 'no_default', messages: ONE, outputTokens: 32_768 },
  {
    what: 'n multiplies the output',
    model: 'small_default',
    messages: ONE,
    more: '"max_tokens":7,"n":3',
    outputTokens: 21,
  },
  {
    what: 'n multiplies the default too',
    model: 'small_default',
    messages: ONE,
    more: '"n":2',
    outputTokens: 22,
  },
  ...['', '1', '12', '123', '1234'].map((text) => ({
    what: `a prompt of ${Buffer.byteLength(said(text))} bytes`,
    model: 'small_default' as const,
    messages: said(text),
    outputTokens: 11,
  })),
  {
    what: 'bytes are counted, not characters',
    model: 'small_default',
    messages: said('Ελλάδα 🙂 河流'),
    outputTokens: 11,
  },
  {
    what: 'escapes count as they were sent',
    model: 'small_default',
    messages: said('\\u03b1\\ud83d\\ude42\\n'),
    outputTokens: 11,
  },
  {
    what: 'white space inside messages counts as it was sent',
    model: 'small_default',
    messages: '[  {\n\t"role" : "user",\r\n "content" : "hi"  }\n ]',
    outputTokens: 11,
  },
]

const estimateCall = ({ messages, outputTokens }: Case): Credits =>
  BigInt(Math.ceil(Buffer.byteLength(messages) / 4)) * parseCredits(INPUT_PER_TOKEN) +
  BigInt(outputTokens) * parseCredits(OUTPUT_PER_TOKEN)

/** White space around `messages` is not part of it. */
const bodyOf = ({ model, messages, more }: Case): string =>
  ` {  "model":"${model}",\n"messages"  : \t${messages}  ${more === undefined ? '' : `,${more}`} }\n`

async function statusWith(service: LentService, credit: Credits, test: Case): Promise<number> {
  const { key } = await service.newKey(printCredits(credit))
  const response = await chatRaw(service, key, bodyOf(test))
  await response.text()
  return response.status
}

t.test('a balance of exactly the estimate is admitted, 1e-8 credit less is not', async (t) => {
  const service = await borrowService(t, callConfig(MODELS))
  for (const test of CASES) {
    const estimate = estimateCall(test)
    t.equal(
      await statusWith(service, estimate, test),
      200,
      `${test.what}: ${printCredits(estimate)} is enough`,
    )
    t.equal(await statusWith(service, estimate - UNIT, test), 402, `${test.what}: a unit less is not`)
  }
  t.equal((await upstreamCalls(service)).length, CASES.length)
})
