/** The YAML between two lines of `---` at the beginning of a file, as fields with their lines. */
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { FileProblemError, fileProblemError } from './problem.ts'

const OPENING = /^---[ \t]*\n/
const CLOSING = /^(?:---|\.\.\.)[ \t]*$/gm
/** Of the file: the one that opens the front matter is the first. */
const FIRST_LINE = 2
const FRONT_MATTER_MAX_BYTES = 64 * 1024
/** Bounds that keep aliases to aliases from unfolding without end. */
const MAX_DEPTH = 4
const MAX_NODES = 10_000
/** Of one file are named. */
const MISTAKES_MAX = 20

/** Value of a field: text as written (numbers too), true or false, a list, nested fields, or null. */
export type Value = string | boolean | null | readonly Field[] | Fields

export interface Field {
  readonly value: Value
  readonly line: number
}

export type Fields = ReadonlyMap<string, Field>

interface SplitFile {
  /** Null where the file has none. */
  readonly frontMatter: string | null
  /** The text after it, without leading empty lines and trailing white space. */
  readonly body: string
}

const BLANK_START = /^(?:[ \t]*\n)+/

const trimBody = (text: string): string => text.replace(BLANK_START, '').trimEnd()

/** @throws FileProblemError when the front matter has no end */
export function splitFile(text: string, file: string): SplitFile {
  const opening = OPENING.exec(text)
  if (opening === null) return { frontMatter: null, body: trimBody(text) }
  CLOSING.lastIndex = opening[0].length
  const closing = CLOSING.exec(text)
  if (closing === null)
    throw fileProblemError(
      file,
      1,
      'The front matter that begins here has no end. Close it with a line of ---.',
    )
  const frontMatter = text.slice(opening[0].length, closing.index)
  return { frontMatter, body: trimBody(text.slice(closing.index + closing[0].length + 1)) }
}

/** @throws FileProblemError with every mistake of the YAML */
export function readFields(frontMatter: string, file: string): Fields {
  if (Buffer.byteLength(frontMatter) > FRONT_MATTER_MAX_BYTES)
    throw fileProblemError(
      file,
      1,
      `The front matter has more than ${FRONT_MATTER_MAX_BYTES} bytes. Move text to the body.`,
    )
  const lines = new LineCounter()
  const findLineAt = (offset: number) => Math.max(lines.linePos(offset).line, 1) + FIRST_LINE - 1
  // The parser compares each name with all before it, and looks for the anchor of an alias from the top: readValue does
  // both in one pass.
  const document = parseDocument(frontMatter, { lineCounter: lines, prettyErrors: false, uniqueKeys: false })
  const mistakes = [...document.errors, ...document.warnings]
  if (mistakes.length > 0)
    throw new FileProblemError(
      mistakes.slice(0, MISTAKES_MAX).map(({ pos, message }) => ({
        file,
        line: findLineAt(pos[0]),
        message: `The front matter: ${message}`,
      })),
    )
  if (document.contents === null) return new Map()
  const root = readValue(document.contents, {
    anchors: new Map(),
    isAlias: false,
    file,
    findLineAt,
    depth: 0,
    count: { nodes: 0 },
  })
  if (root === null) return new Map()
  if (root instanceof Map) return root
  throw fileProblemError(file, FIRST_LINE, 'The front matter must be lines such as "title: A title".')
}

interface Reading {
  /** Nodes by their anchors, the last of each name: an alias stands for it. */
  readonly anchors: Map<string, Node>
  /** Within what an alias stands for: it has been read before. */
  readonly isAlias: boolean
  readonly file: string
  readonly depth: number
  readonly count: { nodes: number }
  findLineAt(offset: number): number
}

function readField(node: unknown, fallbackLine: number, reading: Reading): Field {
  const range = (node as { range?: readonly number[] } | null)?.range
  const line = range?.[0] === undefined ? fallbackLine : reading.findLineAt(range[0])
  if (reading.depth > MAX_DEPTH || ++reading.count.nodes > MAX_NODES)
    throw fileProblemError(
      reading.file,
      line,
      'The front matter is nested too deeply, or its aliases unfold to too much.',
    )
  return { value: readValue(node, { ...reading, depth: reading.depth + 1 }), line }
}

function keepAnchor(node: unknown, { anchors, isAlias: isKnown }: Reading): void {
  if (isNode(node) && !isAlias(node) && node.anchor !== undefined && !isKnown) anchors.set(node.anchor, node)
}

function readValue(node: unknown, reading: Reading): Value {
  if (isAlias(node)) {
    const meant = reading.anchors.get(node.source)
    // An author of `title: *Important*` does not mean YAML's alias: the text would be lost silently.
    if (meant === undefined)
      throw fileProblemError(
        reading.file,
        reading.findLineAt(node.range?.[0] ?? 0),
        'A text that begins with * needs quotes.',
      )
    return readValue(meant, { ...reading, isAlias: true, depth: reading.depth + 1 })
  }
  keepAnchor(node, reading)
  if (isScalar(node)) {
    const { value, source } = node
    if (typeof value === 'boolean' || value === null) return value
    return (typeof value === 'string' ? value : (source ?? String(value))).toWellFormed()
  }
  if (isSeq(node)) return node.items.map((item) => readField(item, FIRST_LINE, reading))
  if (!isMap(node)) return null
  const fields = new Map<string, Field>()
  for (const { key, value } of node.items) {
    const line = reading.findLineAt((key as { range?: readonly number[] } | null)?.range?.[0] ?? 0)
    if (!isScalar(key)) throw fileProblemError(reading.file, line, "A field's name must be plain text.")
    keepAnchor(key, reading)
    const name = String(key.value)
    if (fields.has(name))
      throw fileProblemError(reading.file, line, 'The front matter: Map keys must be unique')
    // The line of its name, where a reader expects the fault, not that of its value.
    fields.set(name, { ...readField(value, line, reading), line })
  }
  return fields
}
