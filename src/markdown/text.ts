/** The bytes of a file as text. */
import { isUtf8 } from 'node:buffer'
import { fileProblemError } from './problem.ts'

/** Larger pages are of no use to readers and models. */
export const PAGE_MAX_BYTES = 2 * 1024 * 1024

const NEWLINE = 0x0a
const NUL = '\0'
const LINE_ENDS = /\r\n?/g

const decoder = new TextDecoder('utf-8', { fatal: true })

export const findLine = (text: string, offset: number): number => {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line++
  return line
}

/**
 * Returns the first line that is not UTF-8. No sequence of UTF-8 has a newline in it, so each line is checked
 * separately.
 */
function findBadLine(bytes: Buffer): number {
  let line = 1
  for (let start = 0; ; line++) {
    const end = bytes.indexOf(NEWLINE, start)
    if (end === -1 || !isUtf8(bytes.subarray(start, end))) return line
    start = end + 1
  }
}

/**
 * Returns the text without a byte order mark, with `\n` at the ends of its lines.
 * @throws FileProblemError
 */
export function decodeText(bytes: Buffer, file: string): string {
  if (bytes.length > PAGE_MAX_BYTES) throw tooLarge(file, bytes.length)
  if (!isUtf8(bytes))
    throw fileProblemError(file, findBadLine(bytes), 'This is not UTF-8 text. Save the file in UTF-8.')
  const text = decoder.decode(bytes).replace(LINE_ENDS, '\n')
  const nul = text.indexOf(NUL)
  if (nul !== -1)
    throw fileProblemError(
      file,
      findLine(text, nul),
      'This is not text: it has a NUL. Save the file in UTF-8.',
    )
  return text
}

export const tooLarge = (file: string, bytes: number) =>
  fileProblemError(
    file,
    1,
    `The file has ${bytes} bytes, and a page at most ${PAGE_MAX_BYTES}. Split it into several pages.`,
  )
