/** Whatever was read before, a text is the one that its bytes say. */
import fc from 'fast-check'
import t from 'tap'
import { StringInterner } from '../../../src/core/string-interner.ts'
import { everyRun } from '../../support/every-run.ts'

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
