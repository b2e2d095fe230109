/** Reads files that are part of a request. */

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
  const mediaType = head.split(';', 1)[0]!.trim()
  return mediaType === '' ? null : { mediaType, base64: uri.slice(comma + 1) }
}

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

/** Reads a data URI, or base64 alone of a file whose name implies its type; returns null for anything else. */
export function readFileData(data: string, filename: string | null | undefined): InlineFile | null {
  if (isDataUri(data)) return readDataUri(data)
  const ending = (filename ?? '').split('.').at(-1)!.toLowerCase()
  const mediaType = Object.hasOwn(TYPES_BY_ENDING, ending) ? TYPES_BY_ENDING[ending]! : null
  return mediaType === null || !BASE64_TEXT.test(data) ? null : { mediaType, base64: data }
}
