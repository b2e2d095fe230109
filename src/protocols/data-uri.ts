/** Files that stand in a request themselves. */

export interface InlineFile {
  /** In lower case, without parameters. */
  readonly mediaType: string
  readonly base64: string
}

const DATA = 'data:'
const BASE64 = ';base64'

export const isDataUri = (uri: string): boolean => uri.slice(0, DATA.length).toLowerCase() === DATA

/** Null for a data URI that is not base64 or names no media type. */
export function readDataUri(uri: string): InlineFile | null {
  const comma = uri.indexOf(',')
  if (!isDataUri(uri) || comma < 0) return null
  const head = uri.slice(DATA.length, comma).toLowerCase()
  if (!head.endsWith(BASE64)) return null
  const mediaType = head.split(';', 1)[0]!.trim()
  return mediaType === '' ? null : { mediaType, base64: uri.slice(comma + 1) }
}
