/** The one-pass scan against JSON.parse: on any JSON it finds the same facts, on garbage it ends without an error. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { hasChoiceContent } from '../../../../src/protocols/answer/content.ts'
import { countsOf } from '../../../../src/protocols/answer/reported-usage.ts'
import {
  countCharacters,
  newChunkFacts,
  scanChunk,
  scanTopLevel,
} from '../../../../src/protocols/chat-completions/scan.ts'
import { WholeResponse } from '../../../../src/protocols/chat-completions/whole.ts'
import { readUsage } from '../../../../src/protocols/usage/chat-completions.ts'
import { ANY_CHARACTER } from '../../../support/any-character.ts'
import { everyRun } from '../../../support/every-run.ts'
import { charactersOf, hasFinish, isUsageOnly, STREAMS, saysSomething, weighed } from './reference.ts'

const SEED = 7
const RUNS = 1000

const NAMES = ['content', 'reasoning_content', 'refusal', 'arguments', 'usage', 'choices', 'error']
const name = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...NAMES, 'finish_reason', 'delta', 'text', 'us', 'usages', '') },
  fc.string({ unit: ANY_CHARACTER, maxLength: 6 }).filter((text) => text !== '__proto__'),
)
const text = fc.oneof(
  fc.string({ unit: ANY_CHARACTER, maxLength: 12 }),
  fc.constantFrom(
    '"',
    '\\',
    '\\"',
    '","usage":{',
    '😀',
    '𝄞\u0000',
    '\u2028',
    'stop',
    '[DONE]',
    '{"content":"x"}',
  ),
)
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    text,
    fc.constantFrom(null, true, false, 0, 1, -1.5e-7, 1e21),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(name, tie('json'), { maxKeys: 5, noNullPrototype: true }),
  ),
}))
const object = fc.dictionary(name, json, { maxKeys: 8, noNullPrototype: true })

/** The same JSON as other programs would print it. */
const PRINTERS: ReadonlyArray<(value: unknown) => string> = [
  (value) => JSON.stringify(value),
  (value) => JSON.stringify(value, null, 2),
  (value) => JSON.stringify(value, null, '\t\r\n '),
  (value) => escaped(JSON.stringify(value), (hex) => hex),
  (value) => escaped(JSON.stringify(value), (hex) => hex.toUpperCase()),
  (value) => JSON.stringify(value).replaceAll('/', '\\/'),
]

function escaped(json: string, hexCase: (hex: string) => string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => {
    return `\\u${hexCase(unit.charCodeAt(0).toString(16).padStart(4, '0'))}`
  })
}

t.test('any object, printed in any way, gives the facts that JSON.parse gives', async (t) => {
  const printed = fc.tuple(object, fc.constantFrom(...PRINTERS))
  everyRun(t, { seed: SEED, numRuns: RUNS }, [printed], ([value, print]) => {
    const bytes = Buffer.from(print(value))
    const parsed = JSON.parse(bytes.toString())
    const facts = newChunkFacts()
    scanChunk(bytes, facts)
    const usageText = bytes.toString('utf8', facts.usageStart, facts.usageEnd)
    const hasUsage = facts.usageStart >= 0
    const { usageStart, usageEnd, hasChoices, isError } = facts
    const topLevel = newChunkFacts()
    scanTopLevel(bytes, topLevel)
    deepStrictEqual(topLevel, { ...newChunkFacts(), usageStart, usageEnd, hasChoices, isError })
    const whole = new WholeResponse(bytes)
    const report = readUsage(parsed.usage)
    const isAnswer = !isError && ((report !== null && report.output !== null) || hasChoiceContent(parsed))
    deepStrictEqual([whole.usage, whole.isAnswer], [report && countsOf(report), isAnswer])
    const isObject = (v: unknown) => typeof v === 'object' && v !== null && !Array.isArray(v)
    deepStrictEqual(
      {
        characters: facts.characters,
        usage: hasUsage ? JSON.parse(usageText) : null,
        isUsageOnly: hasUsage && !facts.hasChoices && !facts.isError,
        isError: facts.isError,
        hasFinish: facts.hasFinish,
      },
      {
        characters: charactersOf(parsed),
        usage: isObject(parsed.usage) ? parsed.usage : null,
        isUsageOnly: isUsageOnly(parsed),
        isError: saysSomething(parsed.error),
        hasFinish: hasFinish(parsed),
      },
    )
  })
})

t.test('characters are weighed by script, escaped or not', async (t) => {
  everyRun(
    t,
    { seed: SEED, numRuns: RUNS },
    [fc.string({ unit: ANY_CHARACTER }), fc.constantFrom(...PRINTERS)],
    (value, print) => {
      const bytes = Buffer.from(print(value))
      return countCharacters(bytes, 1, bytes.length - 1) === weighed(value)
    },
  )
  t.equal(countCharacters(Buffer.from('\\ud83d\\ude00\\uD83D\\uDE00\\n\\\\'), 0, 28), 2 * 5.5 + 2)
})

t.test('garbage is scanned to its end without an error', async (t) => {
  const recorded = [...STREAMS.values()]
  const damage = fc.record({
    bytes: fc.constantFrom(...recorded),
    from: fc.nat(),
    length: fc.nat({ max: 2000 }),
    put: fc.uint8Array({ maxLength: 8 }),
    at: fc.nat(),
  })
  const damaged = damage.map(({ bytes, from, length, put, at }) => {
    const start = from % bytes.length
    const part = Buffer.from(bytes.subarray(start, start + length))
    part.set(put.subarray(0, part.length), part.length <= put.length ? 0 : at % (part.length - put.length))
    return part
  })
  const symbols = fc.array(fc.constantFrom(...'{}[]":,\\u0 adeé1', '"usage":', '"content":"', '"error"'))
  const garbage = fc.oneof(
    damaged,
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    symbols.map((parts) => Buffer.from(parts.join(''))),
  )
  everyRun(t, { seed: SEED, numRuns: RUNS }, [garbage], (bytes) => {
    const { characters, usage } = new WholeResponse(bytes)
    return characters >= 0 && characters <= 1.5 * bytes.length && (usage === null || usage.prompt >= 0)
  })
})

t.test('a report that is none is not taken for one', async (t) => {
  const usageOf = (usage: string) => new WholeResponse(Buffer.from(`{"choices":[],"usage":${usage}}`)).usage
  const good = '{"prompt_tokens":5,"completion_tokens":0}'
  t.match(usageOf(good), { prompt: 5, output: 0, cached: 0 })
  const NONE = [
    'null',
    '{}',
    '[]',
    '7',
    '"12"',
    'true',
    '{"prompt_tokens":"5","completion_tokens":"6"}',
    '{"prompt_tokens":1e300,"completion_tokens":1}',
    '{"prompt_tokens":1e999,"completion_tokens":1}',
    '{"prompt_tokens":1,"completion_tokens":-1}',
  ]
  for (const text of NONE) t.equal(usageOf(text), null, text)
})

t.test('a count that a report leaves out stays unknown', async (t) => {
  const usageOf = (usage: string) => {
    const { usage: told, isUsageWhole } = new WholeResponse(Buffer.from(`{"choices":[],"usage":${usage}}`))
    return [told?.prompt, told?.output, isUsageWhole]
  }
  t.same(usageOf('{"prompt_tokens":5}'), [5, 0, false])
  t.same(usageOf('{"completion_tokens":5}'), [0, 5, false])
  t.same(usageOf('{"prompt_tokens":5,"completion_tokens":null}'), [5, 0, false])
  t.same(usageOf('{"prompt_tokens":5,"completion_tokens":0}'), [5, 0, true])
})

t.test('a byte order mark in front changes nothing', async (t) => {
  const usage = { prompt_tokens: 2, completion_tokens: 3 }
  const marked = Buffer.from(`\ufeff${JSON.stringify({ usage, error: { message: 'no' } })}`)
  t.match(new WholeResponse(marked), { usage: { prompt: 2, output: 3 }, isAnswer: false })
})

t.test('parts of the prompt and of the output never exceed the whole', async (t) => {
  const usage = {
    prompt_tokens: 10.7,
    completion_tokens: 3,
    prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 9, audio_tokens: null },
    completion_tokens_details: { reasoning_tokens: 50 },
  }
  const read = new WholeResponse(Buffer.from(JSON.stringify({ usage }))).usage
  t.strictSame(read, { prompt: 10, cached: 8, cacheWrite: 2, output: 3, reasoning: 3, serverToolCalls: 0 })
})
