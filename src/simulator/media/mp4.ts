/** Films: MP4 (ISO 14496-12 and -15) of moving colour bars, one frame a second, without sound. */

import { type FrameSize, framesOf, type Parameters, parametersOf } from './h264.ts'

export const MAX_FILM_SECONDS = 600
const UNITS_PER_SECOND = 1_000
const DOTS_PER_INCH_72 = 0x0048_0000
const FIXED_ONE = 0x0001_0000
const UNITY_MATRIX = u32(FIXED_ONE, 0, 0, 0, FIXED_ONE, 0, 0, 0, 0x4000_0000)
/** "und", as three letters of five bits. */
const LANGUAGE_UNDETERMINED = 0x55c4
const TRACK_SHOWN = 3
const SELF_CONTAINED = 1

export type Film = FrameSize & {
  /** Above 0; the last frame is shorter where they are not whole. */
  readonly seconds: number
  readonly seed: number
}

/** The same film gives the same bytes. */
export function filmMp4(film: Film): Buffer {
  const lengths = frameLengths(film.seconds)
  const frames = framesOf(film, film.seed)
  const samples = lengths.map((_, index) => frames[index % frames.length] as Buffer)
  const data = box('mdat', ...samples.flatMap((sample) => [u32(sample.length), sample]))
  const sizes = samples.map((sample) => sample.length + 4)
  const type = box('ftyp', text('isom'), u32(0x200), text('isomiso2avc1mp41'))
  const movieAt = (offset: number) => movie(film, lengths, sizes, offset)
  const headBytes = type.length + movieAt(0).length
  return Buffer.concat([type, movieAt(headBytes + 8), data])
}

/** In units of the time scale. */
function frameLengths(seconds: number): number[] {
  const units = Math.max(1, Math.round(seconds * UNITS_PER_SECOND))
  const whole = Array.from({ length: Math.floor(units / UNITS_PER_SECOND) }, () => UNITS_PER_SECOND)
  const rest = units % UNITS_PER_SECOND
  return rest === 0 ? whole : [...whole, rest]
}

/** `dataAt` is where the first sample stands in the file. */
function movie(film: Film, lengths: readonly number[], sizes: readonly number[], dataAt: number): Buffer {
  const duration = lengths.reduce((sum, length) => sum + length, 0)
  const header = full('mvhd', 0, [
    u32(0, 0, UNITS_PER_SECOND, duration, FIXED_ONE),
    Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    UNITY_MATRIX,
    Buffer.alloc(24),
    u32(2),
  ])
  const size = [film.widthPixels * FIXED_ONE, film.heightPixels * FIXED_ONE]
  const trackHeader = full('tkhd', TRACK_SHOWN, [
    u32(0, 0, 1, 0, duration),
    Buffer.alloc(16),
    UNITY_MATRIX,
    u32(...size),
  ])
  const media = box(
    'mdia',
    full('mdhd', 0, [u32(0, 0, UNITS_PER_SECOND, duration), u16(LANGUAGE_UNDETERMINED, 0)]),
    full('hdlr', 0, [u32(0), text('vide'), Buffer.alloc(12), text('bars\0')]),
    box(
      'minf',
      full('vmhd', 1, [Buffer.alloc(8)]),
      box('dinf', full('dref', 0, [u32(1), full('url ', SELF_CONTAINED, [])])),
      sampleTable(film, lengths, sizes, dataAt),
    ),
  )
  return box('moov', header, box('trak', trackHeader, media))
}

/** Without a list of frames to start from, every one is: ISO 14496-12, 8.6.2. */
function sampleTable(
  film: Film,
  lengths: readonly number[],
  sizes: readonly number[],
  dataAt: number,
): Buffer {
  const last = lengths.at(-1) as number
  const runs =
    lengths.length > 1 && last !== lengths[0]
      ? [lengths.length - 1, lengths[0] as number, 1, last]
      : [lengths.length, last]
  return box(
    'stbl',
    full('stsd', 0, [u32(1), sampleEntry(film)]),
    full('stts', 0, [u32(runs.length / 2, ...runs)]),
    full('stsc', 0, [u32(1, 1, lengths.length, 1)]),
    full('stsz', 0, [u32(0, sizes.length, ...sizes)]),
    full('stco', 0, [u32(1, dataAt)]),
  )
}

function sampleEntry(film: Film): Buffer {
  return box(
    'avc1',
    Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]),
    Buffer.alloc(16),
    u16(film.widthPixels, film.heightPixels),
    u32(DOTS_PER_INCH_72, DOTS_PER_INCH_72, 0),
    u16(1),
    Buffer.alloc(32),
    u16(0x18, 0xffff),
    box('avcC', decoderConfiguration(parametersOf(film))),
  )
}

/** Lengths of 4 bytes before every unit, one set of each kind of parameters. */
function decoderConfiguration({ sequence, picture, profile, constraints, level }: Parameters): Buffer {
  return Buffer.concat([
    Buffer.from([1, profile, constraints, level, 0xff, 0xe1]),
    u16(sequence.length),
    sequence,
    Buffer.from([1]),
    u16(picture.length),
    picture,
  ])
}

function box(type: string, ...parts: readonly Buffer[]): Buffer {
  const bytes = parts.reduce((sum, part) => sum + part.length, 8)
  return Buffer.concat([u32(bytes), text(type), ...parts])
}

function full(type: string, flags: number, parts: readonly Buffer[]): Buffer {
  return box(type, u32(flags), ...parts)
}

function text(value: string): Buffer {
  return Buffer.from(value, 'latin1')
}

function u16(...values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(values.length * 2)
  for (const [index, value] of values.entries()) buffer.writeUInt16BE(value, index * 2)
  return buffer
}

function u32(...values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) buffer.writeUInt32BE(value, index * 4)
  return buffer
}
