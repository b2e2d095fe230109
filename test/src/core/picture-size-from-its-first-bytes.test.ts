import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { imageFacts } from '../../../src/core/media/image-size.ts'

const file = (name: string) => readFileSync(new URL(`../../fixtures/media/${name}`, import.meta.url))

const KNOWN = [
  ['picture.png', 'image/png', 40, 24],
  ['baseline.jpg', 'image/jpeg', 37, 23],
  ['lossy.webp', 'image/webp', 33, 21],
  ['lossless.webp', 'image/webp', 33, 21],
  ['extended.webp', 'image/webp', 33, 21],
] as const

for (const [name, mediaType, width, height] of KNOWN) {
  t.test(`${name} is ${mediaType}, ${width} x ${height}`, async (t) => {
    t.strictSame(imageFacts(file(name)), { mediaType, width, height })
  })
}

t.test('a JPEG with a thumbnail in a segment, and a progressive frame', async (t) => {
  const jpeg = file('baseline.jpg')
  const thumbnail = jpeg.subarray(0, 600)
  const length = Buffer.from([0xff, 0xe1, (thumbnail.length + 2) >> 8, (thumbnail.length + 2) & 255])
  const frame = jpeg.indexOf(Buffer.from([0xff, 0xc0]))
  const odd = Buffer.concat([jpeg.subarray(0, 2), length, thumbnail, jpeg.subarray(2)])
  odd[frame + length.length + thumbnail.length + 1] = 0xc2
  t.strictSame(imageFacts(odd), { mediaType: 'image/jpeg', width: 37, height: 23 })
})

t.test('too little of a file is no picture, and never an error', async (t) => {
  for (const [name] of KNOWN) {
    const bytes = file(name)
    for (let end = 0; end < bytes.length; end++) {
      const facts = imageFacts(bytes.subarray(0, end))
      t.ok(facts === null || facts.width > 20, `${name} cut at ${end}`)
    }
    t.equal(imageFacts(bytes.subarray(0, 12)), null)
  }
})

t.test('any bytes behind any beginning are read without an error', async (t) => {
  const heads = KNOWN.flatMap(([name]) => [2, 12, 20, 30].map((end) => file(name).subarray(0, end)))
  fc.assert(
    fc.property(fc.constantFrom(...heads), fc.uint8Array({ maxLength: 80 }), (head, rest) => {
      const facts = imageFacts(Buffer.concat([head, rest]))
      return facts === null || (facts.width > 0 && facts.height > 0)
    }),
  )
  t.pass('none threw')
})
