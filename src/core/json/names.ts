/**
 * Finds names in a JSON text that two readers could take for different fields. Parsers differ: some keep the first of
 * two equal names and some the last, some compare without regard to case, some end a name at its first NUL.
 */
import { Buffer } from 'node:buffer'
import { normalizeText } from '../normalize-text.ts'
import { readName, skipSpace, skipString, skipValue } from './fields.ts'

/** A place in a contract and the names that mean something in an object there. A list shares the place of its items. */
export interface NameSet {
  /** The place inside each known name. */
  readonly known: ReadonlyMap<string, NameSet>
  /** The known names by their folded form. */
  readonly folded: ReadonlyMap<string, string>
  /** The client or the model chooses the names: only the same name twice is a fault. */
  readonly isChosen: boolean
  /** The place inside a name that is not known, where that is another one. */
  readonly others?: NameSet
}

interface NameFault {
  readonly path: readonly (string | number)[]
  readonly why: string
}

/** Names that are read, in other characters than printable ASCII, take long to compare: a request has no more of them. */
export const MAX_OTHER_NAMES = 5_000

/** Of one object, and, where a client chooses the names, of all together: each is compared with those beside it. */
export const MAX_FIELDS = 1_024
export const MAX_CHOSEN_NAMES = 30_000

/** A longer name is compared by its bytes: no name that means something is as long, in any letters. */
const MAX_FOLDED_BYTES = 256

/** Parsers that assign fields to an object change the object by it. */
const PROTOTYPE = '__proto__'
const PLAIN = /^[\x20-\x7e]*$/
/** Invisible characters, and the replacement of bytes that are no text. */
const UNSEEN = /[\p{Cc}\p{Default_Ignorable_Code_Point}\ufffd]/gu
const CONTROL = /\p{Cc}/u

/**
 * Returns the form by which names are compared: NFKC, without case and invisible characters; a name of more than
 * `MAX_FOLDED_BYTES` bytes unchanged.
 */
export function foldedName(name: string): string {
  if (Buffer.byteLength(name) > MAX_FOLDED_BYTES) return name
  if (PLAIN.test(name)) return name.toLowerCase()
  const letters = [...normalizeText(name.toWellFormed(), 'NFKC').replace(UNSEEN, '')]
  // Letter by letter: the lower case of a sigma depends on what follows it in the word.
  const lower = letters.map((letter) =>
    [...letter.toUpperCase()].map((upper) => upper.toLowerCase()).join(''),
  )
  return normalizeText(lower.join(''), 'NFKC')
}

/** A place where the client or the model chooses the names, at any depth. */
export const CHOSEN: NameSet = { known: new Map(), folded: new Map(), isChosen: true }

/** A place whose names an upstream reads, and the gateway does not know: two of them must not look alike. */
const UNLISTED: NameSet = { known: new Map(), folded: new Map(), isChosen: false }

/**
 * Returns a place. `names` are separated by spaces; an upstream reads the names inside of those. Inside of a name that
 * the place lacks, names are the client's.
 */
export function place(names: string, inside: Readonly<Record<string, NameSet>> = {}): NameSet {
  const all = names.split(/\s+/).filter((name) => name !== '')
  const known = new Map(all.map((name) => [name, UNLISTED]))
  for (const [name, under] of Object.entries(inside)) known.set(name, under)
  const folded = new Map([...known.keys()].map((name) => [foldedName(name), name]))
  return { known, folded, isChosen: false, others: CHOSEN }
}

/** Returns the part of a place in which the client or the model chooses what is inside of each name. */
export const chosen = (names: string): Readonly<Record<string, NameSet>> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, CHOSEN]))

/** Returns every known name anywhere in a place, and the one that is known nowhere. */
export function namesIn(place: NameSet): ReadonlySet<string> {
  // In other letters: the name itself is then one that is written otherwise.
  const names = new Set([PROTOTYPE.toUpperCase()])
  const seen = new Set<NameSet>()
  const collect = (at: NameSet) => {
    if (seen.has(at)) return
    seen.add(at)
    for (const [name, inside] of at.known) {
      names.add(name)
      collect(inside)
    }
  }
  collect(place)
  return names
}

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

function nameFault(
  name: string,
  folded: string,
  { isChosen, known, folded: knownFolded }: NameSet,
): string | null {
  if (isChosen) return null
  if (name === PROTOTYPE) return 'no field may have this name'
  if (known.size === 0 || known.has(name)) return null
  const meant = knownFolded.get(folded)
  if (meant !== undefined)
    return `it differs from '${meant}' only in case or in characters that are easily mistaken; write '${meant}'`
  return CONTROL.test(name) ? 'its name holds a control character' : null
}

function duplicateFault(name: string, other: string | undefined): string | null {
  if (other === undefined) return null
  return other === name
    ? 'it occurs more than once in its object'
    : `it is given together with '${other}', which some parsers take for the same field`
}

class NameWalker {
  readonly #bytes: Buffer
  readonly path: (string | number)[] = []
  why: string | null = null
  #otherNames = 0
  #chosenNames = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Returns the index after the value at `at`; after a fault, the index where reading stopped. */
  value(at: number, place: NameSet): number {
    const first = this.#bytes[at]
    if (first === OPEN_BRACE) return this.#object(at, place)
    return first === OPEN_BRACKET ? this.#list(at, place) : skipValue(this.#bytes, at)
  }

  #object(open: number, place: NameSet): number {
    const bytes = this.#bytes
    const seen = new Map<string, string>()
    let at = skipSpace(bytes, open + 1)
    while (bytes[at] === QUOTE) {
      const nameEnd = skipString(bytes, at)
      const name = readName(bytes, at, nameEnd)
      this.path.push(name)
      this.why = this.#excess(name, place)
      if (this.why !== null) return at
      const folded = place.isChosen ? name : foldedName(name)
      this.why = nameFault(name, folded, place) ?? duplicateFault(name, seen.get(folded))
      if (this.why !== null) return at
      seen.set(folded, name)
      // Behind the name and its colon.
      at = this.value(
        skipSpace(bytes, skipSpace(bytes, nameEnd) + 1),
        place.known.get(name) ?? place.others ?? place,
      )
      if (this.why !== null) return at
      this.path.pop()
      at = skipSpace(bytes, at)
      if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1)
      else if (bytes[at] === CLOSE_BRACE) return at + 1
    }
    return at + 1
  }

  /** Returns the limit that one more name exceeds, or null. */
  #excess(name: string, { isChosen, known }: NameSet): string | null {
    if (!isChosen && !PLAIN.test(name) && ++this.#otherNames > MAX_OTHER_NAMES)
      return `the body has more than ${MAX_OTHER_NAMES} names that are not in ASCII; send fewer`
    if (known.size === 0 && ++this.#chosenNames > MAX_CHOSEN_NAMES)
      return `the body has more than ${MAX_CHOSEN_NAMES} names of the client's choice; send fewer`
    return null
  }

  #list(open: number, place: NameSet): number {
    const bytes = this.#bytes
    let at = skipSpace(bytes, open + 1)
    for (let index = 0; at < bytes.length && bytes[at] !== CLOSE_BRACKET; index++) {
      this.path.push(index)
      at = this.value(at, place)
      if (this.why !== null) return at
      this.path.pop()
      at = skipSpace(bytes, at)
      if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1)
    }
    return at + 1
  }
}

/**
 * Returns the first ambiguous name; null without one. The bytes must be JSON that nests no deeper than
 * `MAX_JSON_LEVELS`.
 */
export function findNameFault(bytes: Buffer, place: NameSet): NameFault | null {
  const walk = new NameWalker(bytes)
  walk.value(skipSpace(bytes, 0), place)
  return walk.why === null ? null : { path: walk.path, why: walk.why }
}
