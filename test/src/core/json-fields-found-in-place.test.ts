/** Fields of a JSON object are found where they stand, whatever their values hold. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { removal, skipString, skipValue, spliced, topLevelFields } from '../../../src/core/json/fields.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { everyRun } from '../../support/every-run.ts'

const SEED = 11
const RUNS = 1000

const value = fc.jsonValue({ stringUnit: ANY_CHARACTER, maxDepth: 4 })
const name = fc.string({ unit: ANY_CHARACTER, maxLength: 8 }).filter((text) => text !== '__proto__')
const object = fc.dictionary(name, value, { maxKeys: 6, noNullPrototype: true })
const indent = fc.constantFrom(undefined, 2, '\t', ' \r\n')

/** What JSON.parse would find, in whatever order it enumerates. */
const read = (bytes: Buffer) =>
  Object.fromEntries(
    [...topLevelFields(bytes).fields].map(([name, { start, end }]) => [
      name,
      JSON.parse(bytes.toString('utf8', start, end)),
    ]),
  )

t.test('names and values are those that JSON.parse finds', async (t) => {
  everyRun(t, { seed: SEED, numRuns: RUNS }, [object, indent], (fields, gap) => {
    const bytes = Buffer.from(JSON.stringify(fields, null, gap))
    const found = topLevelFields(bytes)
    deepStrictEqual(read(bytes), JSON.parse(bytes.toString()))
    deepStrictEqual(found.open, 0)
  })
})

t.test('a field that is taken out leaves the others, and valid JSON', async (t) => {
  everyRun(t, { seed: SEED, numRuns: RUNS }, [object, fc.nat(), indent], (fields, pick, gap) => {
    const names = Object.keys(fields)
    fc.pre(names.length > 1)
    const gone = names[pick % names.length]!
    const bytes = Buffer.from(JSON.stringify(fields, null, gap))
    const span = topLevelFields(bytes).fields.get(gone)!
    const { [gone]: _, ...rest } = fields
    deepStrictEqual(
      JSON.parse(spliced(bytes, [removal(bytes, span)]).toString()),
      JSON.parse(JSON.stringify(rest)),
    )
  })
})

t.test('splices are put in place in any order; none is the bytes themselves', async (t) => {
  const bytes = Buffer.from('{"a":1,"b":2}')
  t.equal(spliced(bytes, []), bytes)
  const both = [
    { start: 11, end: 12, text: '"ü"' },
    { start: 5, end: 6, text: '' },
    { start: 1, end: 1, text: '"new":0,' },
  ]
  t.equal(spliced(bytes, both).toString(), '{"new":0,"a":,"b":"ü"}')
})

t.test('what is cut off is skipped to its end, never past it', async (t) => {
  for (const text of ['"', '"abc', '"abc\\', '"abc\\"', '{', '{"a":[', '[[[', '"\\u00']) {
    const bytes = Buffer.from(text)
    t.equal(skipValue(bytes, 0), bytes.length, text)
  }
  t.equal(skipString(Buffer.from('"a\\\\"x'), 0), 5)
  t.equal(skipString(Buffer.from('"a\\""x'), 0), 5)
  t.equal(skipValue(Buffer.from('12.5e3 ,'), 0), 6)
  t.equal(skipValue(Buffer.from('{"}":"{\\"]"}]'), 0), 12)
})
