/** Numbers come out of a reading and a printing as they went in, and texts that nest too deep are refused. */
import { deepStrictEqual, strictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import {
  canonicalNumber,
  isRawNumber,
  isTooDeep,
  MAX_JSON_LEVELS,
  parseExactJson,
  parseRawJson,
} from '../../../src/core/json/exact.ts'
import { everyRun } from '../../support/every-run.ts'

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
    strictEqual(canonicalNumber(printed), canonicalNumber(text))
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
    fc.property(fc.json({ maxDepth: 5 }), (text) => deepStrictEqual(parseExactJson(text), JSON.parse(text))),
    { seed: SEED, numRuns: RUNS },
  )
})

t.test('one number has one canonical text', async (t) => {
  for (const text of ['100', '1e2', '1E+2', '100.0', '0.1e3', '10000e-2', '1.00e2'])
    t.equal(canonicalNumber(text), '1e2', text)
  t.equal(canonicalNumber('-0.0e5'), '0')
  t.not(canonicalNumber('9007199254740993'), canonicalNumber('9007199254740992'))
  const long = `1${'0'.repeat(2000)}`
  t.equal(canonicalNumber(long), long)
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
