/** What the tape takes for JSON the runtime's parser does, and the other way round; and both read the same. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { FieldFinder, MAX_SCANNED_BYTES, scanJson, type Tape } from '../../../src/core/json/scanner/tape.ts'
import { everyRun } from '../../support/every-run.ts'

const SEED = 7
const RUNS = 1000
const ALL_DEPTHS = 64

const parsed = (bytes: Buffer): { value: unknown } | null => {
  try {
    return { value: JSON.parse(bytes.toString('utf8')) }
  } catch {
    return null
  }
}

/** The value at a node, fields of one name as the parser has them. */
function read(tape: Tape, bytes: Buffer, node: number): unknown {
  if (tape.isObject(node) || (node === 0 && tape.isObjectText)) {
    const fields: [string, unknown][] = []
    for (let name = node + 1; name < tape.nodeAfter(node); name = tape.nodeAfter(name + 1)) {
      const text = bytes.toString('utf8', tape.startOf(name), tape.endOf(name))
      fields.push([JSON.parse(`"${text}"`), read(tape, bytes, name + 1)])
    }
    return Object.fromEntries(fields)
  }
  // Node 0 stands for an absent field as well: of the whole text only its bytes tell what it is.
  const isRootList = node === 0 && /^\s*\[/.test(bytes.toString('latin1'))
  if (!tape.isList(node) && !isRootList)
    return node === 0 ? JSON.parse(bytes.toString('utf8')) : tape.valueAt(node)
  const items: unknown[] = []
  for (let item = node + 1; item < tape.nodeAfter(node); item = tape.nodeAfter(item))
    items.push(read(tape, bytes, item))
  return items
}

const isJson = (bytes: Buffer, deepest: number): boolean =>
  scanJson(bytes, deepest, null, () => true) ?? false

function agrees(bytes: Buffer): boolean {
  const byParser = parsed(bytes)
  const byTape = scanJson(bytes, ALL_DEPTHS, null, (tape) => ({ value: read(tape, bytes, 0) }))
  if ((byTape === null) !== (byParser === null))
    throw new Error(`${bytes.toString('utf8')}: the tape says ${byTape !== null}`)
  deepStrictEqual(byTape, byParser)
  return byTape !== null
}

const NUMBERS = [
  '0',
  '-0',
  '0.7',
  '-1.25',
  '1e3',
  '1E-7',
  '0.1e+2',
  '256',
  '9007199254740993',
  '123456789012345678901',
]
const MORE_NUMBERS = [
  '0.30000000000000004',
  '1.7976931348623157e308',
  '1e400',
  '5e-324',
  '1234567890.12345',
  '-99999999.9999999',
]

t.test('values of every kind', async (t) => {
  const spaced = fc
    .json({ maxDepth: 6 })
    .map((text) => Buffer.from(JSON.stringify(JSON.parse(text), null, 1)))
  const tight = fc.json({ maxDepth: 6, stringUnit: 'binary' }).map((text) => Buffer.from(text))
  fc.assert(fc.property(fc.oneof(spaced, tight), agrees), { seed: SEED, numRuns: RUNS })
  for (const number of [...NUMBERS, ...MORE_NUMBERS]) t.ok(agrees(Buffer.from(`[${number}]`)), number)
})

t.test('what is nearly JSON', async (t) => {
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"',
    '\\',
    ' ',
    '\n',
    'true',
    'false',
    'null',
    'nul',
    'tru',
    '\u0000',
  ]
  const escapes = [
    '"\\u00e9"',
    '"\\u12"',
    '"\\uD83D"',
    '"\\x"',
    '"\\/\\b\\f\\n\\r\\t\\\\\\""',
    '"é"',
    '"\u007f"',
    '"\t"',
    '\u00a0',
  ]
  const numbers = [
    ...NUMBERS,
    '-',
    '01',
    '1.',
    '.5',
    '1e',
    '1e+',
    '+1',
    '1.e3',
    '0x1',
    '-01',
    'NaN',
    'Infinity',
  ]
  const words = fc.constantFrom(...pieces, ...escapes, ...numbers)
  const joined = fc.array(words, { maxLength: 12 }).map((all) => Buffer.from(all.join('')))
  let taken = 0
  everyRun(t, { seed: SEED, numRuns: 10 * RUNS }, [joined], (bytes) => {
    if (agrees(bytes)) taken++
  })
  t.ok(taken > 100, 'some of them were')
  for (const piece of [...pieces, ...escapes, ...numbers]) agrees(Buffer.from(piece))
})

t.test('a text with one byte changed, cut or put in', async (t) => {
  const text = Buffer.from(
    '{"model":"gpt","messages":[{"role":"user","content":"a \\"quoted\\" \\u00e9 word, and é, and one longer than a word of the machine"}],' +
      '"n":-1.5e-3,"list":[true,false,null,[],{}, {"a":[0]}]}',
  )
  const byte = fc.oneof(
    fc.constantFrom(...Buffer.from('"\\{}[],:0-.eE \n\t')),
    fc.integer({ min: 0, max: 255 }),
  )
  const place = fc.integer({ min: 0, max: text.length - 1 })
  const changed = fc
    .tuple(place, byte, fc.constantFrom(0, 1), fc.constantFrom(0, 1))
    .map(([at, value, left, put]) =>
      Buffer.concat([text.subarray(0, at), Buffer.from(put === 1 ? [value] : []), text.subarray(at + left)]),
    )
  let taken = 0
  everyRun(t, { seed: SEED, numRuns: 10 * RUNS }, [changed], (bytes) => {
    if (agrees(bytes)) taken++
  })
  t.ok(taken > RUNS && taken < 9 * RUNS, 'of both kinds there were many')
})

t.test('strings of every length around the scanner’s step, whatever stood there before', async (t) => {
  for (let length = 0; length < 70; length++) {
    t.ok(agrees(Buffer.from(JSON.stringify({ text: 'x'.repeat(200) }))))
    t.ok(agrees(Buffer.from(`["${'x'.repeat(length)}"]`)))
    t.notOk(agrees(Buffer.from(`["${'x'.repeat(length)}`)), 'cut')
    t.notOk(agrees(Buffer.from(`["${'x'.repeat(length)}\\`)), 'cut in an escape')
  }
})

t.test('what is deeper than was asked for is checked all the same', async (t) => {
  const nodes = (text: string) =>
    scanJson(Buffer.from(text), 1, null, (tape) => [tape.nodeAfter(0), tape.nodeAfter(2)])
  t.same(nodes('{"a":{"b":{"c":[1]}},"d":1}'), [5, 3], 'two fields, each a name and a value')
  t.equal(nodes('{"a":{"b":{"c":[1}}},"d":1}'), null)
})

t.test('too long, too deep or too much is left to the parser', async (t) => {
  const deep = (depth: number) => Buffer.from('['.repeat(depth) + ']'.repeat(depth))
  t.ok(isJson(deep(64), 1))
  t.notOk(isJson(deep(65), 1))
  t.notOk(isJson(deep(1_000_000), 1))
  const many = (count: number) => Buffer.from(JSON.stringify(Array(count).fill(0)))
  t.ok(isJson(many(65_000), 1))
  t.notOk(isJson(many(66_000), 1))
  t.ok(isJson(many(1_000_000), 0), 'what is not noted has room')
  const long = (bytes: number) => Buffer.from(`"${'x'.repeat(bytes - 2)}"`)
  t.ok(isJson(long(MAX_SCANNED_BYTES), 1))
  t.notOk(isJson(long(MAX_SCANNED_BYTES + 1), 1))
  t.ok(agrees(Buffer.from('{"a":1}')), 'and the next one is read as ever')
})

t.test('fields are found by their names; an object that can be read in two ways is reported', async (t) => {
  const finder = new FieldFinder(['a', 'bc'])
  const { a, bc } = finder.place
  const found = (text: string) =>
    scanJson(Buffer.from(text), 3, null, (tape) =>
      tape.find(finder, 0) ? { a: tape.foundValue(a), bc: tape.foundValue(bc) } : null,
    )
  const find = (text: string) => found(text) !== null
  t.same(found('{"x":{"a":1},"bc":[2],"b":3}'), { a: undefined, bc: [2] })
  t.same(found('{"a":null}'), { a: null, bc: undefined })
  t.notOk(find('{"a":1,"a":1}'), 'twice')
  t.notOk(find('{"x":1,"y":2,"x":1}'), 'twice, and not looked for')
  t.notOk(find('{"\\u0061":1}'), 'escaped')
  t.notOk(find('[1]'), 'no object')
  const fields = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}`, i])))
  t.ok(find(fields(32)))
  t.notOk(find(fields(33)), 'too many to tell')
})

t.test('one text is read at a time', async (t) => {
  const scan = (read: (tape: Tape) => unknown) => scanJson(Buffer.from('[1]'), 1, null, read)
  t.throws(() => scan(() => scan(() => 1)), /while another one is read/)
  t.throws(() => scan(() => JSON.parse('')), SyntaxError)
  t.equal(
    scan((tape) => tape.valueAt(1)),
    1,
    'a reader that threw blocks no later one',
  )
})
