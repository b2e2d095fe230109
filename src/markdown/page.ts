/** A Markdown file as a page. */
import { createHash } from 'node:crypto'
import { TooMuchMarkup } from './bounded-lexer.ts'
import {
  type PageFields,
  readPageFields,
  readSourceOnly,
  type SourceField,
  TITLE_MAX_CHARS,
} from './fields.ts'
import { readFields, splitFile } from './front-matter.ts'
import { LINKS_MAX, type PlainPage, renderPlain } from './plain-text.ts'
import { fileProblemError } from './problem.ts'
import { decodeText, findLine } from './text.ts'

/** In every hash: to be raised when the same file makes another page than before. */
const READER_VERSION = 'tollgate page 1\n'
const EXTENSION = /\.(?:md|markdown)$/i

interface ReadPage extends Omit<PageFields, 'title'> {
  readonly title: string
  /** Markdown. */
  readonly body: string
  /** Without its markup. */
  readonly text: string
  readonly links: readonly string[]
}

export const isPageName = (name: string): boolean => EXTENSION.test(name)

/** Returns SHA-256 over the content of the file, and over that of the source that it names. */
export const hashPage = (bytes: Buffer, sourceHash: Buffer | null): Buffer => {
  const hash = createHash('sha256').update(READER_VERSION).update(bytes)
  return (sourceHash === null ? hash : hash.update('\0').update(sourceHash)).digest()
}

/**
 * Returns the source that the file names, without reading the rest where possible.
 * @throws FileProblemError
 */
export function readNamedSource(bytes: Buffer, path: string): SourceField | null {
  if (!bytes.includes('source')) return null
  const { frontMatter } = splitFile(decodeText(bytes, path), path)
  return frontMatter?.includes('source') ? readSourceOnly(readFields(frontMatter, path), path) : null
}

/**
 * Reads a page. `path` is the file's, below the folder.
 * @throws FileProblemError with every problem of the file
 */
export function readPage(bytes: Buffer, path: string): ReadPage {
  const content = decodeText(bytes, path)
  const { frontMatter, body } = splitFile(content, path)
  const fields = readPageFields(frontMatter === null ? new Map() : readFields(frontMatter, path), path)
  const plain = toPlainPage(body, content, path)
  if (plain === null)
    throw fileProblemError(path, 1, 'Its lists and quotations are nested too deeply. Flatten them.')
  if (plain.links.length > LINKS_MAX)
    throw fileProblemError(
      path,
      1,
      `It links to ${plain.links.length} pages, and may link to ${LINKS_MAX}. Split it.`,
    )
  const title = fields.title ?? chooseTitle(plain.heading, path)
  return { ...fields, title, body, text: plain.text, links: plain.links }
}

/** @throws FileProblemError for markup that would take too long to read, at the line where it is */
function toPlainPage(body: string, content: string, path: string): PlainPage | null {
  try {
    return renderPlain(body)
  } catch (error) {
    if (!(error instanceof TooMuchMarkup)) throw error
    const [firstLine = ''] = error.text.split('\n', 1)
    const line = findLine(content, content.lastIndexOf(body) + Math.max(body.indexOf(firstLine), 0))
    throw fileProblemError(
      path,
      line,
      'It has too much markup in one paragraph or table, or too deep in one another. Part it by empty lines.',
    )
  }
}

function chooseTitle(heading: string | null, path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).replace(EXTENSION, '')
  const title = (heading ?? name).replace(/\s+/gu, ' ').trim()
  return [...(title || name)].slice(0, TITLE_MAX_CHARS).join('')
}
