/** Fields of a page's front matter. See docs/knowledge.md, "From a folder to a base". */
import { TAG_MAX_CHARS } from '../../schemas/knowledge/wiki.ts'
import { nameKey } from '../core/search/name-key.ts'
import type { Field, Fields, Value } from './front-matter.ts'
import { type FileProblem, FileProblemError } from './problem.ts'

export const TITLE_MAX_CHARS = 300
const SUMMARY_MAX_CHARS = 4_000
const LIST_MAX_ITEMS = 200
const NOTE_MAX_CHARS = 200
const NUL = '\0'

const KNOWN = ['title', 'summary', 'tags', 'aliases', 'confidence', 'needs_review', 'source'] as const
const KNOWN_OF_SOURCE = ['filename', 'locator', 'compiled_at', 'model'] as const
/** Other ways to write them that cannot mean anything else. */
const MISSPELLINGS: Readonly<Record<string, string>> = {
  tag: 'tags',
  alias: 'aliases',
  sources: 'source',
  needsreview: 'needs_review',
  compiledat: 'compiled_at',
}

/** As the front matter names a source file; whether there is such a file is not known here. */
export interface SourceField {
  readonly line: number
  readonly filename: string
  readonly locator: string | null
  readonly compiledAt: string | null
  readonly model: string | null
}

export interface PageFields {
  /** Null: absent. */
  readonly title: string | null
  readonly summary: string
  readonly tags: readonly string[]
  readonly aliases: readonly string[]
  readonly confidence: string
  readonly needsReview: boolean
  readonly source: SourceField | null
  /** Fields that mean nothing here. */
  readonly ignored: readonly string[]
}

/** @throws FileProblemError with every problem */
export function readPageFields(fields: Fields, file: string): PageFields {
  const reader = new FieldReader(fields, file)
  const page = {
    ignored: reader.listUnknown(KNOWN),
    title: reader.readText('title', TITLE_MAX_CHARS),
    summary: reader.readText('summary', SUMMARY_MAX_CHARS) ?? '',
    tags: reader.list('tags', TAG_MAX_CHARS),
    aliases: reader.list('aliases', TITLE_MAX_CHARS),
    confidence: reader.readText('confidence', NOTE_MAX_CHARS) ?? '',
    needsReview: reader.readFlag('needs_review'),
    source: readSourceField(reader, fields.get('source')),
  }
  if (reader.problems.length > 0) throw new FileProblemError(reader.problems)
  return page
}

/** @throws FileProblemError */
export function readSourceOnly(fields: Fields, file: string): SourceField | null {
  const reader = new FieldReader(fields, file)
  const source = readSourceField(reader, fields.get('source'))
  if (reader.problems.length > 0) throw new FileProblemError(reader.problems)
  return source
}

function readSourceField(reader: FieldReader, field: Field | undefined): SourceField | null {
  if (field === undefined || field.value === null) return null
  const { line, value } = field
  const none = { line, locator: null, compiledAt: null, model: null }
  if (typeof value === 'string') return value.trim() === '' ? null : { ...none, filename: value.trim() }
  if (!(value instanceof Map)) {
    reader.addProblem(field, 'source must be a file name, or fields such as "filename: report.pdf".')
    return null
  }
  const source = reader.readWithin(value, 'source.')
  source.listUnknown(KNOWN_OF_SOURCE)
  const filename = source.readText('filename', TITLE_MAX_CHARS)
  if (filename === null && !value.has('filename'))
    source.addProblem(field, 'source.filename is required: the name of the file that the page was made from.')
  return {
    line,
    filename: filename ?? '',
    locator: source.readText('locator', NOTE_MAX_CHARS),
    compiledAt: source.readText('compiled_at', NOTE_MAX_CHARS),
    model: source.readText('model', NOTE_MAX_CHARS),
  }
}

const describe = (value: Value): string => {
  if (value === null) return 'nothing'
  if (typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return 'text'
  return value instanceof Map ? 'nested fields' : 'a list'
}

class FieldReader {
  readonly problems: FileProblem[]
  readonly #fields: Fields
  readonly #file: string
  readonly #prefix: string

  constructor(fields: Fields, file: string, prefix = '', problems: FileProblem[] = []) {
    this.#fields = fields
    this.#file = file
    this.#prefix = prefix
    this.problems = problems
  }

  /** Returns a reader of a field's own fields; problems go to the same list. */
  readWithin(fields: Fields, prefix: string): FieldReader {
    return new FieldReader(fields, this.#file, prefix, this.problems)
  }

  addProblem({ line }: { readonly line: number }, message: string): void {
    this.problems.push({ file: this.#file, line, message })
  }

  /** Returns unknown names. A misspelt one is a problem: its value would be lost. */
  listUnknown(known: readonly string[]): string[] {
    const unknown = [...this.#fields].filter(([name]) => !known.includes(name))
    for (const [name, field] of unknown) {
      const bare = name.toLowerCase().replace(/[\s_-]/g, '')
      const meant = known.find((one) => one === (MISSPELLINGS[bare] ?? bare))
      if (meant === undefined) continue
      this.addProblem(field, `${this.#prefix}${name}: there is no such field. Write ${meant}.`)
    }
    return unknown.map(([name]) => name)
  }

  /** Returns a text; null for an absent or empty one. */
  readText(name: string, maxChars: number): string | null {
    const field = this.#fields.get(name)
    if (field === undefined || field.value === null) return null
    if (typeof field.value !== 'string' && typeof field.value !== 'boolean') {
      this.addProblem(field, `${this.#prefix}${name} must be text, not ${describe(field.value)}.`)
      return null
    }
    return this.#checkLength(field, name, String(field.value).trim(), maxChars) || null
  }

  #checkLength(field: Field, name: string, text: string, maxChars: number): string {
    if (text.includes(NUL)) this.addProblem(field, `${this.#prefix}${name} has a NUL in it. Take it out.`)
    if (text.length > maxChars)
      this.addProblem(
        field,
        `${this.#prefix}${name} has ${text.length} characters, and may have ${maxChars}. Shorten it.`,
      )
    return text
  }

  readFlag(name: string): boolean {
    const field = this.#fields.get(name)
    if (field === undefined || field.value === null) return false
    if (typeof field.value === 'boolean') return field.value
    this.addProblem(field, `${this.#prefix}${name} must be true or false.`)
    return false
  }

  /** Returns a list, also from a text with commas. Each item once, in any spelling. */
  list(name: string, maxChars: number): string[] {
    const field = this.#fields.get(name)
    if (field === undefined || field.value === null) return []
    const items = new Map<string, string>()
    for (const item of this.#readItems(field, name)) {
      const text = this.#checkLength(item, name, item.text, maxChars)
      if (text !== '' && !items.has(nameKey(text))) items.set(nameKey(text), text)
    }
    if (items.size > LIST_MAX_ITEMS)
      this.addProblem(
        field,
        `${name} has ${items.size} entries, and may have ${LIST_MAX_ITEMS}. Leave some out.`,
      )
    return [...items.values()]
  }

  #readItems(field: Field, name: string): (Field & { text: string })[] {
    const { value } = field
    if (typeof value === 'string') return value.split(',').map((part) => ({ ...field, text: part.trim() }))
    if (typeof value === 'boolean') return [{ ...field, text: String(value) }]
    if (value instanceof Map || value === null) {
      this.addProblem(field, `${name} must be a list, or text with commas, not ${describe(value)}.`)
      return []
    }
    return (value as readonly Field[]).flatMap((item) => {
      if (typeof item.value === 'string' || typeof item.value === 'boolean')
        return [{ ...item, text: String(item.value).trim() }]
      if (item.value !== null)
        this.addProblem(item, `An entry of ${name} must be text, not ${describe(item.value)}.`)
      return []
    })
  }
}
