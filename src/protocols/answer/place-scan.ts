/**
 * Reads the facts of answers while their bytes pass, in pieces of any size: long events, the elements of an array, whatever
 * the tape does not take. It holds its place between any two bytes, so that nothing is kept of an answer but short texts
 * and what is read as JSON: one chunk may hold a whole picture.
 */
import { Buffer } from 'node:buffer'
import { hexDigit, LATER_BYTE_CHARACTERS, weighCodeUnit } from '../../core/pricing/text-tokens.ts'
import { AnswerFacts, findPlace, type Place, readsText } from './places.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const SPACE = 0x20
const LETTER_U = 0x75

/** Usage and errors are far smaller; longer JSON is not read. */
const MAX_KEPT_BYTES = 65_536
const NOT_KEPT = '{"message":""}'
/** Longer than every name of interest, and than every count. */
const MAX_NAME_BYTES = 32
const MAX_WORD_CHARS = 32
/** Longer than every text of interest. */
const MAX_TEXT_CHARS = 256
/** Values nested deeper are skipped. */
const MAX_AROUND = 64

/** Places whose values are numbers or booleans. */
const WORDS: ReadonlySet<Place['is']> = new Set(['thought', 'index', 'json'])

const NAME = 1
const VALUE = 2
const ESCAPE = 3
const BETWEEN = 0

export class PlaceScanner {
  readonly #root: Place
  readonly #onAnswer: (facts: AnswerFacts) => void
  /** Of the answer that has not ended. */
  facts = new AnswerFacts()
  /** The objects and lists around the current byte that are of interest, outermost first. */
  readonly #around: Place[] = []
  /** Which of them are objects. */
  readonly #areObjects: boolean[] = []
  /** The innermost of them has just opened. */
  #isOpening = false
  /** Depth within a value of which only the end matters. */
  #depth = 0
  #state: typeof BETWEEN | typeof NAME | typeof VALUE | typeof ESCAPE = BETWEEN
  /** The kind of string that contains an escape. */
  #escapedIn: typeof NAME | typeof VALUE = VALUE
  /** Bytes of the current escape: the letter, then four hexadecimal digits after a `u`. */
  #escaped = 0
  #isUnicode = false
  #escapedUnit = 0
  readonly #name = Buffer.alloc(MAX_NAME_BYTES)
  /** Beyond `MAX_NAME_BYTES` for a name that is of no interest. */
  #nameLength = 0
  /** A number, a boolean or a text so far. */
  #word = ''
  /** The current string is a text of interest. */
  #isText = false
  #isNameNext = false
  /** Place of the next or the current value. */
  #place: Place | undefined
  /** True when its characters are output. */
  #counts = false
  #isEmpty = true
  /** The current value is read as JSON; the parts of it that have arrived in earlier pieces. */
  #isKept = false
  readonly #kept: Buffer[] = []
  #keptBytes = 0
  #keptFrom = 0

  /** @param onAnswer called with the facts of each object that ends at the outermost level */
  constructor(root: Place, onAnswer: (facts: AnswerFacts) => void) {
    this.#root = root
    this.#onAnswer = onAnswer
  }

  /** All that came belongs to answers that have ended, or comes between them. */
  get isOutside(): boolean {
    return this.#around.length === 0 && this.#state === BETWEEN
  }

  /** Resets the state after an answer that did not end. */
  reset(): void {
    this.facts = new AnswerFacts()
    this.#around.length = 0
    this.#areObjects.length = 0
    this.#isOpening = false
    this.#depth = 0
    this.#state = BETWEEN
    this.#place = undefined
    this.#counts = false
    this.#word = ''
    this.#isText = false
    this.#forget()
  }

  /** Reads `bytes[from, to)`. Skips commas and brackets between two answers. */
  push(bytes: Buffer, from = 0, to = bytes.length): void {
    this.#keptFrom = from
    let i = from
    while (i < to) {
      if (this.#state === BETWEEN) i = this.#depth > 0 ? this.#within(bytes, i, to) : this.#between(bytes, i)
      else if (this.#state === ESCAPE) this.#escape(bytes[i++]!)
      else i = this.#string(bytes, i, to)
    }
    if (this.#isKept) this.#keep(bytes, to)
  }

  /** Reads the byte at `at`. Returns the index after it. */
  #between(bytes: Buffer, at: number): number {
    const byte = bytes[at]!
    if (byte <= SPACE) return at + 1
    const isOutside = this.#around.length === 0
    const isClosing = byte === CLOSE_BRACE || byte === CLOSE_BRACKET
    if (this.#isOpening) {
      this.#isOpening = false
      if (!isClosing) this.facts.fill(this.#around.at(-1)!, !this.#areObjects.at(-1)!)
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (!isOutside) this.#open(byte, at)
      else if (byte === OPEN_BRACE) this.#enter(this.#root, true)
    } else if (isClosing) {
      if (!isOutside) this.#leave()
    } else if (byte === QUOTE) {
      if (this.#isNameNext && !isOutside) this.#beginName()
      else this.#beginString(at)
    } else if (byte === COMMA) this.#comma()
    else if (byte === COLON) this.#isNameNext = false
    else if (WORDS.has(this.#place?.is) && this.#word.length < MAX_WORD_CHARS)
      this.#word += String.fromCharCode(byte)
    return at + 1
  }

  #comma(): void {
    if (this.#word !== '') this.#endWord()
    this.#beginItem()
  }

  #beginItem(): void {
    const isObject = this.#areObjects.at(-1) === true
    this.#isNameNext = isObject
    this.#place = isObject ? undefined : this.#around.at(-1)?.each
  }

  /** Enters an object or a list that has places; of any other only the end matters. */
  #open(byte: number, at: number): void {
    const place = this.#place
    const isObject = byte === OPEN_BRACE
    if (place !== undefined && this.#around.length < MAX_AROUND) {
      if (isObject ? place.fields !== undefined : place.each !== undefined)
        return this.#enter(place, isObject)
    }
    this.#depth = 1
    this.#counts = place?.is === 'args'
    if (this.#counts) this.facts.characters++
    if (place?.is === 'json' || (isObject && place?.is === 'object')) this.#beginKept(at)
  }

  #enter(place: Place, isObject: boolean): void {
    this.#around.push(place)
    this.#areObjects.push(isObject)
    this.#isOpening = true
    this.facts.enter(place)
    this.#beginItem()
  }

  #endWord(): void {
    const word = this.#word
    this.#word = ''
    if (this.#place !== undefined) this.facts.takeWord(this.#place, word)
  }

  #leave(): void {
    if (this.#word !== '') this.#endWord()
    this.facts.leave(this.#around.pop()!)
    this.#areObjects.pop()
    this.#isNameNext = false
    this.#place = undefined
    if (this.#around.length > 0) return
    const facts = this.facts
    this.facts = new AnswerFacts()
    this.#onAnswer(facts)
  }

  /** Reads on, up to a string or to the end of the value of which only the end matters. Returns the index to continue at. */
  #within(bytes: Buffer, from: number, to: number): number {
    for (let i = from; i < to; i++) {
      const byte = bytes[i]!
      if (byte <= SPACE) continue
      if (this.#counts && (byte & 0xc0) !== 0x80) this.facts.characters++
      if (byte === QUOTE) {
        this.#state = VALUE
        return i + 1
      }
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++
      else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --this.#depth === 0) {
        this.#counts = false
        if (this.#isKept) this.#endKept(bytes, i + 1)
        return i + 1
      }
    }
    return to
  }

  #beginName(): void {
    this.#state = NAME
    this.#nameLength = 0
  }

  #beginString(at: number): void {
    const place = this.#place
    this.#state = VALUE
    this.#counts = place?.is === 'said'
    this.#isEmpty = true
    this.#isText = place !== undefined && readsText(place)
    if (place?.is === 'json') this.#beginKept(at)
  }

  /** Continues in a string. Returns the index after its part. */
  #string(bytes: Buffer, from: number, to: number): number {
    let i = from
    while (i < to && bytes[i] !== QUOTE && bytes[i] !== BACKSLASH) i++
    this.#isEmpty &&= i === from
    if (this.#counts) this.#count(bytes, from, i)
    if (this.#state === NAME) this.#addName(bytes, from, i)
    else if (this.#isText) this.#addText(bytes, from, i)
    if (i === to) return to
    if (bytes[i] === QUOTE) this.#endString(bytes, i)
    else {
      // No name of interest is written with escapes.
      if (this.#state === NAME) this.#nameLength = MAX_NAME_BYTES + 1
      else if (this.#isText) this.#addText(bytes, i, i + 1)
      this.#escapedIn = this.#state === NAME ? NAME : VALUE
      this.#escaped = 0
      this.#isEmpty = false
      this.#state = ESCAPE
    }
    return i + 1
  }

  #addName(bytes: Buffer, from: number, to: number): void {
    let length = this.#nameLength
    for (let i = from; i < to && length < MAX_NAME_BYTES; i++) this.#name[length++] = bytes[i]!
    this.#nameLength = Math.max(this.#nameLength, length)
  }

  #addText(bytes: Buffer, from: number, to: number): void {
    const room = MAX_TEXT_CHARS - this.#word.length
    if (room > 0) this.#word += bytes.toString('latin1', from, Math.min(to, from + room))
  }

  #count(bytes: Buffer, from: number, to: number): void {
    let count = 0
    for (let i = from; i < to; i++) count += (bytes[i]! & 0xc0) === 0x80 ? LATER_BYTE_CHARACTERS : 1
    this.facts.characters += count
  }

  /** Reads an escape, which counts as its character. */
  #escape(byte: number): void {
    const at = this.#escaped++
    if (this.#isText && this.#word.length < MAX_TEXT_CHARS) this.#word += String.fromCharCode(byte)
    if (at === 0) {
      this.#isUnicode = byte === LETTER_U
      this.#escapedUnit = 0
    } else this.#escapedUnit = this.#escapedUnit * 16 + hexDigit(byte)
    if (this.#isUnicode && at < 4) return
    this.#state = this.#escapedIn
    if (this.#counts) this.facts.characters += this.#isUnicode ? weighCodeUnit(this.#escapedUnit) : 1
  }

  #endString(bytes: Buffer, at: number): void {
    const isName = this.#state === NAME
    this.#state = BETWEEN
    if (this.#depth > 0) {
      if (this.#counts) this.facts.characters++
      return
    }
    if (isName) {
      this.#place =
        this.#nameLength > MAX_NAME_BYTES
          ? this.#around.at(-1)?.rest
          : findPlace(this.#around.at(-1)!, this.#name, 0, this.#nameLength)
      return
    }
    this.#counts = false
    const place = this.#place
    if (place === undefined) return
    if (this.#isText) this.#endText(place)
    else if (this.#isKept) this.#endKept(bytes, at + 1)
    else this.facts.takeString(place, this.#isEmpty)
  }

  #endText(place: Place): void {
    this.facts.takeText(place, Buffer.from(this.#word, 'latin1').toString('utf8'))
    this.#isText = false
    this.#word = ''
  }

  #beginKept(at: number): void {
    this.#isKept = true
    this.#keptFrom = at
    this.#place!.note!(this.facts, '')
  }

  #endKept(bytes: Buffer, to: number): void {
    const last = bytes.subarray(this.#keptFrom, to)
    const kept = this.#kept.length === 0 ? last : Buffer.concat([...this.#kept, last])
    const isRead = this.#keptBytes + last.length <= MAX_KEPT_BYTES
    this.#place!.note!(this.facts, isRead ? kept.toString('utf8') : NOT_KEPT)
    this.#forget()
  }

  #keep(bytes: Buffer, to: number): void {
    this.#keptBytes += to - this.#keptFrom
    if (this.#keptBytes <= MAX_KEPT_BYTES) this.#kept.push(Buffer.from(bytes.subarray(this.#keptFrom, to)))
  }

  #forget(): void {
    this.#isKept = false
    this.#kept.length = 0
    this.#keptBytes = 0
  }
}
