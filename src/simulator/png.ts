/** The smallest pictures that every decoder takes: one colour, eight pixels square, PNG. */

import { crc32, deflateSync } from 'node:zlib'

const SIDE_PIXELS = 8
const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')
const BITS_PER_SAMPLE = 8
const TRUE_COLOUR = 2

/** `colour` is red, green and blue, each from 0 to 255. */
export function pngOf(colour: readonly [number, number, number]): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(SIDE_PIXELS, 0)
  header.writeUInt32BE(SIDE_PIXELS, 4)
  header.set([BITS_PER_SAMPLE, TRUE_COLOUR], 8)
  // A line begins with the number of its filter; 0 is none.
  const line = [0, ...Array.from({ length: SIDE_PIXELS }, () => colour).flat()]
  const pixels = Buffer.from(Array.from({ length: SIDE_PIXELS }, () => line).flat())
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(pixels)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const framed = Buffer.alloc(named.length + 8)
  framed.writeUInt32BE(data.length, 0)
  named.copy(framed, 4)
  framed.writeUInt32BE(crc32(named), named.length + 4)
  return framed
}
