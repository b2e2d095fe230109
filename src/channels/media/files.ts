/** The files of a result, from links, data URIs and bytes as upstreams give them. */
import { emptyResult, type ResultFile, type TaskResult } from '../../../schemas/media/job.ts'
import { readImageFacts } from '../../core/media/image-size.ts'
import { sniffMediaType } from '../../core/media/type.ts'
import type { DeliveredBytes, Produced } from './adapter.ts'

const MAX_LINK_CHARS = 8192

/** Place of a file: a link, or bytes in memory. */
export type FileSource =
  | { readonly type: 'link'; readonly url: string }
  | { readonly type: 'bytes'; readonly bytes: Buffer; readonly mediaType: string | null }

export interface FileFacts {
  readonly width?: number | null
  readonly height?: number | null
  readonly seconds?: number | null
  readonly track?: number | null
}

export interface Delivered {
  readonly role: ResultFile['role']
  readonly source: FileSource
  readonly facts: FileFacts
}

/** Returns a file in a list; an empty list without a source. */
export const toDelivered = (
  role: Delivered['role'],
  source: FileSource | null,
  facts: FileFacts = {},
): Delivered[] => (source === null ? [] : [{ role, source, facts }])

const DATA_URI = /^data:([a-z0-9.+-]+\/[a-z0-9.+-]+)?(?:;[a-z0-9=.+-]+)*;base64,/i

/** Returns a link or data URI of an upstream as a source; null for anything else. */
export function toSource(text: string | null): FileSource | null {
  if (text === null) return null
  if (/^data:/i.test(text)) {
    const head = DATA_URI.exec(text.slice(0, MAX_LINK_CHARS))
    return head === null ? null : decodeSource(text.slice(head[0].length), head[1]?.toLowerCase() ?? null)
  }
  const isLink = text.length <= MAX_LINK_CHARS && /^https?:\/\//i.test(text) && URL.canParse(text)
  return isLink ? { type: 'link', url: text } : null
}

/** Bytes of an answer that are searched for signs of a text instead of a file. */
const MAX_TEXT_BYTES = 1024
const BASE64 = /^[\w+/-]+[=\s]*$/
const LINE_BREAKS = /[\r\n]+/g

/** Control characters but tabs and the ends of lines: they distinguish a binary file from text. */
const isControl = (byte: number): boolean => byte < 0x09 || (byte > 0x0d && byte < 0x20)

/** Returns whether bytes are words: no picture and no sound consists only of printable characters. */
export function isText(bytes: Buffer): boolean {
  const head = bytes.subarray(0, MAX_TEXT_BYTES)
  return sniffMediaType(head) === null && !head.some(isControl)
}

/** Returns a source of bytes; null for an empty text, and for one that is not the bytes of a file. */
export function decodeSource(text: string, mediaType: string | null): FileSource | null {
  if (!BASE64.test(text.includes('\n') ? text.replace(LINE_BREAKS, '') : text)) return null
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === 0 || isText(bytes) ? null : { type: 'bytes', bytes, mediaType }
}

const DEFAULT_TYPES: Readonly<Record<ResultFile['role'], string>> = {
  image: 'image/png',
  cover: 'image/jpeg',
  video: 'video/mp4',
  audio: 'audio/mpeg',
}

const PICTURES = /^image\/(png|jpeg|webp|gif|avif)$/
/** Types that may be served under our own address: none that a browser would run. */
const ALLOWED_TYPES: Readonly<Record<ResultFile['role'], RegExp>> = {
  image: PICTURES,
  cover: PICTURES,
  video: /^video\/[\w.+-]+$/,
  audio: /^audio\/[\w.+-]+$/,
}

/** Returns the reported type of some bytes if it is plausible, else the default one. */
const chooseType = (role: ResultFile['role'], said: string | null): string =>
  said !== null && ALLOWED_TYPES[role].test(said) ? said : DEFAULT_TYPES[role]

/** Returns a file. The type in its bytes takes precedence over the reported type. */
function toResultFile({ role, source, facts }: Delivered): ResultFile {
  const isPicture = role === 'image' || role === 'cover'
  const seen = source.type === 'bytes' && isPicture ? readImageFacts(source.bytes) : null
  const said = source.type === 'bytes' ? chooseType(role, source.mediaType) : null
  return {
    role,
    upstream_url: source.type === 'link' ? source.url : null,
    key: null,
    media_type: seen?.mediaType ?? said,
    width: seen?.width ?? facts.width ?? null,
    height: seen?.height ?? facts.height ?? null,
    seconds: facts.seconds ?? null,
    track: facts.track ?? null,
  }
}

/** Returns a result with its files, and the bytes of those that were in the answer. */
export function makeProduced(items: readonly Delivered[], rest: Partial<TaskResult> = {}): Produced {
  const files = items.map(toResultFile)
  const inline = items.flatMap(({ source }, file): DeliveredBytes[] =>
    source.type === 'bytes'
      ? [{ file, bytes: source.bytes, mediaType: files[file]?.media_type ?? 'application/octet-stream' }]
      : [],
  )
  return { type: 'produced', result: { ...emptyResult(), ...rest, files }, inline }
}
