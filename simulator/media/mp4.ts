/** Films: one MP4 of moving colour bars, with the size and the length that are asked for written into its header. */
import { readFileSync } from 'node:fs'

const FILM = readFileSync(new URL('fixtures/film.mp4', import.meta.url))
/** The film has as many frames as a second has thousands of units, so each frame lasts whole units. */
const UNITS_PER_SECOND = 8_000
const FRAMES = 8
/** Where boxes have the length of the film, counted from their names (ISO 14496-12). */
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
  /** Above 0; counted to the millisecond. */
  readonly seconds: number
}

/** Returns the film as a player shows it: its frames are scaled to the size and last an eighth of it each. */
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
