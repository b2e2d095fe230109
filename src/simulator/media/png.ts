/** Pictures: PNG of any size, a mosaic of coloured tiles that its seed decides. */

import { crc32, deflateSync } from 'node:zlib'
import { seededRandom } from '../words.ts'

export const MAX_PICTURE_SIDE_PIXELS = 4_096
/** Tiles along each side; a small picture has as many as it has pixels. */
const TILES = 8
const COLOURS = 16
const CHANNELS = 3
const CHANNEL_VALUES = 256
const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')
/** Two pixels to a byte, each the number of a colour: an eighth of what true colours would take. */
const BITS_PER_PIXEL = 4
const PIXELS_PER_BYTE = 2
const INDEXED_COLOUR = 3
/** The filter that a row begins with: the pixels themselves, or their difference to the row above. */
const FILTER_NONE = 0
const FILTER_UP = 2
const FASTEST = 1

export type Picture = {
  readonly widthPixels: number
  readonly heightPixels: number
  readonly seed: number
}

/** The same picture gives the same bytes. */
export function drawPng({ widthPixels, heightPixels, seed }: Picture): Buffer {
  const random = seededRandom(seed)
  const draw = (values: number) => Math.floor(random() * values)
  const palette = Buffer.from(Array.from({ length: COLOURS * CHANNELS }, () => draw(CHANNEL_VALUES)))
  const tiles = Array.from({ length: TILES }, () => Array.from({ length: TILES }, () => draw(COLOURS)))
  const header = Buffer.alloc(13)
  header.writeUInt32BE(widthPixels, 0)
  header.writeUInt32BE(heightPixels, 4)
  header.set([BITS_PER_PIXEL, INDEXED_COLOUR], 8)
  const rows = rowsOf(tiles, widthPixels, heightPixels)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('IDAT', deflateSync(rows, { level: FASTEST })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Inside a tile every row is the one above it, so that nearly all of the picture is zeros before it is packed. */
function rowsOf(tiles: readonly (readonly number[])[], width: number, height: number): Buffer {
  const rowBytes = 1 + Math.ceil(width / PIXELS_PER_BYTE)
  const rows = Buffer.alloc(rowBytes * height)
  let above = -1
  for (let y = 0; y < height; y += 1) {
    const tile = tileAt(y, height)
    const at = y * rowBytes
    rows[at] = tile === above ? FILTER_UP : FILTER_NONE
    if (tile !== above) writeRow(rows, at + 1, tiles[tile] as readonly number[], width)
    above = tile
  }
  return rows
}

function writeRow(rows: Buffer, at: number, colours: readonly number[], width: number): void {
  for (let x = 0; x < width; x += PIXELS_PER_BYTE) {
    const left = colours[tileAt(x, width)] as number
    const right = x + 1 < width ? (colours[tileAt(x + 1, width)] as number) : 0
    rows[at + x / PIXELS_PER_BYTE] = (left << BITS_PER_PIXEL) | right
  }
}

function tileAt(position: number, length: number): number {
  return Math.floor((position * TILES) / length)
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const framed = Buffer.alloc(named.length + 8)
  framed.writeUInt32BE(data.length, 0)
  named.copy(framed, 4)
  framed.writeUInt32BE(crc32(named), named.length + 4)
  return framed
}
