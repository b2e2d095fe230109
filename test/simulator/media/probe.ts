/** Reads media files as a player would begin to, and says what they hold. */

import { spawnSync } from 'node:child_process'
import { crc32, inflateSync } from 'node:zlib'

export type PngFacts = { readonly width: number; readonly height: number; readonly pixels: Buffer }

/** Throws where a chunk is damaged, or the pixels are not as many as the header says. */
export function readPng(file: Buffer): PngFacts {
  if (file.subarray(0, 8).toString('hex') !== '89504e470d0a1a0a') throw new Error('no PNG')
  const chunks = new Map<string, Buffer>()
  for (let at = 8; at < file.length; ) {
    const bytes = file.readUInt32BE(at)
    const named = file.subarray(at + 4, at + 8 + bytes)
    if (crc32(named) !== file.readUInt32BE(at + 8 + bytes)) throw new Error('a chunk is damaged')
    chunks.set(named.toString('latin1', 0, 4), named.subarray(4))
    at += 12 + bytes
  }
  const header = chunks.get('IHDR') as Buffer
  if (!chunks.has('IEND') || !chunks.has('PLTE')) throw new Error('a chunk is missing')
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const pixels = inflateSync(chunks.get('IDAT') as Buffer)
  if (pixels.length !== height * (1 + Math.ceil(width / 2))) throw new Error(`${pixels.length} bytes`)
  return { width, height, pixels }
}

export type Mp4Facts = {
  readonly width: number
  readonly height: number
  readonly seconds: number
  /** The frames, each in units behind their lengths. */
  readonly samples: readonly Buffer[]
}

const CONTAINERS = ['moov', 'trak', 'mdia', 'minf', 'stbl', 'dinf']

/** Throws where a box reaches beyond the one it stands in, or a sample beyond the data. */
export function readMp4(file: Buffer): Mp4Facts {
  const boxes = new Map<string, { start: number; data: Buffer }>()
  const walk = (from: number, to: number): void => {
    for (let at = from; at < to; ) {
      const bytes = file.readUInt32BE(at)
      const type = file.toString('latin1', at + 4, at + 8)
      if (bytes < 8 || at + bytes > to) throw new Error(`the box ${type} is torn`)
      boxes.set(type, { start: at + 8, data: file.subarray(at + 8, at + bytes) })
      if (CONTAINERS.includes(type)) walk(at + 8, at + bytes)
      at += bytes
    }
  }
  walk(0, file.length)
  const dataOf = (type: string) => boxes.get(type)?.data as Buffer
  const numbers = (data: Buffer, at: number, count: number) =>
    Array.from({ length: count }, (_, index) => data.readUInt32BE(at + index * 4))
  const sizes = numbers(dataOf('stsz'), 12, dataOf('stsz').readUInt32BE(8))
  let at = dataOf('stco').readUInt32BE(8)
  const data = boxes.get('mdat') as { start: number; data: Buffer }
  if (at !== data.start) throw new Error('the samples are not where the data is')
  const samples = sizes.map((bytes) => {
    at += bytes
    return file.subarray(at - bytes, at)
  })
  if (at !== data.start + data.data.length) throw new Error('samples and data differ in length')
  const runs = numbers(dataOf('stts'), 8, dataOf('stts').readUInt32BE(4) * 2)
  const times = runs.reduce((sum, run, index) => (index % 2 ? sum + run * (runs[index - 1] ?? 0) : sum), 0)
  const movie = dataOf('mvhd')
  if (movie.readUInt32BE(16) !== times) throw new Error('the frames do not fill the film')
  const track = dataOf('tkhd')
  return {
    width: track.readUInt32BE(76) / 65_536,
    height: track.readUInt32BE(80) / 65_536,
    seconds: movie.readUInt32BE(16) / movie.readUInt32BE(12),
    samples,
  }
}

/** The length of MPEG-2 Layer III at 8 kbit/s and 24 kHz; throws where a frame does not begin. */
export function readMp3(file: Buffer): { readonly seconds: number } {
  const frameBytes = 24
  for (let at = 0; at < file.length; at += frameBytes) {
    if (file.readUInt32BE(at) !== 0xfff314c4) throw new Error(`no frame at ${at}`)
  }
  if (file.length % frameBytes !== 0) throw new Error('the last frame is torn')
  return { seconds: ((file.length / frameBytes) * 24) / 1_000 }
}

/** What ffmpeg complains of when it decodes the whole file; null where this machine has none. */
export function complaintsOfDecoder(file: Buffer): string | null {
  const options = { input: file, encoding: 'utf8', maxBuffer: 1024 * 1024 } as const
  const run = spawnSync('ffmpeg', ['-v', 'error', '-xerror', '-i', 'pipe:0', '-f', 'null', '-'], options)
  return run.error === undefined ? run.stderr : null
}
