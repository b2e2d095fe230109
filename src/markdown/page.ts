/** A Markdown file as a page. */
import { createHash } from 'node:crypto'
import { type PageFields, pageFields, type SourceField, sourceOnly, TITLE_MAX_CHARS } from './fields.ts'
import { readFields, splitFile } from './front-matter.ts'
import { LINKS_MAX, plainPage } from './plain-text.ts'
import { badFile } from './problem.ts'
import { textOf } from './text.ts'

/** In every hash: to be raised when the same file makes another page than before. */
const READER_VERSION = 'tollgate page 1\n'
const EXTENSION = /\.(?:md|markdown)$/i

export interface ReadPage extends Omit<PageFields, 'title'> {
  readonly title: string
  /** Markdown. */
  readonly body: string
  /** Without its markup. */
  readonly text: string
  readonly links: readonly string[]
}

export const isPageName = (name: string): boolean => EXTENSION.test(name)

/** SHA-256 over what the file says, and over the content of the source that it names. */
export const pageHash = (bytes: Buffer, sourceHash: Buffer | null): Buffer => {
  const hash = createHash('sha256').update(READER_VERSION).update(bytes)
  return (sourceHash === null ? hash : hash.update('\0').update(sourceHash)).digest()
}

/** The source that the file names, without reading the rest where that is not needed. @throws BadFile */
export function sourceNamed(bytes: Buffer, path: string): SourceField | null {
  if (!bytes.includes('source')) return null
  const { frontMatter } = splitFile(textOf(bytes, path), path)
  return frontMatter?.includes('source') ? sourceOnly(readFields(frontMatter, path), path) : null
}

/** `path` is the file's, below the folder. @throws BadFile with every problem of the file */
export function readPage(bytes: Buffer, path: string): ReadPage {
  const { frontMatter, body } = splitFile(textOf(bytes, path), path)
  const fields = pageFields(frontMatter === null ? new Map() : readFields(frontMatter, path), path)
  const plain = plainPage(body)
  if (plain === null) throw badFile(path, 1, 'Its lists and quotations are nested too deeply. Flatten them.')
  if (plain.links.length > LINKS_MAX)
    throw badFile(path, 1, `It links to ${plain.links.length} pages, and may link to ${LINKS_MAX}. Split it.`)
  const title = fields.title ?? fallbackTitle(plain.heading, path)
  return { ...fields, title, body, text: plain.text, links: plain.links }
}

function fallbackTitle(heading: string | null, path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).replace(EXTENSION, '')
  const title = (heading ?? name).replace(/\s+/gu, ' ').trim()
  return [...(title || name)].slice(0, TITLE_MAX_CHARS).join('')
}
