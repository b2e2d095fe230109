/** What a file is follows from its first bytes, whatever its name says. */
import { Buffer } from 'node:buffer'
import t from 'tap'
import { extensionOf, sniffMediaType } from '../../../src/core/media/type.ts'

const container = (brand: string): Buffer => Buffer.from(`\0\0\0\x20ftyp${brand}\0\0\0\0`, 'latin1')

t.test('files of the ISO base media format by their brand', async (t) => {
  t.equal(sniffMediaType(container('isom')), 'video/mp4')
  t.equal(sniffMediaType(container('mp42')), 'video/mp4')
  t.equal(sniffMediaType(container('qt  ')), 'video/quicktime')
  t.equal(sniffMediaType(container('M4A ')), 'audio/mp4')
  for (const [brand, type] of [
    ['avif', 'image/avif'],
    ['heic', 'image/heic'],
    ['mif1', 'image/heif'],
  ] as const) {
    t.equal(sniffMediaType(container(brand)), type)
    t.ok(extensionOf(type), 'it has an extension in the store')
  }
})

t.test('what has no known signature is not guessed', async (t) => {
  for (const bytes of ['', 'a', 'hello there', '\xff', '\xff\x00'])
    t.equal(sniffMediaType(Buffer.from(bytes, 'latin1')), null)
})
