/** The scan of an event in place finds what JSON.parse finds, wherever the fields stand and however they are written. */
import fc from 'fast-check'
import t from 'tap'
import { scanEvent, scanMessage } from '../../../../src/protocols/messages/scan.ts'
import { everyRun } from '../../../support/every-run.ts'
import { weighed } from '../chat-completions/reference.ts'

const SEED = 5
const RUNS = 600

/** Values that look like what is searched for, where it must not be found. */
const noise = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constant({ type: 'error', text: 'no', usage: { output_tokens: 9 }, delta: { text: 'no' } }),
  fc.constant('","usage":{"output_tokens":9},"type":"message_stop","x":"\\'),
)
const usage = fc.dictionary(fc.constantFrom('input_tokens', 'output_tokens', 'x'), fc.oneof(fc.nat(), noise))
const spoken = fc.dictionary(
  fc.constantFrom('text', 'thinking', 'partial_json', 'type', 'signature', 'citation'),
  fc.oneof(fc.string({ unit: 'grapheme' }), noise),
)
const field = fc.oneof(
  fc.tuple(fc.constantFrom('delta', 'content_block'), spoken),
  fc.tuple(fc.constant('usage'), usage),
  fc.tuple(
    fc.constant('type'),
    fc.constantFrom('message_start', 'message_delta', 'message_stop', 'ping', 'error', 'text'),
  ),
  fc.tuple(fc.constantFrom('index', 'x', 'text', 'content'), noise),
)
const anyEvent = fc.uniqueArray(field, { selector: ([name]) => name, maxLength: 6 })

const printed = (value: object, indent: number, isEscaped: boolean): Buffer => {
  const text = JSON.stringify(value, null, indent)
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return Buffer.from(isEscaped ? text.replaceAll(/[\u0080-\uffff]/g, escaped) : text)
}

/** The halves of no pair stand alone in what JSON can print. */
const spokenIn = (value: unknown): number => {
  const fields = Object.entries(Object(value))
  const said = fields.filter(([name]) => ['text', 'thinking', 'partial_json'].includes(name))
  return said.reduce((sum, [, text]) => sum + (typeof text === 'string' ? weighed(text) : 0), 0)
}

t.test('kind, usage and characters of an event', async (t) => {
  let spoke = 0
  everyRun(
    t,
    { seed: SEED, numRuns: RUNS },
    [anyEvent, fc.integer({ min: 0, max: 2 }), fc.boolean()],
    (fields, indent, isEscaped) => {
      const value = Object.fromEntries(fields)
      const facts = scanEvent(printed(value, indent, isEscaped))
      const kind = value.type === undefined || value.type === 'text' ? 'other' : value.type
      const characters = spokenIn(value.delta) + spokenIn(value.content_block)
      if (characters > 0) spoke++
      return (
        facts.kind === kind &&
        facts.characters === characters &&
        JSON.stringify(facts.usage ?? undefined) === JSON.stringify(value.usage)
      )
    },
  )
  t.ok(spoke > RUNS / 10, `${spoke} events spoke`)
})

t.test('usage of a message that begins; characters of a whole one', async (t) => {
  const message = fc.record({ x: noise, usage, content: fc.array(spoken, { maxLength: 4 }) })
  everyRun(
    t,
    { seed: SEED, numRuns: RUNS },
    [message, fc.integer({ min: 0, max: 2 }), fc.boolean()],
    (value, indent, isEscaped) => {
      const begun = scanEvent(printed({ type: 'message_start', message: value }, indent, isEscaped))
      const whole = scanMessage(printed(value, indent, isEscaped))
      const expected = JSON.stringify(value.usage)
      return (
        JSON.stringify(begun.usage) === expected &&
        JSON.stringify(whole.usage) === expected &&
        whole.characters === value.content.reduce((sum, block) => sum + spokenIn(block), 0)
      )
    },
  )
})
