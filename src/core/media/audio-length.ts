/**
 * Measures a sound by the frames of an MP3, the header of a WAV or its container: upstreams that send sound seldom report its
 * length.
 */
import { measureContainerSeconds } from './container-length.ts'

/** Returns the length in seconds; null where the bytes are none of these, or have no sound. Never throws. */
export function measureAudioSeconds(bytes: Buffer): number | null {
  const isWav = bytes.toString('latin1', 0, 4) === 'RIFF'
  const seconds = isWav ? measureWav(bytes) : (measureContainerSeconds(bytes) ?? measureMp3(bytes))
  return seconds !== null && seconds > 0 && Number.isFinite(seconds) ? seconds : null
}

/** By version: kbit/s by the header's index, samples a second by its index, samples in a frame. Only Layer III. */
const MPEG1 = {
  kilobits: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  rates: [44100, 48000, 32000],
  samples: 1152,
}
const MPEG2 = {
  kilobits: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  rates: [22050, 24000, 16000],
  samples: 576,
}
const MPEG25 = { ...MPEG2, rates: [11025, 12000, 8000] }
/** By the two version bits; 1 is reserved. */
const VERSIONS = [MPEG25, null, MPEG2, MPEG1]
const LAYER_III = 1

interface Frame {
  readonly bytes: number
  readonly seconds: number
}

function readFrame(bytes: Buffer, at: number): Frame | null {
  if (at + 4 > bytes.length || bytes[at] !== 0xff) return null
  const second = bytes[at + 1] ?? 0
  const third = bytes[at + 2] ?? 0
  const version = VERSIONS[(second >> 3) & 3]
  if ((second & 0xe0) !== 0xe0 || !version || ((second >> 1) & 3) !== LAYER_III) return null
  const kilobits = version.kilobits[third >> 4]
  const rate = version.rates[(third >> 2) & 3]
  if (!kilobits || !rate) return null
  const padding = (third >> 1) & 1
  const size = Math.floor((version.samples * kilobits * 125) / rate) + padding
  return { bytes: size, seconds: version.samples / rate }
}

/** Tags before the sound have their length in four times seven bits. */
function skipTag(bytes: Buffer): number {
  if (bytes.length < 10 || bytes.toString('latin1', 0, 3) !== 'ID3') return 0
  const [a = 0, b = 0, c = 0, d = 0] = bytes.subarray(6, 10)
  return 10 + (((a & 127) << 21) | ((b & 127) << 14) | ((c & 127) << 7) | (d & 127))
}

/** Returns true when the first frame has an index in place of sound. */
function isIndex(bytes: Buffer, at: number, frame: Frame): boolean {
  const text = bytes.toString('latin1', at, at + Math.min(frame.bytes, 64))
  return text.includes('Xing') || text.includes('Info')
}

/**
 * Bytes allowed before the first frame besides a tag. Sound of other kinds has no two frames so near its beginning.
 */
const MAX_SKIPPED_BYTES = 4096

function measureMp3(bytes: Buffer): number {
  const start = skipTag(bytes)
  let at = start
  let seconds = 0
  let isFirst = true
  while (at + 4 <= bytes.length) {
    const frame = readFrame(bytes, at)
    const next = at + (frame?.bytes ?? 0)
    // Two bytes in the form of a header count only when another frame, or the end, follows.
    if (frame && (next >= bytes.length || readFrame(bytes, next) !== null || isTrailer(bytes, next))) {
      if (!isFirst || !isIndex(bytes, at, frame)) seconds += frame.seconds
      isFirst = false
      at = next
    } else if (isFirst && at - start >= MAX_SKIPPED_BYTES) {
      return 0
    } else {
      at += 1
    }
  }
  return seconds
}

const isTrailer = (bytes: Buffer, at: number): boolean => bytes.toString('latin1', at, at + 3) === 'TAG'

const PLAIN_FORMATS: ReadonlySet<number> = new Set([1, 3])

/** Decoders of plain samples do not read the rate of bytes, so that a false one must not count. */
function readByteRate(bytes: Buffer, at: number): number {
  const channels = bytes.readUInt16LE(at + 2)
  const bits = bytes.readUInt16LE(at + 14)
  const isPlain = PLAIN_FORMATS.has(bytes.readUInt16LE(at))
  return isPlain ? (bytes.readUInt32LE(at + 4) * channels * bits) / 8 : bytes.readUInt32LE(at + 8)
}

function measureWav(bytes: Buffer): number | null {
  let bytesASecond = 0
  let at = 12
  while (at + 8 <= bytes.length) {
    const name = bytes.toString('latin1', at, at + 4)
    const length = bytes.readUInt32LE(at + 4)
    if (name === 'fmt ' && at + 24 <= bytes.length) bytesASecond = readByteRate(bytes, at + 8)
    if (name === 'data') {
      // A stream that was written without knowing its end has no true length here.
      return bytesASecond === 0 ? null : Math.min(length, bytes.length - at - 8) / bytesASecond
    }
    // Chunks begin at even places.
    at += 8 + length + (length & 1)
  }
  return null
}
