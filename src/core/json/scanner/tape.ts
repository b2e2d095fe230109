/**
 * Scans a JSON text and finds the places of its values, without making a string or an object of it. Checks the whole
 * text, as strictly as the runtime's parser does. The page README.md of this folder says why it is not a library.
 */
import { StringInterner } from '../../string-interner.ts'
import type { FieldSpan } from '../splice.ts'
import { inLargerMemory, scanner, text, USUAL_TEXT_BYTES, WORD_BYTES, words } from './memory.ts'
import type { FieldFinder, KnownNames, Words } from './sets.ts'

export { FieldFinder, KnownNames, Words } from './sets.ts'

/** Kinds of values, as the scanner has them. */
export const OBJECT = 1
export const ARRAY = 2
export const STRING = 3
const NUMBER = 4
const TRUE = 5
const FALSE = 6
const NULL = 7
/** Added to the kind of a string or a name that holds a backslash. */
const ESCAPED = 16

/** A node of the tape: its kind, its start, its end, and the node after all that it holds. */
const NODE_WORDS = 4
const FIRST_WORD = scanner.TAPE.value / WORD_BYTES
const START = 1
const END = 2
const AFTER = 3

/** Objects and arrays inside one another; a text that is a scalar has none. Later code may be recursive. */
export const MAX_JSON_LEVELS = scanner.MAX_LEVELS.value

/** The digits of a number of at most this many bytes make one that is exact. */
const PLAIN_NUMBER_BYTES = 15
const POWERS_OF_TEN = Array.from({ length: PLAIN_NUMBER_BYTES }, (_, power) => 10 ** power)
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30

/** Most strings that are read name a model or a mode. */
const interner = new StringInterner()

/** Tests one value. */
export type NodeTest = (tape: Tape, node: number) => boolean

/**
 * The values of a scanned text. A value is a node, a number: 0 is the whole text, and in the results of `found` an
 * absent field. The tape of an object is its fields, a name and a value each; that of a list its items.
 *
 * It is valid only inside the `read` of its scan. What a caller keeps are places in its own text.
 */
export class Tape {
  #word(node: number, part: number): number {
    return words[FIRST_WORD + NODE_WORDS * node + part]!
  }

  readKind(node: number): number {
    return this.#word(node, 0) & ~ESCAPED
  }

  /** Returns the index at which the value begins in the text; of a string or a name, after its quote. */
  readStart(node: number): number {
    return this.#word(node, START)
  }

  readEnd(node: number): number {
    return this.#word(node, END)
  }

  /** Returns the node after all nodes inside this one. */
  nodeAfter(node: number): number {
    return this.#word(node, AFTER)
  }

  /** Returns true when the whole text is an object. */
  get isObjectText(): boolean {
    return this.readKind(0) === OBJECT
  }

  /** Returns true for an absent value or null. */
  isMissing(node: number): boolean {
    return node === 0 || this.readKind(node) === NULL
  }

  isObject(node: number): boolean {
    return node !== 0 && this.readKind(node) === OBJECT
  }

  isList(node: number): boolean {
    return node !== 0 && this.readKind(node) === ARRAY
  }

  isText(node: number): boolean {
    return node !== 0 && this.readKind(node) === STRING
  }

  /** Returns true for an object with fields, a list with items, or a string with characters. */
  isFull(node: number): boolean {
    if (this.isText(node)) return this.readEnd(node) > this.readStart(node)
    return (this.isObject(node) || this.isList(node)) && this.nodeAfter(node) > node + 1
  }

  /** Returns true when the value is one of the strings, written without escapes. */
  isOneOf(set: Words, node: number): boolean {
    return scanner.wordAt(node, set.at) >= 0
  }

  /** Returns the number of items, or -1 for a value that is no list or has an item that fails the test. */
  countItems(list: number, isItem: NodeTest): number {
    if (!this.isList(list)) return -1
    const end = this.nodeAfter(list)
    let count = 0
    for (let item = list + 1; item < end; item = this.nodeAfter(item)) {
      if (!isItem(this, item)) return -1
      count++
    }
    return count
  }

  isListOf(list: number, isItem: NodeTest): boolean {
    return this.countItems(list, isItem) >= 0
  }

  /**
   * Finds the fields of the object at `node`. False for a value that is no object, and for an object that readers could
   * take differently: a name occurs twice or has escapes; likewise with too many names to compare.
   */
  find<Name extends string>(finder: FieldFinder<Name>, node: number): boolean {
    return scanner.find(node, finder.at) !== 0
  }

  /** Returns the node of a field of the object that its finder searched last, by its place; 0 where the field is absent. */
  found(place: number): number {
    return words[place]!
  }

  /** Returns the value of a field of the object that its finder searched last; undefined where the field is absent. */
  foundValue(place: number): unknown {
    return this.readValue(this.found(place))
  }

  /** Returns the characters of the name or string at the node, as they were written. */
  readWritten(node: number): string {
    return interner.intern(text, this.readStart(node), this.readEnd(node))
  }

  readName(node: number): string {
    const name = this.readWritten(node)
    return (this.#word(node, 0) & ESCAPED) === 0 ? name : (JSON.parse(`"${name}"`) as string)
  }

  /** Returns the place of this value, with its quotes. */
  readPlace(value: number): Omit<FieldSpan, 'nameStart'> {
    const quote = this.#quote(value)
    return { start: this.readStart(value) - quote, end: this.readEnd(value) + quote }
  }

  /** Returns the place of the field that has this value, with its quotes. */
  readSpan(value: number): FieldSpan {
    const quote = this.#quote(value)
    return {
      nameStart: this.readStart(value - 1) - 1,
      start: this.readStart(value) - quote,
      end: this.readEnd(value) + quote,
    }
  }

  /** Lists the fields of the whole text; if a name repeats, its last. None if the text is not an object. */
  listRootFields(): ScannedFields {
    const fields = new Map<string, FieldSpan>()
    const end = this.isObjectText ? this.nodeAfter(0) : 0
    for (let name = 1; name < end; name = this.nodeAfter(name + 1))
      fields.set(this.readName(name), this.readSpan(name + 1))
    return { fields, open: this.readStart(0) }
  }

  /** Lists the items of the whole text, whose bytes these are. None where it is no list. */
  listRootItems(bytes: Buffer): Buffer[] {
    const items: Buffer[] = []
    const end = this.readKind(0) === ARRAY ? this.nodeAfter(0) : 0
    for (let item = 1; item < end; item = this.nodeAfter(item)) {
      const quote = this.#quote(item)
      items.push(bytes.subarray(this.readStart(item) - quote, this.readEnd(item) + quote))
    }
    return items
  }

  /** Returns true where a number of the whole text may have more digits than a double, or has an exponent. */
  get hasLongNumbers(): boolean {
    return (scanner.marksOfNumbers() & scanner.LONG_NUMBER.value) !== 0
  }

  /** Returns true where a number of the whole text may be printed differently from how it was written. */
  get hasOddNumbers(): boolean {
    return scanner.marksOfNumbers() !== 0
  }

  /** Returns the text of the value. */
  readRawText(node: number): string {
    const quote = this.#quote(node)
    return text.toString('utf8', this.readStart(node) - quote, this.readEnd(node) + quote)
  }

  /** Returns the value as `JSON.parse` does; undefined for node 0, an absent field. */
  readValue(node: number): unknown {
    if (node === 0) return undefined
    switch (this.#word(node, 0)) {
      case STRING:
        return interner.intern(text, this.readStart(node), this.readEnd(node))
      case NUMBER:
        return readNumber(this.readStart(node), this.readEnd(node))
      case TRUE:
        return true
      case FALSE:
        return false
      case NULL:
        return null
      default:
        return JSON.parse(this.readRawText(node))
    }
  }

  #quote(node: number): number {
    return this.readKind(node) === STRING ? 1 : 0
  }
}

function readNumber(start: number, end: number): number {
  if (end - start > PLAIN_NUMBER_BYTES) return Number(text.toString('latin1', start, end))
  const isNegative = text[start] === MINUS
  let value = 0
  let pointAt = end - 1
  for (let i = isNegative ? start + 1 : start; i < end; i++) {
    const byte = text[i]!
    const digit = byte - ZERO
    if (digit >= 0 && digit <= 9) value = value * 10 + digit
    else if (byte === POINT) pointAt = i
    else return Number(text.toString('latin1', start, end))
  }
  // Both are exact, so their quotient is the number nearest to the text.
  const size = value / POWERS_OF_TEN[end - 1 - pointAt]!
  return isNegative ? -size : size
}

const tape = new Tape()
/** The scanner has one memory, so that one text is read at a time. */
let isReading = false

/** Why a text is not scanned. `other`: it is no JSON, or has a name that could be read in two ways. */
export type ScanFault = 'levels' | 'values' | 'other'

const FAULTS: ReadonlyMap<number, ScanFault> = new Map([
  [scanner.TOO_DEEP.value, 'levels'],
  [scanner.TOO_MANY.value, 'values'],
])
const returnNull = () => null

/**
 * Scans a text and returns what `read` makes of its values. Values nested in more than `deepest` others are checked,
 * but have no node. `read` must not scan.
 *
 * Returns what `refuse` makes of the fault, null without it, for a text that is no JSON, nests deeper than
 * `MAX_JSON_LEVELS` or has more values than the tape has nodes. With known names likewise where a name at any depth could
 * be read in two ways: it has escapes or other characters than printable ASCII, or equals a name of its object or a known
 * one but for case.
 */
export function scanJson<T, Refused = null>(
  source: Buffer | string,
  deepest: number,
  names: KnownNames | null,
  read: (tape: Tape) => T,
  refuse: (fault: ScanFault) => T | Refused = returnNull as () => never,
): T | Refused {
  if (isReading) throw new Error('A text was scanned while another one is read')
  const length = typeof source === 'string' ? Buffer.byteLength(source) : source.length
  if (length > USUAL_TEXT_BYTES)
    return inLargerMemory(length, () => scanHere(source, length, deepest, names, read, refuse))
  return scanHere(source, length, deepest, names, read, refuse)
}

function scanHere<T, Refused>(
  source: Buffer | string,
  length: number,
  deepest: number,
  names: KnownNames | null,
  read: (tape: Tape) => T,
  refuse: (fault: ScanFault) => T | Refused,
): T | Refused {
  if (typeof source === 'string') text.write(source)
  else text.set(source)
  const nodes = scanner.scan(length, deepest, names?.at ?? 0)
  if (nodes <= 0) return refuse(FAULTS.get(nodes) ?? 'other')
  isReading = true
  try {
    return read(tape)
  } finally {
    isReading = false
  }
}

/** The fields of an object by name, and the index of its brace. */
export interface ScannedFields {
  readonly fields: ReadonlyMap<string, FieldSpan>
  readonly open: number
}

const NO_FIELDS: ScannedFields = { fields: new Map(), open: 0 }

/** Returns the places of the fields of the object in `bytes`; of two of one name, the last. None for another text. */
export const scanFields = (bytes: Buffer): ScannedFields =>
  scanJson(bytes, 1, null, (tape) => tape.listRootFields()) ?? NO_FIELDS

/** Returns the items of the list in `bytes`, as they were written. None for another text. */
export const scanItems = (bytes: Buffer): readonly Buffer[] =>
  scanJson(bytes, 1, null, (tape) => tape.listRootItems(bytes)) ?? []
