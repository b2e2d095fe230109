/** Makes result files: PNG in one color, which depends on the seed; MP4 and MP3 from recorded fixtures. */

import { readFileSync } from 'node:fs'
import { crc32, deflateSync } from 'node:zlib'
import { makeSeededRandom } from '../answers/words.ts'

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')
/** Two pixels per byte, each the number of a color in the palette. */
const BITS_PER_PIXEL = 4
const INDEXED_COLOUR = 3
const PALETTE_BYTES = 3

export type Picture = {
  readonly widthPixels: number
  readonly heightPixels: number
  readonly seed: number
}

/** Makes a PNG, always with the same bytes for the same seed and size. */
export function drawPng({ widthPixels, heightPixels, seed }: Picture): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(widthPixels, 0)
  header.writeUInt32BE(heightPixels, 4)
  header.set([BITS_PER_PIXEL, INDEXED_COLOUR], 8)
  const palette = Buffer.alloc(PALETTE_BYTES)
  palette.writeUIntBE(seed % 2 ** 24, 0, PALETTE_BYTES)
  // Each row begins with the number of its filter, and the first color is number 0: all bytes are zeros.
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

const FILM = readFileSync(new URL('fixtures/film.mp4', import.meta.url))
/** The video has one frame per thousand units of a second, so each frame lasts whole units. */
const UNITS_PER_SECOND = 8_000
const FRAMES = 8
/** The offsets of the duration in boxes, from the boxes' names (ISO 14496-12). */
const DURATIONS = [
  ['mvhd', 20],
  ['tkhd', 24],
  ['mdhd', 20],
] as const
const FRAME_DURATION_AT = 16
const WIDTH_AT = 80
const HEIGHT_AT = 84
const FIXED_ONE = 0x0001_0000

export type Film = {
  readonly widthPixels: number
  readonly heightPixels: number
  /** Above 0, in whole milliseconds. */
  readonly seconds: number
}

/** Makes an MP4 of a given size and duration: each of its eight frames lasts an eighth. */
export function filmMp4({ widthPixels, heightPixels, seconds }: Film): Buffer {
  const film = Buffer.from(FILM)
  const write = (box: string, at: number, value: number) => film.writeUInt32BE(value, film.indexOf(box) + at)
  const frameUnits = Math.max(1, Math.round((seconds * UNITS_PER_SECOND) / FRAMES))
  for (const [box, at] of DURATIONS) write(box, at, frameUnits * FRAMES)
  write('stts', FRAME_DURATION_AT, frameUnits)
  write('tkhd', WIDTH_AT, widthPixels * FIXED_ONE)
  write('tkhd', HEIGHT_AT, heightPixels * FIXED_ONE)
  return film
}

/** MPEG-2 Layer III, 8 kbit/s at 24 kHz: 24 bytes for every 24 ms. No frame needs another. */
const TONES = readFileSync(new URL('fixtures/tones.mp3', import.meta.url))
const FRAME_MS = 24
const FRAME_BYTES = 24

export type Sound = {
  /** A multiple of 24 ms. */
  readonly seconds: number
  readonly seed: number
}

/** Returns the actual duration of the audio. */
export function toPlayedSeconds(seconds: number): number {
  return (framesFor(seconds) * FRAME_MS) / 1_000
}

/** Makes an MP3, always with the same bytes for the same seed and duration. */
export function soundMp3({ seconds, seed }: Sound): Buffer {
  const at = Math.floor((makeSeededRandom(seed)() * TONES.length) / FRAME_BYTES) * FRAME_BYTES
  return Buffer.alloc(framesFor(seconds) * FRAME_BYTES, TONES.subarray(at, at + FRAME_BYTES))
}

function framesFor(seconds: number): number {
  return Math.max(1, Math.round((seconds * 1_000) / FRAME_MS))
}
