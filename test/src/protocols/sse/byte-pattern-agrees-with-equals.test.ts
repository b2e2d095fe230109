import fc from 'fast-check'
import t from 'tap'
import { addPattern, isPatternAt, viewOf, wordsOf } from '../../../../src/protocols/sse/byte-pattern.ts'
import { everyRun } from '../../../support/every-run.ts'

const RUNS = 2_000
const SEED = 20_261_121

/** Whether `pattern` is found at `place` of `bytes`, its words standing behind those of others. */
function isFound(pattern: Buffer, bytes: Buffer, place = 0): boolean {
  const words: number[] = []
  addPattern(words, Buffer.from('what stands in front'))
  const first = words.length
  addPattern(words, pattern)
  if (words.length !== first + wordsOf(pattern.length))
    throw new Error('a pattern takes other words than it says')
  return isPatternAt(words, first, pattern.length, viewOf(bytes), bytes.byteOffset + place)
}

/** Text has no zeros and nothing above DEL: what else a word can be is never said to be equal. */
const text = fc.uint8Array({ min: 1, max: 0x7e, maxLength: 40 })

t.test('a pattern is where its bytes are, and nowhere else', async (t) => {
  const around = fc.record({
    pattern: text,
    before: text,
    after: text,
    changed: fc.option(fc.nat(), { freq: 2 }),
    by: fc.integer({ min: 1, max: 0x7f }),
  })
  everyRun(t, { seed: SEED, numRuns: RUNS }, [around], ({ pattern, before, after, changed, by }) => {
    const bytes = Buffer.concat([before, pattern, after])
    const isChanged = changed !== null && pattern.length > 0
    if (isChanged) bytes[before.length + (changed % pattern.length)]! ^= by
    return isFound(Buffer.from(pattern), bytes, before.length) === !isChanged
  })
})

t.test('words that numbers cannot tell apart, or that are none, are never found', async (t) => {
  for (const hex of ['0000000000000000', '0000000000000080', 'ffffffffffffffff', '010000000000f07f']) {
    const bytes = Buffer.from(hex, 'hex')
    t.notOk(isFound(bytes, bytes), hex)
  }
})

t.test('pieces of different buffers are distinguished', async (t) => {
  const pattern = Buffer.from('in its own memory')
  const one = Buffer.from(new Uint8Array(Buffer.from('in its own memory')).buffer)
  const other = Buffer.from(new Uint8Array(Buffer.from('in another memory')).buffer)
  for (const [bytes, isSame] of [
    [one, true],
    [other, false],
    [one, true],
  ] as const)
    t.equal(isFound(pattern, bytes), isSame)
})
