/** Pictures: PNG of any size in one colour, which the seed decides. No file made beforehand has every size. */
import { crc32, deflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')
/** Two pixels to a byte, each the number of a colour in the palette. */
const BITS_PER_PIXEL = 4
const INDEXED_COLOUR = 3
const PALETTE_BYTES = 3

export type Picture = {
  readonly widthPixels: number
  readonly heightPixels: number
  readonly seed: number
}

/** The same picture gives the same bytes. */
export function drawPng({ widthPixels, heightPixels, seed }: Picture): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(widthPixels, 0)
  header.writeUInt32BE(heightPixels, 4)
  header.set([BITS_PER_PIXEL, INDEXED_COLOUR], 8)
  const palette = Buffer.alloc(PALETTE_BYTES)
  palette.writeUIntBE(seed % 2 ** 24, 0, PALETTE_BYTES)
  // Each row begins with the number of its filter, and the first colour has the number 0: all are zeros.
  const rows = Buffer.alloc((1 + Math.ceil(widthPixels / 2)) * heightPixels)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('IDAT', deflateSync(rows, { level: 1 })),
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
