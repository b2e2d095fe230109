/** A YAML text as plain values, with the place of every field and the environment filled in. */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { type Path, type Problem, printField } from './problem.ts'

/** Bounds that keep a file of aliases to aliases from unfolding without end. */
const MAX_DEPTH = 32
const MAX_NODES = 100_000

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g
/** The beginning of a variable that nothing ends. */
const UNCLOSED = /\$\{[^}]*$/

export type Environment = Readonly<Record<string, string | undefined>>

export interface Source {
  readonly value: unknown
  readonly problems: readonly Problem[]
  /** Every `${NAME}` that the file mentions. */
  readonly variables: ReadonlySet<string>
  /** Returns a problem at a field; one that is not in the file is placed at its nearest parent. */
  toProblem(path: Path, message: string): Problem
  /** Returns a problem with the field's name rather than its value. */
  toProblemWithKey(path: Path, message: string): Problem
  /** Returns names of unset variables in the field's text. */
  findUnset(path: Path): readonly string[]
}

interface Place {
  readonly value: number
  /** Place of the key; for a list item, its beginning. */
  readonly key: number
  readonly unset: readonly string[]
}

/**
 * Reads YAML. `${NAME}` is replaced in string values after that, so that no value can change its structure; null
 * leaves it as text.
 */
export function readSource(text: string, file: string, env: Environment | null): Source {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const problems: Problem[] = []
  const at = (offset: number, field: string, message: string): Problem => {
    const { line, col } = lines.linePos(offset)
    return { file, line: Math.max(line, 1), column: Math.max(col, 1), field, message }
  }
  for (const { pos, message } of [...document.errors, ...document.warnings]) {
    problems.push(at(pos[0], '', message))
  }
  const reader = new Reader(document, text, env)
  let value: unknown = null
  try {
    if (problems.length === 0) value = reader.read(document.contents, [], null)
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    problems.push(at(error.offset, printField(error.path), error.message))
  }
  const { places, variables } = reader
  return {
    value,
    problems,
    variables,
    toProblem(path, message) {
      const exact = places.get(printField(path))
      return at(exact ? exact.value : findPlace(places, path).key, printField(path), message)
    },
    toProblemWithKey: (path, message) => at(findPlace(places, path).key, printField(path), message),
    findUnset: (path) => places.get(printField(path))?.unset ?? [],
  }
}

const START: Place = { value: 0, key: 0, unset: [] }

/** Returns the place of a field, or of its nearest parent in the file. */
function findPlace(places: ReadonlyMap<string, Place>, path: Path): Place {
  for (let length = path.length; length > 0; length--) {
    const place = places.get(printField(path.slice(0, length)))
    if (place) return place
  }
  return START
}

class Unreadable extends Error {
  readonly offset: number
  readonly path: Path
  constructor(offset: number, path: Path, message: string) {
    super(message)
    this.offset = offset
    this.path = path
  }
}

class Reader {
  readonly places = new Map<string, Place>()
  readonly variables = new Set<string>()
  readonly #document: Document
  readonly #text: string
  readonly #env: Environment | null
  #nodes = 0

  constructor(document: Document, text: string, env: Environment | null) {
    this.#document = document
    this.#text = text
    this.#env = env
  }

  read(node: unknown, path: Path, keyOffset: number | null): unknown {
    const offset = (node as Node | null)?.range?.[0] ?? keyOffset ?? 0
    if (++this.#nodes > MAX_NODES || path.length > MAX_DEPTH) {
      throw new Unreadable(offset, path, 'The file is nested too deeply or its aliases unfold to too much.')
    }
    this.#assertClosed(node, path, offset)
    if (isAlias(node)) return this.read(node.resolve(this.#document), path, keyOffset ?? offset)
    const text = isScalar(node) && typeof node.value === 'string' ? this.#fillIn(node.value) : null
    this.places.set(printField(path), { value: offset, key: keyOffset ?? offset, unset: text?.unset ?? [] })
    if (text !== null) return text.value
    if (isScalar(node)) return node.value
    if (isSeq(node)) return node.items.map((item, index) => this.read(item, [...path, index], null))
    if (isMap(node)) return Object.fromEntries(node.items.map((pair) => this.#readEntry(pair, path, offset)))
    return null
  }

  #readEntry(pair: { key: unknown; value: unknown }, path: Path, offset: number): [string, unknown] {
    const { key, value } = pair
    if (!isScalar(key)) throw new Unreadable(offset, path, 'A field name must be plain text.')
    const name = String(key.value)
    return [name, this.read(value, [...path, name], key.range?.[0] ?? offset)]
  }

  /**
   * Checks that each `${` is closed, in the file's own text where possible, so that the place is that of the `${`
   * itself.
   */
  #assertClosed(node: unknown, path: Path, offset: number): void {
    if (this.#env === null || !isScalar(node) || typeof node.value !== 'string') return
    if (!UNCLOSED.test(node.value)) return
    const [from, to] = node.range ?? [offset, offset]
    const at = this.#text.slice(from, to).lastIndexOf('${')
    const message = 'A "${" has no closing brace: a variable is written ${NAME}.'
    throw new Unreadable(at < 0 ? offset : from + at, path, message)
  }

  #fillIn(text: string): { value: string; unset: string[] } {
    const env = this.#env
    const unset: string[] = []
    if (env === null) return { value: text, unset }
    const value = text.replace(VARIABLE, (_, name: string) => {
      this.variables.add(name)
      const found = env[name] ?? ''
      if (found === '') unset.push(name)
      return found
    })
    return { value, unset }
  }
}
