/** Strings that the scanner compares in its own memory. They are placed there once, when a module is loaded. */
import { Buffer } from 'node:buffer'
import { scanner, TEXT_AT, text, WORD_BYTES, words } from './memory.ts'

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
  /** The place in the scanner's memory. */
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

/** A few strings that a value may be, for `Tape.isOneOf`. They are ASCII. */
export class Words {
  /** The place in the scanner's memory. */
  readonly at: number

  constructor(words: readonly string[]) {
    this.at = placeWords(words).setAt
  }
}

/** The fields that are searched in one kind of object, for `Tape.find`. Their names are ASCII. */
export class FieldFinder<Name extends string> {
  /** The place in the scanner's memory. */
  readonly at: number
  /** By name, the argument of `Tape.found`. */
  readonly place: Readonly<Record<Name, number>>

  constructor(names: readonly Name[]) {
    const { setAt, foundAt } = placeWords(names)
    this.at = setAt
    this.place = Object.fromEntries(
      names.map((name, place) => [name, foundAt / FOUND_BYTES + place]),
    ) as Record<Name, number>
  }
}
