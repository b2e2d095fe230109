/**
 * Measures sound in the containers that record its length: Ogg, FLAC, MP4 and WebM. A recording that was sent while it was made has
 * no length in its head: then its last page, fragment or block tells it. Nothing is decoded, and nothing throws.
 */

/** No sound that is sent has more, so that a false length makes no long file short: that of plain samples, 48 kHz in stereo. */
const MOST_BYTES_PER_SECOND = 192_000

/** Parts of one file that are read: as many as hours of sound have. More are a trap. */
const MOST_PARTS = 500_000

const FORMATS: readonly (readonly [magic: string, at: number, measure: (bytes: Buffer) => number])[] = [
  ['OggS', 0, measureOgg],
  ['fLaC', 0, measureFlac],
  ['ftyp', 4, measureMp4],
  ['\x1aE\xdf\xa3', 0, measureWebm],
]

/** Returns the length in seconds; 0 where the container does not tell it; null for bytes in none of them. */
export function measureContainerSeconds(bytes: Buffer): number | null {
  const found = FORMATS.find(([magic, at]) => bytes.toString('latin1', at, at + magic.length) === magic)
  if (found === undefined) return null
  const seconds = readOr0(() => found[2](bytes))
  return seconds > 0 ? Math.max(seconds, bytes.length / MOST_BYTES_PER_SECOND) : 0
}

/** A file that breaks off, or that lies, may lead a reader out of its bytes. */
function readOr0(read: () => number): number {
  try {
    const number = read()
    return Number.isFinite(number) ? number : 0
  } catch {
    return 0
  }
}

/** The rate of the samples in a STREAMINFO block: 20 bits. */
const readFlacRate = (bytes: Buffer, at: number): number => bytes.readUIntBE(at + 10, 3) >> 4

function measureFlac(bytes: Buffer): number {
  const INFO = 8
  const samples = (bytes.readUInt8(INFO + 13) & 15) * 2 ** 32 + bytes.readUInt32BE(INFO + 14)
  return samples / readFlacRate(bytes, INFO)
}

interface OggStream {
  readonly rate: number
  /** Samples that are not played. */
  readonly skipped: number
  last: number
}

const OGG_PAGE_BYTES = 27
const OGG_PAGE = Buffer.from('OggS').readUInt32BE()
const OGG_FIRST_PAGE = 2

/** Reads the first packet of a stream; returns null for one without sound. */
function openOggStream(bytes: Buffer, at: number): OggStream | null {
  const starts = (magic: string) => bytes.toString('latin1', at, at + magic.length) === magic
  if (starts('OpusHead')) return { rate: 48_000, skipped: bytes.readUInt16LE(at + 10), last: 0 }
  if (starts('\x01vorbis')) return { rate: bytes.readUInt32LE(at + 12), skipped: 0, last: 0 }
  if (starts('\x7fFLAC')) return { rate: readFlacRate(bytes, at + 17), skipped: 0, last: 0 }
  if (starts('Speex   ')) return { rate: bytes.readUInt32LE(at + 36), skipped: 0, last: 0 }
  return null
}

function measureOgg(bytes: Buffer): number {
  const streams = new Map<number, OggStream>()
  let at = 0
  for (let page = 0; page < MOST_PARTS && at + OGG_PAGE_BYTES < bytes.length; page++) {
    if (bytes.readUInt32BE(at) !== OGG_PAGE) break
    const serial = bytes.readUInt32LE(at + 14)
    const segments = bytes.readUInt8(at + 26)
    const content = at + OGG_PAGE_BYTES + segments
    let end = content
    for (let segment = at + OGG_PAGE_BYTES; segment < content; segment++) end += bytes[segment] ?? 0
    // What breaks off is not played.
    if (end > bytes.length) break
    if ((bytes.readUInt8(at + 5) & OGG_FIRST_PAGE) !== 0) {
      const opened = openOggStream(bytes, content)
      if (opened !== null) streams.set(serial, opened)
    }
    const stream = streams.get(serial)
    // -1: no packet ends on the page.
    if (stream !== undefined) stream.last = Math.max(stream.last, Number(bytes.readBigInt64LE(at + 6)))
    at = end
  }
  return [...streams.values()].reduce(
    (sum, { rate, skipped, last }) => sum + Math.max(0, last - skipped) / rate,
    0,
  )
}

interface Box {
  /** Of its content. */
  readonly start: number
  readonly end: number
}

/** Finds boxes of an MP4; reads at most as many as a sound file has. */
class Boxes {
  readonly #bytes: Buffer
  #read = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Returns the boxes of a type in another one, or in the whole file; of one that is cut, as much as there is. */
  #list(wanted: number, { start, end }: Box): readonly Box[] {
    const bytes = this.#bytes
    const boxes: Box[] = []
    let at = start
    while (at + 8 <= end && this.#read++ < MOST_PARTS) {
      const short = bytes.readUInt32BE(at)
      const size = short === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : short === 0 ? end - at : short
      if (size < 8) break
      if (bytes.readUInt32BE(at + 4) === wanted)
        boxes.push({ start: at + (short === 1 ? 16 : 8), end: Math.min(end, at + size) })
      at += size
    }
    return boxes
  }

  /** Returns the boxes at the end of a path of types. */
  find(path: string, from: Box = { start: 0, end: this.#bytes.length }): readonly Box[] {
    return path
      .split('/')
      .map((type) => Buffer.from(type).readUInt32BE())
      .reduce<readonly Box[]>((boxes, type) => boxes.flatMap((box) => this.#list(type, box)), [from])
  }
}

/** A track of sound, with its length in its own units. */
interface Track {
  readonly id: number
  readonly unitsASecond: number
  length: number
}

/** Returns whether the times of a box have eight bytes. @param start of its content, which begins with its version */
const isLong = (bytes: Buffer, start: number): boolean => bytes.readUInt8(start) === 1

const readTime = (bytes: Buffer, start: number, at: number): number =>
  isLong(bytes, start) ? Number(bytes.readBigUInt64BE(at)) : bytes.readUInt32BE(at)

function readTracks(bytes: Buffer, boxes: Boxes): readonly Track[] {
  return boxes.find('moov/trak').flatMap((trak) => {
    const [handler] = boxes.find('mdia/hdlr', trak)
    const [header] = boxes.find('mdia/mdhd', trak)
    const [named] = boxes.find('tkhd', trak)
    if (handler === undefined || header === undefined || named === undefined) return []
    if (bytes.toString('latin1', handler.start + 8, handler.start + 12) !== 'soun') return []
    const at = header.start + (isLong(bytes, header.start) ? 20 : 12)
    const length = readTime(bytes, header.start, at + 4)
    const id = bytes.readUInt32BE(named.start + (isLong(bytes, named.start) ? 20 : 12))
    return { id, unitsASecond: bytes.readUInt32BE(at), length: length >= 2 ** 32 - 1 ? 0 : length }
  })
}

/** Returns the length of a fragment's samples. @param usual of a sample that says nothing itself */
function measureRun(bytes: Buffer, { start, end }: Box, usual: number): number {
  const flags = bytes.readUInt32BE(start)
  const count = bytes.readUInt32BE(start + 4)
  if ((flags & 0x100) === 0) return count * usual
  const step = [0x100, 0x200, 0x400, 0x800].filter((flag) => (flags & flag) !== 0).length * 4
  let at = start + 8 + [1, 4].filter((flag) => (flags & flag) !== 0).length * 4
  let length = 0
  for (let sample = 0; sample < count && at + 4 <= end; sample++, at += step) length += bytes.readUInt32BE(at)
  return length
}

function measureMp4(bytes: Buffer): number {
  const boxes = new Boxes(bytes)
  const tracks = readTracks(bytes, boxes)
  const usual = new Map(
    boxes
      .find('moov/mvex/trex')
      .map(({ start }) => [bytes.readUInt32BE(start + 4), bytes.readUInt32BE(start + 12)]),
  )
  const lengths = new Map<number, number>()
  for (const fragment of boxes.find('moof/traf')) {
    const [header] = boxes.find('tfhd', fragment)
    if (header === undefined) continue
    const flags = bytes.readUInt32BE(header.start)
    const id = bytes.readUInt32BE(header.start + 4)
    const at = header.start + 8 + ((flags & 1) !== 0 ? 8 : 0) + ((flags & 2) !== 0 ? 4 : 0)
    const each = (flags & 8) !== 0 ? bytes.readUInt32BE(at) : (usual.get(id) ?? 0)
    const [begun] = boxes.find('tfdt', fragment)
    // A recording may have gaps, so that a fragment says when it begins.
    const beganAt =
      begun === undefined ? (lengths.get(id) ?? 0) : readTime(bytes, begun.start, begun.start + 4)
    const length = boxes.find('trun', fragment).reduce((sum, run) => sum + measureRun(bytes, run, each), 0)
    lengths.set(id, Math.max(lengths.get(id) ?? 0, beganAt + length))
  }
  return Math.max(
    0,
    ...tracks.map(({ id, length, unitsASecond }) => Math.max(length, lengths.get(id) ?? 0) / unitsASecond),
  )
}

/** Elements of WebM that have others inside: these are read through, whatever size they have. */
const MASTERS: ReadonlySet<number> = new Set([0x18538067, 0x1549a966, 0x1f43b675, 0xa0])
const [SCALE, DURATION, CLUSTER_TIME, BLOCK, SIMPLE_BLOCK] = [0x2ad7b1, 0x4489, 0xe7, 0xa1, 0xa3]
const LEAST_ELEMENT_BYTES = 2
/** Returns the bytes of a number whose first bits say how many they are; 9 for none. */
const countVintBytes = (bytes: Buffer, at: number): number => Math.clz32(bytes[at] ?? 0) - 23
const USUAL_SCALE_NS = 1_000_000
const NS_PER_SECOND = 1e9

function measureWebm(bytes: Buffer): number {
  let at = 0
  let scale = USUAL_SCALE_NS
  let told = 0
  let clusterTime = 0
  let last = 0
  for (let element = 0; element < MOST_PARTS && at + LEAST_ELEMENT_BYTES <= bytes.length; element++) {
    const idBytes = countVintBytes(bytes, at)
    const sizeBytes = countVintBytes(bytes, at + idBytes)
    if (idBytes > 4 || sizeBytes > 8) break
    const id = bytes.readUIntBE(at, idBytes)
    let size = bytes[at + idBytes]! & (0xff >> sizeBytes)
    for (let place = 1; place < sizeBytes; place++) size = size * 256 + (bytes[at + idBytes + place] ?? 0)
    const start = at + idBytes + sizeBytes
    at = MASTERS.has(id) ? start : start + size
    if (id === SCALE) scale = bytes.readUIntBE(start, size)
    if (id === DURATION) told = size === 4 ? bytes.readFloatBE(start) : bytes.readDoubleBE(start)
    if (id === CLUSTER_TIME) clusterTime = bytes.readUIntBE(start, size)
    if ((id === BLOCK || id === SIMPLE_BLOCK) && start + 8 < bytes.length)
      // The time of a block stands behind the number of its track.
      last = Math.max(last, clusterTime + bytes.readInt16BE(start + countVintBytes(bytes, start)))
  }
  return (Math.max(told, last) * scale) / NS_PER_SECOND
}
