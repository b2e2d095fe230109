/**
 * An upstream that resets the connection at any byte ends no process and leaves a correct row.
 * See docs/failure-modes.md, "Streams", row 32.
 */
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { referenceOf, withoutUsageChunks } from '../../src/protocols/chat-completions/reference.ts'
import { borrowService } from '../../support/lend-services.ts'
import { childrenOf } from '../chaos/processes.ts'
import { callConfig, say } from '../support.ts'
import { type Answered, bookedRows, clientFor, each, upstreamAnswer } from './support.ts'

const CONNECTIONS = 32
const MESSAGES = say('one word, please')
const PROMPT_TOKENS = Math.ceil(JSON.stringify(MESSAGES).length / 4)
const CHARACTERS_PER_TOKEN = 4
/** Its characters take one, two and four bytes. */
const TEXT = 'naïve🙂'

const REQUEST = { model: 'm', messages: MESSAGES, max_tokens: 50, simulate: { text: TEXT } }
const STREAM = { ...REQUEST, stream: true }
/** What goes upstream for it, as far as it decides the answer. */
const ON_THE_WIRE = { ...STREAM, model: 'sim-m', stream_options: { include_usage: true } }

/** Billed for a stream of which only this much came, tokens; null where nothing is. */
function expectedUsage(part: string): { input: number; output: number } | null {
  const { usage, characters, isDone, hasFinish } = referenceOf(part)
  if (usage !== null) return { input: usage.prompt!, output: usage.output! }
  if (characters === 0 && !isDone && !hasFinish) return null
  return { input: PROMPT_TOKENS, output: Math.ceil(characters / CHARACTERS_PER_TOKEN) }
}

t.test('an upstream that resets the connection at any byte', async (t) => {
  const service = await borrowService(t, callConfig({ m: {} }))
  const gateways = childrenOf(service.pid(), 'gateway')
  t.equal(gateways.length, 1)

  await t.test('a stream', async (t) => {
    const whole = (await upstreamAnswer(service, ON_THE_WIRE)).body
    // Until then the status waits.
    const firstEventEnd = whole.indexOf('\n\n') + 2
    const { accountId, key } = await service.newKey('1000000')
    const call = clientFor(t, service, key, CONNECTIONS)
    const answers = new Map<number, Answered>()
    const places = Array.from({ length: whole.length }, (_, at) => at)
    await each(places, CONNECTIONS, async (at) => {
      answers.set(at, await call({ ...STREAM, simulate: { text: TEXT, fault: `reset:${at}` } }))
    })
    const rows = await bookedRows(service, accountId, places.length)
    for (const at of places) {
      const { status, body, requestId, isWhole } = answers.get(at)!
      const { cost, input_tokens, output_tokens, ...row } = rows.get(requestId)!
      if (at < firstEventEnd) {
        const { error } = JSON.parse(body.toString())
        const seen = [status, error.code, row.status, row.error_code, cost]
        const refused = [502, 'upstream_unreachable', 'error', 'upstream_unreachable', 0]
        if (!isDeepStrictEqual(seen, refused)) t.strictSame(seen, refused, `at ${at}`)
        continue
      }
      const part = whole.toString('latin1', 0, at)
      const cut = whole.subarray(0, at).toString('utf8')
      // A payload that came whole is read, though the line end behind it did not.
      const asRead = endsInsidePayload(cut) ? cut : `${cut}\n\n`
      const said = referenceOf(asRead)
      const usage = expectedUsage(asRead) ?? { input: 0, output: 0 }
      const isComplete = said.isDone
      const found = { status, isWhole, body: body.toString('latin1'), row: row.status, code: row.error_code }
      const expected = {
        status: 200,
        isWhole: isComplete,
        body: withoutUsage(part),
        row: isComplete ? 'success' : 'error',
        code: isComplete ? null : 'upstream_error',
      }
      const billed = { input_tokens, output_tokens, cost }
      const owed = {
        input_tokens: usage.input,
        output_tokens: usage.output,
        cost: usage.input + 2 * usage.output,
      }
      if (!isDeepStrictEqual([found, billed], [expected, owed]))
        t.strictSame([found, billed], [expected, owed], `at ${at}`)
    }
    t.equal(answers.size, places.length)
  })

  await t.test('an answer in one piece', async (t) => {
    const { stream: _, ...inOnePiece } = ON_THE_WIRE
    const whole = (await upstreamAnswer(service, inOnePiece)).body
    const { accountId, key } = await service.newKey('1000000')
    const call = clientFor(t, service, key, CONNECTIONS)
    const places = Array.from({ length: whole.length }, (_, at) => at)
    await each(places, CONNECTIONS, async (at) => {
      const { status, body } = await call({ ...REQUEST, simulate: { text: TEXT, fault: `reset:${at}` } })
      if (status !== 502 || !body.includes('"upstream_unreachable"')) t.fail(`at ${at}: ${status} ${body}`)
    })
    const rows = await bookedRows(service, accountId, places.length)
    const kinds = new Set(
      [...rows.values()].map(({ status, error_code, cost }) => `${status} ${error_code} ${cost}`),
    )
    t.strictSame(kinds, new Set(['error upstream_unreachable 0']))
  })

  t.strictSame(childrenOf(service.pid(), 'gateway'), gateways, 'the process lives')
  t.equal((await fetch(`${service.baseUrl}/healthz`)).status, 200)
})

/** The last payload is cut off within. */
function endsInsidePayload(text: string): boolean {
  const last = text.slice(text.lastIndexOf('\n\n') + 2).replace(/^data: /, '')
  if (last === '' || last.trimEnd() === '[DONE]') return false
  try {
    JSON.parse(last)
    return false
  } catch {
    return true
  }
}

/** As `withoutUsageChunks`, of a text whose last event may be cut off: once its usage begins, it is withheld. */
function withoutUsage(part: string): string {
  const lastStart = part.lastIndexOf('\n\n') + 2
  const last = part.slice(lastStart)
  const isUsage = /"choices":\[\],.*"usage":\{/.test(last)
  return withoutUsageChunks(part.slice(0, lastStart)) + (isUsage ? '' : last)
}
