/** Reading JSON exactly. */
import { deepStrictEqual, strictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import {
  isRawNumber,
  isTooDeep,
  parseExactJson,
  parseRawJson,
  toCanonicalNumber,
} from '../../../src/core/json/exact.ts'
import {
  FieldFinder,
  KnownNames,
  MAX_JSON_LEVELS,
  scanFields,
  scanItems,
  scanJson,
  type Tape,
} from '../../../src/core/json/scanner/tape.ts'
import { applySplices, removal } from '../../../src/core/json/splice.ts'
import { StringInterner } from '../../../src/core/string-interner.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { everyRun } from '../../support/every-run.ts'

t.test('exact json', async (t) => {
  // Numbers come out of a reading and a printing as they went in, and texts that nest too deep are refused.
  const SEED = 18
  const RUNS = 1000

  const number = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.oneof(fc.constant('0'), fc.bigInt({ min: 1n, max: 10n ** 40n }).map(String)),
      fc.oneof(fc.constant(''), fc.stringMatching(/^\.\d{1,30}$/)),
      fc.oneof(fc.constant(''), fc.stringMatching(/^[eE][+-]?\d{1,4}$/)),
    )
    .map((pieces) => pieces.join(''))

  t.test('a number is printed with the value that was written', async () => {
    everyRun(t, { seed: SEED, numRuns: RUNS }, [number], (text) => {
      const printed = JSON.stringify(parseExactJson(`{"a":[${text}]}`)).slice(6, -2)
      strictEqual(toCanonicalNumber(printed), toCanonicalNumber(text))
      strictEqual(JSON.stringify(parseRawJson(`[${text}]`)), `[${text}]`)
    })
  })

  t.test('numbers that lose nothing are numbers', async (t) => {
    for (const text of [
      '0',
      '-1',
      '1.0',
      '0.7',
      '0.30000000000000004',
      '9007199254740992',
      '1e3',
      '1E+2',
      '5e-324',
    ])
      t.equal(parseExactJson(text), Number(text), text)
    for (const text of ['9007199254740993', '1e400', '-1e400', '1e-400', '0.1234567890123456789'])
      t.ok(isRawNumber(parseExactJson(text)), text)
  })

  t.test('other values are those of the parser', async () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) =>
        deepStrictEqual(parseExactJson(text), JSON.parse(text)),
      ),
      { seed: SEED, numRuns: RUNS },
    )
  })

  t.test('one number has one canonical text', async (t) => {
    for (const text of ['100', '1e2', '1E+2', '100.0', '0.1e3', '10000e-2', '1.00e2'])
      t.equal(toCanonicalNumber(text), '1e2', text)
    t.equal(toCanonicalNumber('-0.0e5'), '0')
    t.not(toCanonicalNumber('9007199254740993'), toCanonicalNumber('9007199254740992'))
    const long = `1${'0'.repeat(2000)}`
    t.equal(toCanonicalNumber(long), long)
  })

  t.test('levels are counted outside strings alone', async (t) => {
    const nested = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`
    t.notOk(isTooDeep(nested(MAX_JSON_LEVELS)))
    t.ok(isTooDeep(nested(MAX_JSON_LEVELS + 2)))
    t.notOk(isTooDeep(JSON.stringify(['\\"[', '['.repeat(3 * MAX_JSON_LEVELS), '\\'])))
    t.notOk(isTooDeep(`[${'[],{},'.repeat(MAX_JSON_LEVELS)}1]`))
    t.throws(() => parseExactJson(nested(200_000)), SyntaxError)
    t.throws(() => parseRawJson(nested(200_000)), SyntaxError)
    t.doesNotThrow(() => parseExactJson(nested(MAX_JSON_LEVELS)))
  })
})

t.test('json fields found in place', async (t) => {
  // Fields of a JSON object are found where they stand, whatever their values hold.
  const SEED = 11
  const RUNS = 1000

  const value = fc.jsonValue({ stringUnit: ANY_CHARACTER, maxDepth: 4 })
  const name = fc.string({ unit: ANY_CHARACTER, maxLength: 8 }).filter((text) => text !== '__proto__')
  const object = fc.dictionary(name, value, { maxKeys: 6, noNullPrototype: true })
  const indent = fc.constantFrom(undefined, 2, '\t', ' \r\n')

  /** What JSON.parse would find, in whatever order it enumerates. */
  const read = (bytes: Buffer) =>
    Object.fromEntries(
      [...scanFields(bytes).fields].map(([name, { start, end }]) => [
        name,
        JSON.parse(bytes.toString('utf8', start, end)),
      ]),
    )

  t.test('names and values are those that JSON.parse finds', async (t) => {
    everyRun(t, { seed: SEED, numRuns: RUNS }, [object, indent], (fields, gap) => {
      const bytes = Buffer.from(JSON.stringify(fields, null, gap))
      const found = scanFields(bytes)
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
      const span = scanFields(bytes).fields.get(gone)!
      const { [gone]: _, ...rest } = fields
      deepStrictEqual(
        JSON.parse(applySplices(bytes, [removal(bytes, span)]).toString()),
        JSON.parse(JSON.stringify(rest)),
      )
    })
  })

  t.test('splices are put in place in any order; none is the bytes themselves', async (t) => {
    const bytes = Buffer.from('{"a":1,"b":2}')
    t.equal(applySplices(bytes, []), bytes)
    const both = [
      { start: 11, end: 12, text: '"ü"' },
      { start: 5, end: 6, text: '' },
      { start: 1, end: 1, text: '"new":0,' },
    ]
    t.equal(applySplices(bytes, both).toString(), '{"new":0,"a":,"b":"ü"}')
  })

  t.test('items are those that JSON.parse finds, as they were written', async (t) => {
    everyRun(t, { seed: SEED, numRuns: RUNS }, [fc.array(value), indent], (items, gap) => {
      const bytes = Buffer.from(JSON.stringify(items, null, gap))
      const found = scanItems(bytes).map((item) => item.toString('utf8'))
      deepStrictEqual(
        found.map((item) => JSON.parse(item)),
        JSON.parse(bytes.toString()),
      )
      for (const item of found) strictEqual(item, item.trim())
    })
  })

  t.test('of two fields of one name the last is found, in any spelling; other texts have none', async (t) => {
    const bytes = Buffer.from('{"a":1,"\\u0061":[2] }')
    t.same(read(bytes), { a: [2] })
    for (const text of ['[{"a":1}]', '"a"', '{"a":1', ''])
      t.equal(scanFields(Buffer.from(text)).fields.size, 0)
    for (const text of ['{"a":1}', '1', '[1', '']) t.same(scanItems(Buffer.from(text)), [])
  })
})

t.test('json tape agrees with the parser', async (t) => {
  // What the tape takes for JSON the runtime's parser does, and the other way round; and both read the same.
  const SEED = 7
  const RUNS = 1000

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
        const text = bytes.toString('utf8', tape.readStart(name), tape.readEnd(name))
        fields.push([JSON.parse(`"${text}"`), read(tape, bytes, name + 1)])
      }
      return Object.fromEntries(fields)
    }
    // Node 0 stands for an absent field as well: of the whole text only its bytes tell what it is.
    const isRootList = node === 0 && /^\s*\[/.test(bytes.toString('latin1'))
    if (!tape.isList(node) && !isRootList)
      return node === 0 ? JSON.parse(bytes.toString('utf8')) : tape.readValue(node)
    const items: unknown[] = []
    for (let item = node + 1; item < tape.nodeAfter(node); item = tape.nodeAfter(item))
      items.push(read(tape, bytes, item))
    return items
  }

  const isJson = (bytes: Buffer, deepest: number): boolean =>
    scanJson(bytes, deepest, null, () => true) ?? false

  function agrees(bytes: Buffer): boolean {
    const byParser = parsed(bytes)
    const byTape = scanJson(bytes, MAX_JSON_LEVELS, null, (tape) => ({ value: read(tape, bytes, 0) }))
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
        Buffer.concat([
          text.subarray(0, at),
          Buffer.from(put === 1 ? [value] : []),
          text.subarray(at + left),
        ]),
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

  t.test('too deep or too much is refused, and why', async (t) => {
    const fault = (bytes: Buffer, deepest: number) => scanJson(bytes, deepest, null, () => null, String)
    const deep = (depth: number) => Buffer.from('['.repeat(depth) + ']'.repeat(depth))
    t.ok(isJson(deep(MAX_JSON_LEVELS), 1))
    t.ok(agrees(Buffer.from(`${'[{"a":'.repeat(MAX_JSON_LEVELS / 2)}1${'}]'.repeat(MAX_JSON_LEVELS / 2)}`)))
    t.equal(fault(deep(MAX_JSON_LEVELS + 1), 1), 'levels')
    t.equal(fault(deep(1_000_000), 1), 'levels')
    const many = (count: number) => Buffer.from(JSON.stringify(Array(count).fill(0)))
    t.ok(isJson(many(260_000), 1))
    t.equal(fault(many(263_000), 1), 'values')
    t.ok(isJson(many(1_000_000), 0), 'what is not noted has room')
    t.equal(fault(Buffer.from('[1'), 1), 'other')
    t.ok(agrees(Buffer.from('{"a":1}')), 'and the next one is read as ever')
  })

  t.test('a text of any length is read, a long one in separate memory', async (t) => {
    const finder = new FieldFinder(['b'])
    const names = new KnownNames(['known'])
    const scan = (bytes: number, name: string, end = '}') => {
      const text = `{"a":${JSON.stringify('x'.repeat(bytes))},"b":-0.5,"${name}":1${end}`
      return scanJson(Buffer.from(text), 1, names, (tape) => {
        if (!tape.find(finder, 0)) return null
        const { b: { start, end } = { start: 0, end: 0 } } = Object.fromEntries(tape.listRootFields().fields)
        return [tape.foundValue(finder.place.b), text.slice(start, end), tape.readWritten(2).length]
      })
    }
    for (const bytes of [1, 4 * 2 ** 20 - 64, 4 * 2 ** 20, 4 * 2 ** 20 + 1, 70_000_000]) {
      t.same(scan(bytes, 'known'), [-0.5, '-0.5', bytes])
      t.equal(scan(bytes, 'Known'), null)
      t.equal(scan(bytes, 'known', ''), null)
    }
    t.ok(agrees(Buffer.from('{"a":1}')), 'and the next one is read as ever')
  })

  t.test('numbers are told apart by what a double keeps of them', async (t) => {
    const marks = (number: string) =>
      scanJson(`{"${number}":[${number}]}`, 0, null, (tape) => [tape.hasLongNumbers, tape.hasOddNumbers])
    for (const number of ['0', '-1', '123456789012345']) t.same(marks(number), [false, false], number)
    for (const number of ['-0', '1.0', '-0.25']) t.same(marks(number), [false, true], number)
    for (const number of ['1e3', '1E400', '1234567890123456', '0.30000000000000004'])
      t.same(marks(number), [true, true], number)
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
      scan((tape) => tape.readValue(1)),
      1,
      'a reader that threw blocks no later one',
    )
  })
})

t.test('interned strings equal their bytes', async (t) => {
  // Whatever was read before, a text is the one that its bytes say.
  t.test('as the bytes are decoded', async (t) => {
    const texts = new StringInterner()
    const byte = fc.constantFrom(0x61, 0x62, 0x20, 0x7f, 0x80, 0xc3, 0xa9, 0xe2, 0xff)
    const bytes = fc.oneof(
      fc.array(byte, { maxLength: 5 }).map((all) => Buffer.from(all)),
      fc.string({ unit: 'binary', maxLength: 70 }).map((text) => Buffer.from(text)),
      fc
        .constantFrom('gpt-5', 'gpt-5-mini', 'é', 'x'.repeat(64), 'x'.repeat(65))
        .map((text) => Buffer.from(text)),
    )
    everyRun(t, { seed: 11, numRuns: 10_000 }, [bytes, fc.nat(3)], (text, before) => {
      const all = Buffer.concat([Buffer.alloc(before, 0x61), text, Buffer.from('a')])
      const end = before + text.length
      return texts.intern(all, before, end) === all.toString('utf8', before, end)
    })
  })
})
