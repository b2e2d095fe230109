/**
 * Scans a JSON text and finds the places of its values, without making a string or an object of it. Checks the whole
 * text, as strictly as the runtime's parser does. The page README.md of this folder says why it is not a library.
 */
import { StringInterner } from '../../string-interner.ts'
import type { FieldSpan } from '../fields.ts'
import { scanner, text, WORD_BYTES, words } from './memory.ts'
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

/** After the text the scanner marks its end, and reads thirty-two bytes at a time. */
const ROOM_BEHIND_BYTES = 64
/** A longer text is left to the runtime's parser. Memory that no text needed takes none of the machine's. */
export const MAX_SCANNED_BYTES = text.length - ROOM_BEHIND_BYTES

/** The digits of a number of so many bytes make one that is exact. */
const PLAIN_NUMBER_BYTES = 15
const POWERS_OF_TEN = Array.from({ length: PLAIN_NUMBER_BYTES }, (_, power) => 10 ** power)
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30

/** Most strings that are read are names of models and of modes. */
const interner = new StringInterner()

/** Tests one value. */
export type NodeTest = (tape: Tape, node: number) => boolean

/**
 * The values of a scanned text. A value is a node, a number: 0 is the whole text, and in the results of `found` an
 * absent field. The tape of an object is its fields, a name and a value each; that of a list its items.
 *
 * Valid inside the `read` of its scan only. What a caller keeps are places in its own text.
 */
export class Tape {
  #word(node: number, part: number): number {
    return words[FIRST_WORD + NODE_WORDS * node + part]!
  }

  kindOf(node: number): number {
    return this.#word(node, 0) & ~ESCAPED
  }

  /** Returns the index at which the value begins in the text; of a string or a name, after its quote. */
  startOf(node: number): number {
    return this.#word(node, START)
  }

  endOf(node: number): number {
    return this.#word(node, END)
  }

  /** Returns the node after all nodes inside this one. */
  nodeAfter(node: number): number {
    return this.#word(node, AFTER)
  }

  /** Returns true when the whole text is an object. */
  get isObjectText(): boolean {
    return this.kindOf(0) === OBJECT
  }

  /** Returns true for an absent value or null. */
  isMissing(node: number): boolean {
    return node === 0 || this.kindOf(node) === NULL
  }

  isObject(node: number): boolean {
    return node !== 0 && this.kindOf(node) === OBJECT
  }

  isList(node: number): boolean {
    return node !== 0 && this.kindOf(node) === ARRAY
  }

  isText(node: number): boolean {
    return node !== 0 && this.kindOf(node) === STRING
  }

  /** Returns true for an object with fields, a list with items, or a string with characters. */
  isFull(node: number): boolean {
    if (this.isText(node)) return this.endOf(node) > this.startOf(node)
    return (this.isObject(node) || this.isList(node)) && this.nodeAfter(node) > node + 1
  }

  /** Returns true when the value is one of the strings, written without escapes. */
  isOneOf(set: Words, node: number): boolean {
    return scanner.wordAt(node, set.at) >= 0
  }

  /** Returns the number of items, or -1 for a value that is no list or has an item that fails the test. */
  countOf(list: number, isItem: NodeTest): number {
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
    return this.countOf(list, isItem) >= 0
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
    return this.valueAt(this.found(place))
  }

  /** Returns the name at its node, where `find` has found no fault in its object. */
  nameAt(node: number): string {
    return interner.intern(text, this.startOf(node), this.endOf(node))
  }

  /** Returns the place of this value's field, with its quotes. */
  spanOf(value: number): FieldSpan {
    const quote = this.#quote(value)
    return {
      nameStart: this.startOf(value - 1) - 1,
      start: this.startOf(value) - quote,
      end: this.endOf(value) + quote,
    }
  }

  /** Returns the fields of the whole text by name, where that is an object in which `find` has found no fault. */
  rootFields(): Map<string, FieldSpan> {
    const fields = new Map<string, FieldSpan>()
    const end = this.nodeAfter(0)
    for (let name = 1; name < end; name = this.nodeAfter(name + 1))
      fields.set(this.nameAt(name), this.spanOf(name + 1))
    return fields
  }

  /** Returns the text of the value. */
  rawTextAt(node: number): string {
    const quote = this.#quote(node)
    return text.toString('utf8', this.startOf(node) - quote, this.endOf(node) + quote)
  }

  /** Returns the value as `JSON.parse` does; undefined for node 0, an absent field. */
  valueAt(node: number): unknown {
    if (node === 0) return undefined
    switch (this.#word(node, 0)) {
      case STRING:
        return interner.intern(text, this.startOf(node), this.endOf(node))
      case NUMBER:
        return numberIn(this.startOf(node), this.endOf(node))
      case TRUE:
        return true
      case FALSE:
        return false
      case NULL:
        return null
      default:
        return JSON.parse(this.rawTextAt(node))
    }
  }

  #quote(node: number): number {
    return this.kindOf(node) === STRING ? 1 : 0
  }
}

function numberIn(start: number, end: number): number {
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

/**
 * Scans a text and returns what `read` makes of its values. Values nested in more than `deepest` others are checked,
 * but have no node. `read` must not scan.
 *
 * Returns null for a text that is no JSON, and for one that is too long, too deep or has too many values: the runtime's
 * parser may still read that. With known names null also where a name at any depth could be read in two ways: it has
 * escapes or other characters than printable ASCII, or equals a name of its object or a known one but for case.
 */
export function scanJson<T>(
  bytes: Buffer,
  deepest: number,
  names: KnownNames | null,
  read: (tape: Tape) => T,
): T | null {
  if (isReading) throw new Error('A text was scanned while another one is read')
  if (bytes.length > MAX_SCANNED_BYTES) return null
  text.set(bytes)
  if (scanner.scan(bytes.length, deepest, names?.at ?? 0) === 0) return null
  isReading = true
  try {
    return read(tape)
  } finally {
    isReading = false
  }
}
