/**
 * Finds names in a JSON text that two readers could take for different fields. Parsers differ: some keep the first of
 * two equal names and some the last, some compare without regard to case, some end a name at its first NUL.
 */
import { Buffer } from 'node:buffer'
import { normalizeText } from '../normalize-text.ts'
import { ARRAY, OBJECT, type Tape } from './scanner/tape.ts'

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

/** The most names in a request that are read and have other characters than printable ASCII: they take long to compare. */
export const MAX_OTHER_NAMES = 5_000

/** Values of one text, at all depths: what takes long to parse and to check is refused before. */
export const MAX_JSON_VALUES = 100_000
export const TOO_MANY_VALUES = `it holds more than ${MAX_JSON_VALUES} values; send fewer`

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
export function foldName(name: string): string {
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
  const folded = new Map([...known.keys()].map((name) => [foldName(name), name]))
  return { known, folded, isChosen: false, others: CHOSEN }
}

/** Returns the part of a place in which the client or the model chooses what is inside of each name. */
export const chosen = (names: string): Readonly<Record<string, NameSet>> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, CHOSEN]))

/** Returns every known name anywhere in a place, and the one that is known nowhere. */
export function listNames(place: NameSet): ReadonlySet<string> {
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

function findFault(
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

function findDuplicate(name: string, other: string | undefined): string | null {
  if (other === undefined) return null
  return other === name
    ? 'it occurs more than once in its object'
    : `it is given together with '${other}', which some parsers take for the same field`
}

class NameWalker {
  readonly #tape: Tape
  readonly path: (string | number)[] = []
  why: string | null = null
  #values = 0
  #otherNames = 0
  #chosenNames = 0

  constructor(tape: Tape) {
    this.#tape = tape
  }

  /** Reads the value at a node. Returns false after a fault, which `why` and `path` then have. */
  read(node: number, place: NameSet): boolean {
    if (++this.#values > MAX_JSON_VALUES) {
      this.path.length = 0
      return this.#refuse(TOO_MANY_VALUES)
    }
    const kind = this.#tape.readKind(node)
    if (kind === OBJECT) return this.#readObject(node, place)
    return kind !== ARRAY || this.#readList(node, place)
  }

  #refuse(why: string): false {
    this.why = why
    return false
  }

  #readObject(node: number, place: NameSet): boolean {
    const tape = this.#tape
    const seen = new Map<string, string>()
    const end = tape.nodeAfter(node)
    let count = 0
    for (let at = node + 1; at < end; at = tape.nodeAfter(at + 1)) {
      if (++count > MAX_FIELDS) return this.#refuse(`it has more than ${MAX_FIELDS} fields; send fewer`)
      const name = tape.readName(at)
      this.path.push(name)
      const folded = place.isChosen ? name : foldName(name)
      const why =
        this.#excess(name, place) ?? findFault(name, folded, place) ?? findDuplicate(name, seen.get(folded))
      if (why !== null) return this.#refuse(why)
      seen.set(folded, name)
      if (!this.read(at + 1, place.known.get(name) ?? place.others ?? place)) return false
      this.path.pop()
    }
    return true
  }

  /** Returns the limit that one more name exceeds, or null. */
  #excess(name: string, { isChosen, known }: NameSet): string | null {
    if (!isChosen && !PLAIN.test(name) && ++this.#otherNames > MAX_OTHER_NAMES)
      return `the body has more than ${MAX_OTHER_NAMES} names that are not in ASCII; send fewer`
    if (known.size === 0 && ++this.#chosenNames > MAX_CHOSEN_NAMES)
      return `the body has more than ${MAX_CHOSEN_NAMES} names of the client's choice; send fewer`
    return null
  }

  #readList(node: number, place: NameSet): boolean {
    const tape = this.#tape
    const end = tape.nodeAfter(node)
    let index = 0
    for (let item = node + 1; item < end; item = tape.nodeAfter(item)) {
      this.path.push(index++)
      if (!this.read(item, place)) return false
      this.path.pop()
    }
    return true
  }
}

/**
 * Returns the first name of a text that is ambiguous, or the first limit that it exceeds; null without any. Every level of
 * the text must be on the tape.
 */
export function findNameFault(tape: Tape, place: NameSet): NameFault | null {
  const walk = new NameWalker(tape)
  return walk.read(0, place) ? null : { path: walk.path, why: walk.why! }
}
