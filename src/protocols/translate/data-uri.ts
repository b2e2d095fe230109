/** Reads files that are part of a request, and the types of those that are fetched for one. */
import { Buffer } from 'node:buffer'
import { SNIFF_BYTES, sniffMediaType } from '../../core/media/type.ts'

export interface InlineFile {
  /** In lower case, without parameters. */
  readonly mediaType: string
  readonly base64: string
}

const DATA = 'data:'
const BASE64 = ';base64'
const BASE64_TEXT = /^[A-Za-z0-9+/]+={0,2}$/

export const isDataUri = (uri: string): boolean => uri.slice(0, DATA.length).toLowerCase() === DATA

/** Returns the file; null for a data URI that is not base64 or names no media type. */
export function readDataUri(uri: string): InlineFile | null {
  const comma = uri.indexOf(',')
  if (!isDataUri(uri) || comma < 0) return null
  const head = uri.slice(DATA.length, comma).toLowerCase()
  if (!head.endsWith(BASE64)) return null
  const mediaType = toRegisteredType(head.split(';', 1)[0]!.trim())
  return mediaType === '' ? null : { mediaType, base64: uri.slice(comma + 1) }
}

/** Never registered, often sent. */
const MISNAMED_JPEG = 'image/jpg'
const toRegisteredType = (mediaType: string): string =>
  mediaType === MISNAMED_JPEG ? 'image/jpeg' : mediaType

/** By the ending of the file's name, for clients that send its bytes without their type. */
const TYPES_BY_ENDING: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  xml: 'application/xml',
  wav: 'audio/wav',
  mp3: 'audio/mp3',
}

function typeByEnding(name: string): string | null {
  const ending = name.split('.').at(-1)!.toLowerCase()
  return Object.hasOwn(TYPES_BY_ENDING, ending) ? TYPES_BY_ENDING[ending]! : null
}

/** Reads a data URI, or only base64 of a file whose name implies its type; returns null for anything else. */
export function readFileData(data: string, filename: string | null | undefined): InlineFile | null {
  if (isDataUri(data)) return readDataUri(data)
  const mediaType = typeByEnding(filename ?? '')
  return mediaType === null || !BASE64_TEXT.test(data) ? null : { mediaType, base64: data }
}

/** Types by which a server says that it does not know. */
const UNKNOWN_TYPES: ReadonlySet<string> = new Set(['', 'application/octet-stream', 'binary/octet-stream'])

/** Returns the type of a fetched file: from its server, its bytes or its name; null where none of them has it. */
export function findFetchedType({ mediaType, base64 }: InlineFile, url: string): string | null {
  if (!UNKNOWN_TYPES.has(mediaType)) return toRegisteredType(mediaType)
  const head = Buffer.from(base64.slice(0, 2 * SNIFF_BYTES), 'base64')
  return sniffMediaType(head) ?? typeByEnding(URL.parse(url)?.pathname ?? '')
}
