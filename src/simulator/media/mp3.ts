/** Sound: MP3 (MPEG-2 Layer III, ISO 13818-3) of one steady tone, made of one frame again and again. */

import { seededRandom } from '../words.ts'
import { BitWriter } from './bits.ts'

export const MAX_SOUND_SECONDS = 600
/** 8 kbit/s at 24 kHz, one channel: exactly 24 bytes for every 24 ms, 1,000 bytes a second. */
export const FRAME_MS = 24
const FRAME_BYTES = 24
const SYNC_WORD = 0x7ff
const MPEG_2 = 0b10
const LAYER_III_UNPROTECTED = 0b011
const BITRATE_8K = 0b0001
const SAMPLING_24K = 0b01
const ONE_CHANNEL = 0b11
/** Where the quantiser step is 1; a sixth of full scale is 2 ** (-10 / 4). */
const GAIN = 200
/** Each step of the spectrum has 20.8 Hz; the tone lies between 330 and 830 Hz. */
const LOWEST_LINE_PAIR = 8
const LINE_PAIRS = 12
/** Codes of table 1 of annex B: two lines that are 0, and one that is 1 before one that is 0. */
const PAIR_OF_ZEROS = { code: 0b1, bits: 1 } as const
const ONE_AND_ZERO = { code: 0b01, bits: 2 } as const
const CODE_TABLE = 1

export type Sound = {
  /** In steps of 24 ms. */
  readonly seconds: number
  readonly seed: number
}

/** How long the sound is that comes of it. */
export function playedSeconds(seconds: number): number {
  return (framesFor(seconds) * FRAME_MS) / 1_000
}

/** The same sound gives the same bytes. */
export function soundMp3({ seconds, seed }: Sound): Buffer {
  return Buffer.alloc(framesFor(seconds) * FRAME_BYTES, frameOf(seed))
}

function framesFor(seconds: number): number {
  return Math.max(1, Math.round((seconds * 1_000) / FRAME_MS))
}

function frameOf(seed: number): Buffer {
  const pair = LOWEST_LINE_PAIR + Math.floor(seededRandom(seed)() * LINE_PAIRS)
  const frame = new BitWriter().bits(SYNC_WORD, 11).bits(MPEG_2, 2).bits(LAYER_III_UNPROTECTED, 3)
  // No padding, not private; no stereo modes, an original, no emphasis.
  frame.bits(BITRATE_8K, 4).bits(SAMPLING_24K, 2).bits(0, 2).bits(ONE_CHANNEL, 2).bits(0b000100, 6)
  const mainBits = pair * PAIR_OF_ZEROS.bits + ONE_AND_ZERO.bits + 1
  // The frame needs nothing of those before it; one granule, its pairs, its gain, no scale factors, long blocks.
  frame
    .bits(0, 8)
    .bits(0, 1)
    .bits(mainBits, 12)
    .bits(pair + 1, 9)
    .bits(GAIN, 8)
    .bits(0, 9)
    .bits(0, 1)
  frame.bits(CODE_TABLE, 5).bits(CODE_TABLE, 5).bits(CODE_TABLE, 5).bits(0, 4).bits(0, 3).bits(0, 2)
  for (let index = 0; index < pair; index += 1) frame.bits(PAIR_OF_ZEROS.code, PAIR_OF_ZEROS.bits)
  frame.bits(ONE_AND_ZERO.code, ONE_AND_ZERO.bits).bits(0, 1)
  const written = frame.buffer()
  return Buffer.concat([written, Buffer.alloc(FRAME_BYTES - written.length)])
}
