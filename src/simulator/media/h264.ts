/**
 * Moving colour bars as H.264 (ITU-T H.264, constrained baseline): every frame stands by itself and costs about a byte
 * a macroblock. The first macroblock of each bar carries its colour as plain samples, its neighbours in the first row
 * take it from the left, and everything below from above; nothing has a residual.
 */

import { seededRandom } from '../words.ts'
import { BitWriter } from './bits.ts'

export const BARS = 8
const MACROBLOCK_PIXELS = 16
const LUMA_SAMPLES = 256
const CHROMA_SAMPLES = 64
/** The range of samples in which no three bytes in a row could be taken for a start code. */
const LOWEST_SAMPLE = 16
const SAMPLE_RANGE = 220
const PROFILE_BASELINE = 66
const CONSTRAINED = 0xc0
/** Largest frame in macroblocks of each level that is used; table A-1. */
const LEVELS = [
  { level: 30, macroblocks: 1_620 },
  { level: 40, macroblocks: 8_192 },
  { level: 51, macroblocks: 36_864 },
] as const
const NAL_SEQUENCE_PARAMETERS = 0x67
const NAL_PICTURE_PARAMETERS = 0x68
const NAL_INDEPENDENT_FRAME = 0x65
/** All slices of the picture hold intra macroblocks alone; table 7-6. */
const SLICE_ALL_INTRA = 7
/** Macroblock types of table 7-11, and the matching chroma prediction of table 7-16. */
const PLAIN_SAMPLES = 25
const FROM_ABOVE = { luma: 1, chroma: 2 } as const
const FROM_LEFT = { luma: 2, chroma: 1 } as const

export type FrameSize = {
  /** Both even. */
  readonly widthPixels: number
  readonly heightPixels: number
}

/** What a decoder has to know before the first frame, as units without start codes or lengths. */
export type Parameters = {
  readonly sequence: Buffer
  readonly picture: Buffer
  readonly profile: number
  readonly constraints: number
  readonly level: number
}

type Colour = { readonly luma: number; readonly blue: number; readonly red: number }

export function parametersOf(size: FrameSize): Parameters {
  const columns = macroblocks(size.widthPixels)
  const rows = macroblocks(size.heightPixels)
  const level = LEVELS.find((entry) => columns * rows <= entry.macroblocks)?.level ?? 51
  const sequence = new BitWriter().bits(PROFILE_BASELINE, 8).bits(CONSTRAINED, 8).bits(level, 8)
  // Its number; 4 bits of frame number; order of output is that of decoding; one reference, without gaps.
  sequence.unsigned(0).unsigned(0).unsigned(2).unsigned(1).bits(0, 1)
  // Whole frames in macroblocks, then what is cut off at the right and at the bottom, in pairs of pixels.
  sequence.unsigned(columns - 1).unsigned(rows - 1)
  sequence.bits(1, 1).bits(1, 1).bits(1, 1)
  sequence.unsigned(0).unsigned((columns * MACROBLOCK_PIXELS - size.widthPixels) / 2)
  sequence.unsigned(0).unsigned((rows * MACROBLOCK_PIXELS - size.heightPixels) / 2)
  sequence.bits(0, 1).bits(1, 1)
  const picture = new BitWriter().unsigned(0).unsigned(0).bits(0, 2)
  // One slice group, one reference each way, no weights, default quantisers, and a say in deblocking.
  picture.unsigned(0).unsigned(0).unsigned(0).bits(0, 3).unsigned(0).unsigned(0).unsigned(0)
  picture.bits(0b100, 3).bits(1, 1)
  return {
    sequence: unit(NAL_SEQUENCE_PARAMETERS, sequence),
    picture: unit(NAL_PICTURE_PARAMETERS, picture),
    profile: PROFILE_BASELINE,
    constraints: CONSTRAINED,
    level,
  }
}

/** As many different frames as there are bars, to be shown in turn again and again. */
export function framesOf(size: FrameSize, seed: number): Buffer[] {
  const random = seededRandom(seed)
  const sample = () => LOWEST_SAMPLE + Math.floor(random() * SAMPLE_RANGE)
  const colours = Array.from({ length: BARS }, () => ({ luma: sample(), blue: sample(), red: sample() }))
  return colours.map((_, shift) =>
    frameOf(size, [...colours.slice(shift), ...colours.slice(0, shift)], shift % 2),
  )
}

/** `number` differs between frames that follow each other. */
function frameOf(size: FrameSize, colours: readonly Colour[], number: number): Buffer {
  const columns = macroblocks(size.widthPixels)
  const rows = macroblocks(size.heightPixels)
  const barAt = (column: number) => Math.floor((column * BARS) / columns)
  const isPlain = (column: number, row: number) =>
    row === 0 && column >= 0 && (column === 0 || barAt(column) !== barAt(column - 1))
  const slice = new BitWriter().unsigned(0).unsigned(SLICE_ALL_INTRA).unsigned(0).bits(0, 4)
  // No prior picture is kept, the quantiser is as it was, and no edge is smoothed.
  slice.unsigned(number).bits(0, 2).unsigned(0).unsigned(1)
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      if (isPlain(column, row)) {
        writePlain(slice, colours[barAt(column)] as Colour)
      } else {
        const isBesidePlain = isPlain(column - 1, row) || (row === 1 && isPlain(column, 0))
        writePredicted(slice, row === 0 ? FROM_LEFT : FROM_ABOVE, isBesidePlain)
      }
    }
  }
  return unit(NAL_INDEPENDENT_FRAME, slice.bits(1, 1))
}

function writePlain(slice: BitWriter, { luma, blue, red }: Colour): void {
  slice.unsigned(PLAIN_SAMPLES).align()
  slice.bytes(Buffer.alloc(LUMA_SAMPLES, luma))
  slice.bytes(Buffer.alloc(CHROMA_SAMPLES, blue)).bytes(Buffer.alloc(CHROMA_SAMPLES, red))
}

/** Beside plain samples, which count as 16 coefficients a block, "none" has a longer code: table 9-5. */
function writePredicted(slice: BitWriter, from: typeof FROM_ABOVE | typeof FROM_LEFT, besidePlain: boolean) {
  slice.unsigned(from.luma).unsigned(from.chroma).unsigned(0)
  if (besidePlain) slice.bits(0b000011, 6)
  else slice.bits(1, 1)
}

function macroblocks(pixels: number): number {
  return Math.ceil(pixels / MACROBLOCK_PIXELS)
}

/** Two zeros that a byte below 4 would follow get a 3 between, so that no start code comes to be: 7.4.1. */
function unit(type: number, payload: BitWriter): Buffer {
  const bytes = [type]
  let zeros = 0
  for (const byte of payload.buffer()) {
    if (zeros >= 2 && byte <= 3) {
      bytes.push(3)
      zeros = 0
    }
    bytes.push(byte)
    zeros = byte === 0 ? zeros + 1 : 0
  }
  return Buffer.from(bytes)
}
