import fc from 'fast-check'
import t from 'tap'
import { BytePattern, viewOf } from '../../../src/protocols/byte-pattern.ts'

const RUNS = 2_000
const SEED = 20_261_121

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
  fc.assert(
    fc.property(around, ({ pattern, before, after, changed, by }) => {
      const bytes = Buffer.concat([before, pattern, after])
      const isChanged = changed !== null && pattern.length > 0
      if (isChanged) bytes[before.length + (changed % pattern.length)]! ^= by
      const at = bytes.byteOffset + before.length
      return new BytePattern(Buffer.from(pattern)).isAt(viewOf(bytes), at) === !isChanged
    }),
    { seed: SEED, numRuns: RUNS },
  )
  t.pass('every run agreed')
})

t.test('words that numbers cannot tell apart, or that are none, are never found', async (t) => {
  for (const hex of ['0000000000000000', '0000000000000080', 'ffffffffffffffff', '010000000000f07f']) {
    const bytes = Buffer.from(hex, 'hex')
    t.notOk(new BytePattern(bytes).isAt(viewOf(bytes), bytes.byteOffset), hex)
  }
})

t.test('pieces of different buffers are told apart', async (t) => {
  const pattern = new BytePattern(Buffer.from('in its own memory'))
  const one = Buffer.from(new Uint8Array(Buffer.from('in its own memory')).buffer)
  const other = Buffer.from(new Uint8Array(Buffer.from('in another memory')).buffer)
  for (const [bytes, isFound] of [
    [one, true],
    [other, false],
    [one, true],
  ] as const)
    t.equal(pattern.isAt(viewOf(bytes), bytes.byteOffset), isFound)
})
