/** Finds the kind of a file by its first bytes and by its name. */
import type { ResultFile } from '../../../schemas/media/job.ts'

/** The first bytes that identify every known type. */
export const SNIFF_BYTES = 64

export const UNKNOWN_MEDIA_TYPE = 'application/octet-stream'

const EXTENSIONS: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  avif: 'image/avif',
  heic: 'image/heic',
  heif: 'image/heif',
  mp4: 'video/mp4',
  mov: 'video/quicktime',
  webm: 'video/webm',
  mp3: 'audio/mpeg',
  m4a: 'audio/mp4',
  wav: 'audio/wav',
  ogg: 'audio/ogg',
  flac: 'audio/flac',
  aac: 'audio/aac',
}
const BY_TYPE = new Map(Object.entries(EXTENSIONS).map(([extension, type]) => [type, extension]))

/** Returns the extension without a dot; null for an unknown type. */
export const findExtension = (mediaType: string): string | null => BY_TYPE.get(mediaType) ?? null

/** Returns the type of a name's extension; null without one, or for an unknown one. */
export function findMediaType(name: string): string | null {
  const dot = name.lastIndexOf('.')
  return dot < 0 ? null : (EXTENSIONS[name.slice(dot + 1).toLowerCase()] ?? null)
}

const text = (bytes: Uint8Array, from: number, to: number): string =>
  String.fromCharCode(...bytes.subarray(from, to))

/** Brands of the ISO base media file format (ISO/IEC 14496-12) that are no film of MPEG-4; any other is. */
const BRANDS: Readonly<Record<string, string>> = {
  'M4A ': 'audio/mp4',
  'M4B ': 'audio/mp4',
  'qt  ': 'video/quicktime',
  avif: 'image/avif',
  avis: 'image/avif',
  heic: 'image/heic',
  heix: 'image/heic',
  mif1: 'image/heif',
  msf1: 'image/heif',
}

function inRiff(bytes: Uint8Array): string | null {
  const form = text(bytes, 8, 12)
  if (form === 'WEBP') return 'image/webp'
  return form === 'WAVE' ? 'audio/wav' : null
}

/** Frames of MPEG audio begin with eleven set bits; layer 0 is what AAC in ADTS has in the same place. */
function ofFrame(second: number): string | null {
  if ((second & 0xe0) !== 0xe0) return null
  if ((second & 0x06) === 0) return (second & 0xf0) === 0xf0 ? 'audio/aac' : null
  return (second & 0x18) === 0x08 ? null : 'audio/mpeg'
}

/** Returns the type; null without a known signature: a type is never guessed. */
export function sniffMediaType(bytes: Uint8Array): string | null {
  const head = text(bytes, 0, 4)
  if (head === '\x89PNG') return 'image/png'
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (head === 'GIF8') return 'image/gif'
  if (head === 'RIFF') return inRiff(bytes)
  if (head === 'OggS') return 'audio/ogg'
  if (head === 'fLaC') return 'audio/flac'
  if (head === '\x1aE\xdf\xa3') return 'video/webm'
  if (text(bytes, 4, 8) === 'ftyp') return BRANDS[text(bytes, 8, 12)] ?? 'video/mp4'
  if (head.startsWith('ID3')) return 'audio/mpeg'
  return bytes[0] === 0xff && bytes.length > 1 ? ofFrame(bytes[1]!) : null
}

/** Types of files by what they are delivered as: a GIF can move, Ogg can hold a film, and a container of films a sound. */
const TYPES: Readonly<Record<ResultFile['role'], RegExp>> = {
  image: /^image\//,
  cover: /^image\//,
  video: /^(?:video\/|image\/gif$|audio\/ogg$)/,
  audio: /^(?:audio|video)\//,
}

/** Returns false for a type that is certainly none of what was ordered, such as a picture in place of a video. */
export const isOfRole = (role: ResultFile['role'], mediaType: string): boolean => TYPES[role].test(mediaType)
