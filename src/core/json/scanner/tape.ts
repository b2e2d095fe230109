/**
 * Finds the places of the values of a JSON text without making a string or an object of it. The text is checked whole,
 * as strictly as the runtime's parser does, at a fifth of its cost.
 *
 * There is one tape. What a scan has found is valid until the next one: it is read at once, and nothing is kept but
 * places in the text. `assembly/json-scanner.ts` says what a node is; they are numbered from 0, which is the whole text.
 */
import { Buffer } from 'node:buffer'
import { StringInterner } from '../../string-interner.ts'
import type { FieldSpan } from '../fields.ts'
import { type Constant, instanceOf, type WithMemory } from './memory.ts'
import { JSON_SCANNER } from './scanner.wasm.ts'

/** Kinds of values, as the scanner has them. */
export const OBJECT = 1
export const ARRAY = 2
export const STRING = 3
export const NUMBER = 4
export const TRUE = 5
export const FALSE = 6
export const NULL = 7
/** Of kinds: the string or name holds a backslash. */
const ESCAPED = 16

/** After the text the scanner marks its end, and reads thirty-two bytes at a time. */
const ROOM_BEHIND_BYTES = 64
const NODE_WORDS = 4
const WORD_BYTES = 4

interface Scanner extends WithMemory {
  readonly TAPE: Constant
  readonly TEXT: Constant
  readonly WORDS: Constant
  readonly WORDS_END: Constant
  readonly SET_HEAD_BYTES: Constant
  readonly WORD_LENGTH_BYTES: Constant
  readonly MAX_WORD_BYTES: Constant
  readonly KNOWN: Constant
  readonly KNOWN_END: Constant
  scan(length: number, deepest: number, names: number): number
  know(set: number, entry: number, name: number, length: number): void
  wordAt(node: number, set: number): number
  find(node: number, set: number): number
}

const scanner = instanceOf<Scanner>(JSON_SCANNER)
const TEXT_AT = scanner.TEXT.value
const TAPE_AT = scanner.TAPE.value / WORD_BYTES

/** What was scanned: nobody's own buffer is held on to. */
const text = Buffer.from(scanner.memory.buffer, TEXT_AT)
const words = new Int32Array(scanner.memory.buffer)
/** A longer text is left to the runtime's parser. What of the memory was never needed takes none of the machine's. */
export const MAX_SCANNED_BYTES = text.length - ROOM_BEHIND_BYTES

/**
 * Scans a text. Values nested in more than `deepest` others are checked, but not noted.
 * With known names, false also where a name at any depth could be read in two ways: it is written with escapes or with
 * other characters than printable ASCII, or equals a name beside it or a known one but for case. It may be so for others.
 * False for what is no JSON, and for what is too long, too deep or too much: that the runtime's parser may still read.
 */
export function scanJson(bytes: Buffer, deepest: number, names?: KnownNames): boolean {
  if (bytes.length > MAX_SCANNED_BYTES) return false
  text.set(bytes)
  return scanner.scan(bytes.length, deepest, names?.at ?? 0) > 0
}

const kindWord = (node: number): number => words[TAPE_AT + NODE_WORDS * node]!

export const kindOf = (node: number): number => kindWord(node) & ~ESCAPED
/** Its string stands in the text as it is, without escapes. */
export const isPlain = (node: number): boolean => (kindWord(node) & ESCAPED) === 0
/** Where the value begins in the text; of a string or name, behind its quote. */
export const startOf = (node: number): number => words[TAPE_AT + NODE_WORDS * node + 1]!
export const endOf = (node: number): number => words[TAPE_AT + NODE_WORDS * node + 2]!
/** The node behind all that this one holds. */
export const nodeAfter = (node: number): number => words[TAPE_AT + NODE_WORDS * node + 3]!

/** The digits of a number of so many bytes make one that is exact. */
const PLAIN_NUMBER_BYTES = 15
const POWERS_OF_TEN = Array.from({ length: PLAIN_NUMBER_BYTES }, (_, power) => 10 ** power)
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30

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
  // Both are exact, so their quotient is the number next to what was written.
  const size = value / POWERS_OF_TEN[end - 1 - pointAt]!
  return isNegative ? -size : size
}

const quoteOf = (node: number): number => (kindOf(node) === STRING ? 1 : 0)

/** The value as it is written. */
export const rawTextAt = (node: number): string =>
  text.toString('utf8', startOf(node) - quoteOf(node), endOf(node) + quoteOf(node))

/** Fields that are read mostly hold names, of models and of modes. */
const interner = new StringInterner()

/** The value, as `JSON.parse` gives it; undefined for node 0, which is what a field that is absent has. */
export function valueAt(node: number): unknown {
  if (node === 0) return undefined
  switch (kindOf(node)) {
    case STRING:
      return isPlain(node) ? interner.intern(text, startOf(node), endOf(node)) : JSON.parse(rawTextAt(node))
    case NUMBER:
      return numberIn(startOf(node), endOf(node))
    case TRUE:
      return true
    case FALSE:
      return false
    case NULL:
      return null
    default:
      return JSON.parse(rawTextAt(node))
  }
}

/** The name at its node, where `FieldFinder` has found no fault in its object. */
export const nameAt = (node: number): string => interner.intern(text, startOf(node), endOf(node))

/** The place of the field that has this value, its quotes with it. */
export const spanOf = (value: number): FieldSpan => ({
  nameStart: startOf(value - 1) - 1,
  start: startOf(value) - quoteOf(value),
  end: endOf(value) + quoteOf(value),
})

/** The fields of the whole text by name, where that is an object in which `FieldFinder` has found no fault. */
export function rootFields(): Map<string, FieldSpan> {
  const fields = new Map<string, FieldSpan>()
  const end = nodeAfter(0)
  for (let name = 1; name < end; name = nodeAfter(name + 1)) fields.set(nameAt(name), spanOf(name + 1))
  return fields
}

const SET_HEAD_BYTES = scanner.SET_HEAD_BYTES.value
const WORD_LENGTH_BYTES = scanner.WORD_LENGTH_BYTES.value
const MAX_WORD_BYTES = scanner.MAX_WORD_BYTES.value
const FOUND_BYTES = 4
const ALIGNED_BYTES = 8
let nextSetAt = scanner.WORDS.value

/** Puts words into the scanner's memory, which are ASCII. */
function placeWords(words: readonly string[]): { setAt: number; foundAt: number } {
  const memory = Buffer.from(scanner.memory.buffer)
  const setAt = nextSetAt
  let at = setAt + SET_HEAD_BYTES
  memory.writeUInt32LE(words.length, setAt)
  for (const word of words) {
    if (word.length > MAX_WORD_BYTES) throw new Error(`${word} is too long for a word of the scanner`)
    memory.writeUInt32LE(word.length, at)
    memory.write(word, at + WORD_LENGTH_BYTES, 'latin1')
    at += WORD_LENGTH_BYTES + MAX_WORD_BYTES
  }
  const end = at + words.length * FOUND_BYTES
  if (end > scanner.WORDS_END.value) throw new Error('the scanner has no room for more words')
  nextSetAt = aligned(end)
  return { setAt, foundAt: at }
}

const KNOWN_HEAD_BYTES = 8
const SLOTS_PER_NAME = 2
const NEVER_A_LENGTH = -1
let nextKnownAt = scanner.KNOWN.value

const aligned = (at: number): number => Math.ceil(at / ALIGNED_BYTES) * ALIGNED_BYTES

/**
 * Names that must not be written otherwise; and `watched` ones, which are never plain: a text that has one anywhere is to
 * be read in full. They are printable ASCII.
 */
export class KnownNames {
  /** Where the scanner has them. */
  readonly at: number

  constructor(names: Iterable<string>, watched: readonly string[] = []) {
    const lowWatched = new Set(watched.map((name) => name.toLowerCase()))
    const known = [...new Set(names)].filter((name) => !lowWatched.has(name.toLowerCase()))
    const all = [...known, ...lowWatched]
    const slots = 2 ** Math.ceil(Math.log2(SLOTS_PER_NAME * all.length + 1))
    this.at = nextKnownAt
    words[this.at / WORD_BYTES] = slots - 1
    let at = aligned(this.at + WORD_BYTES * (slots + 1))
    for (const name of all) {
      const end = aligned(at + KNOWN_HEAD_BYTES + name.length)
      if (end > scanner.KNOWN_END.value) throw new Error('the scanner has no room for more names')
      text.write(name, 'latin1')
      scanner.know(this.at, at, TEXT_AT, name.length)
      // No name has this length, so each that is compared with it is another one.
      if (lowWatched.has(name)) words[at / WORD_BYTES + 1] = NEVER_A_LENGTH
      at = end
    }
    nextKnownAt = at
  }
}

/** A few strings that a value may be. They are ASCII. */
export class Words {
  readonly #at: number

  constructor(words: readonly string[]) {
    this.#at = placeWords(words).setAt
  }

  /** The value is one of them, written without escapes. */
  has(node: number): boolean {
    return scanner.wordAt(node, this.#at) >= 0
  }
}

/** The fields that are looked for in one kind of object. Their names are ASCII. */
export class FieldFinder<Name extends string> {
  readonly #at: number
  /** By name, what `foundIn` takes. */
  readonly place: Readonly<Record<Name, number>>

  constructor(names: readonly Name[]) {
    const { setAt, foundAt } = placeWords(names)
    this.#at = setAt
    this.place = Object.fromEntries(
      names.map((name, place) => [name, foundAt / FOUND_BYTES + place]),
    ) as Record<Name, number>
  }

  /**
   * Finds the fields of the object at `node`. False for what is no object, and for one that readers could differ about:
   * a name in it occurs twice or has escapes; likewise with too many names to compare.
   */
  find(node: number): boolean {
    return scanner.find(node, this.#at) !== 0
  }
}

/** The node of the value that the object searched last has under a name, by its place; 0 where the field is absent. */
export const foundIn = (place: number): number => words[place]!
