/** Sounds: one steady tone, the frame of a fixture again and again. */
import { readFileSync } from 'node:fs'
import { seededRandom } from '../answers/words.ts'

/** MPEG-2 Layer III, 8 kbit/s at 24 kHz: 24 bytes for every 24 ms. No frame needs another. */
const TONES = readFileSync(new URL('fixtures/tones.mp3', import.meta.url))
const FRAME_MS = 24
const FRAME_BYTES = 24

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
  const at = Math.floor((seededRandom(seed)() * TONES.length) / FRAME_BYTES) * FRAME_BYTES
  return Buffer.alloc(framesFor(seconds) * FRAME_BYTES, TONES.subarray(at, at + FRAME_BYTES))
}

function framesFor(seconds: number): number {
  return Math.max(1, Math.round((seconds * 1_000) / FRAME_MS))
}
