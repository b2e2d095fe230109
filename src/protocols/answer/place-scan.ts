/**
 * Reads the few facts a meter needs out of JSON while its bytes pass: chunks of a stream, the elements of an array that
 * comes in pieces, or one whole body. It holds its place between any two bytes, so that nothing is kept of a chunk but
 * an error: one chunk may hold a whole picture.
 */
import { Buffer } from 'node:buffer'
import { hexDigit } from '../../core/json/fields.ts'
import { LATER_BYTE_CHARACTERS, weightOfCodeUnit } from '../../core/pricing/text-tokens.ts'
import { fieldsOf, type LooseObject } from '../loose.ts'
import type { Place } from './places.ts'

/** Facts of one chunk. */
export interface AnswerFacts {
  /** Characters, weighed by script, of text, thought and code, and of the arguments of calls as JSON without white space. */
  characters: number
  /** Those of them that are thought. */
  thoughtCharacters: number
  /** Counts of usage, by their names; null without any. */
  usage: Record<string, number> | null
  /** The usage of parts of the answer, each with its type, in the form in which it is reported; null without any. */
  iterations: LooseObject[] | null
  /** Short texts, by their names: such as the event's type. */
  texts: Record<string, string>
  /** The payload of an error, JSON text; null for an answer. */
  error: string | null
  /** A candidate has finished, or the prompt was blocked. */
  hasFinish: boolean
  /** Whether each candidate of the chunk finishes in it, by index; null where they are not told apart. */
  candidates: Map<number, boolean> | null
  /** Content that is no text: a call, a picture. A prompt that was blocked is an answer too. */
  hasOtherContent: boolean
  /** Searches that the upstream made. */
  queries: number
  /** Pages that it fetched. */
  pages: number
  /** Pieces of code that it ran. */
  runs: number
  /** It read places of a map. */
  hasMaps: boolean
}

const newFacts = (): AnswerFacts => ({
  characters: 0,
  thoughtCharacters: 0,
  usage: null,
  iterations: null,
  texts: {},
  error: null,
  hasFinish: false,
  candidates: null,
  hasOtherContent: false,
  queries: 0,
  pages: 0,
  runs: 0,
  hasMaps: false,
})

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

/** Errors are far smaller; a longer one is not read. */
const MAX_KEPT_BYTES = 65_536
/** No answer has as many. */
const MAX_ITERATIONS = 1024
/** Longer than every name of interest, and than every count. */
const MAX_NAME_BYTES = 32
const MAX_COUNT_CHARS = 32

/** Places whose values are numbers or booleans. */
const WORDS: ReadonlySet<Place['is']> = new Set(['count', 'sum', 'thought', 'index'])
/** Longer than every text of interest. */
const MAX_TEXT_CHARS = 64

const NAME = 1
const VALUE = 2
const ESCAPE = 3
const BETWEEN = 0

export class PlaceScanner {
  /** Selects the places to read in the answers that follow. */
  root: Place
  readonly #onAnswer: (facts: AnswerFacts) => void
  #facts = newFacts()
  /** The objects and lists around the current byte that are of interest, outermost first. */
  readonly #around: Place[] = []
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
  /** A count or a boolean so far. */
  #word = ''
  /** Characters before the current part. */
  #partStart = 0
  #isThought = false
  /** Of the current candidate. */
  #index = 0
  #isFinished = false
  /** The counts around the current iteration. */
  #usageAround: AnswerFacts['usage'] = null
  /** The current string is a text of interest. */
  #isText = false
  #isNameNext = false
  /** Place of the next or the current value. */
  #place: Place | undefined
  /** True when its characters are output. */
  #counts = false
  #isEmpty = true
  #kept: Buffer[] | null = null
  #keptBytes = 0
  #keptFrom = 0

  /** @param onAnswer called with the facts of each object that ends at the outermost level */
  constructor(root: Place, onAnswer: (facts: AnswerFacts) => void) {
    this.root = root
    this.#onAnswer = onAnswer
  }

  /** All that came belongs to answers that have ended, or comes between them. */
  get isOutside(): boolean {
    return this.#around.length === 0 && this.#state === BETWEEN
  }

  /** Resets the state after an answer that did not end. */
  reset(): void {
    this.#facts = newFacts()
    this.#around.length = 0
    this.#depth = 0
    this.#state = BETWEEN
    this.#place = undefined
    this.#counts = false
    this.#word = ''
    this.#isText = false
    this.#kept = null
  }

  /** Reads `bytes[from, to)`. Skips commas and brackets between two answers. */
  push(bytes: Buffer, from = 0, to = bytes.length): void {
    this.#keptFrom = from
    let i = from
    while (i < to) {
      if (this.#state === BETWEEN) this.#between(bytes, i++)
      else if (this.#state === ESCAPE) this.#escape(bytes[i++]!)
      else i = this.#string(bytes, i, to)
    }
    if (this.#kept !== null) this.#keep(bytes, to)
  }

  #between(bytes: Buffer, at: number): void {
    const byte = bytes[at]!
    if (byte <= SPACE) return
    if (this.#depth > 0) return this.#within(bytes, at)
    const isOutside = this.#around.length === 0
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (!isOutside) this.#open(byte, at)
      else if (byte === OPEN_BRACE) this.#enter(this.root, true)
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (this.#around.length > 0) this.#leave()
    } else if (byte === QUOTE) {
      if (this.#isNameNext && !isOutside) this.#beginName()
      else this.#beginString(at)
    } else if (byte === COMMA) this.#comma()
    else if (byte === COLON) this.#isNameNext = false
    else if (WORDS.has(this.#place?.is) && this.#word.length < MAX_COUNT_CHARS)
      this.#word += String.fromCharCode(byte)
  }

  #comma(): void {
    if (this.#word !== '') this.#endWord()
    const around = this.#around.at(-1)
    this.#isNameNext = around?.fields !== undefined
    this.#place = around?.each
  }

  /** Enters an object or a list that has places; of any other only the end matters. */
  #open(byte: number, at: number): void {
    const place = this.#place
    if (byte === OPEN_BRACE && place?.fields !== undefined) return this.#enter(place, true)
    const isDue = place?.isLate !== true || this.#facts.hasFinish || this.#facts.texts.finish !== undefined
    if (byte === OPEN_BRACKET && place?.each !== undefined && isDue) return this.#enter(place, false)
    this.#depth = 1
    this.#counts = place?.is === 'args'
    if (this.#counts) this.#facts.characters++
    if (place?.is === 'error') this.#beginKept(at)
  }

  #enter(place: Place, isObject: boolean): void {
    this.#around.push(place)
    if (place.is !== undefined) this.#begin(place.is)
    this.#isNameNext = isObject
    this.#place = place.each
  }

  #begin(is: Place['is']): void {
    if (is === 'part') {
      this.#partStart = this.#facts.characters
      this.#isThought = false
    } else if (is === 'candidate') [this.#index, this.#isFinished] = [0, false]
    else if (is === 'iteration') {
      this.#usageAround = this.#facts.usage
      this.#facts.usage = {}
      this.#facts.texts.iteration = ''
    } else if (is === 'maps') this.#facts.hasMaps = true
  }

  #endWord(): void {
    const count = Number(this.#word)
    if (this.#place?.is === 'thought') this.#isThought = this.#word === 'true'
    this.#word = ''
    const place = this.#place
    if (place?.is === 'index') this.#index = count
    if (place?.name === undefined || Number.isNaN(count)) return
    this.#facts.usage ??= {}
    const before = place.is === 'sum' ? (this.#facts.usage[place.name] ?? 0) : 0
    this.#facts.usage[place.name] = before + count
  }

  #leave(): void {
    if (this.#word !== '') this.#endWord()
    const left = this.#around.pop()
    if (left?.is === 'part' && this.#isThought)
      this.#facts.thoughtCharacters += this.#facts.characters - this.#partStart
    else if (left?.is === 'modality') this.#endModality(left)
    else if (left?.is === 'iteration') this.#endIteration()
    else if (left?.is === 'candidate')
      this.#facts.candidates = (this.#facts.candidates ?? new Map()).set(this.#index, this.#isFinished)
    this.#isNameNext = false
    this.#place = undefined
    if (this.#around.length > 0) return
    const facts = this.#facts
    this.#facts = newFacts()
    this.#onAnswer(facts)
  }

  /** Names the tokens of a modality by it, such as `promptAUDIO`. */
  #endModality({ name }: Place): void {
    const { usage, texts } = this.#facts
    if (usage !== null && texts.modality !== undefined && texts.modality !== 'TEXT')
      usage[name + texts.modality] = usage.modalityTokens ?? 0
  }

  #endIteration(): void {
    const facts = this.#facts
    facts.iterations ??= []
    if (facts.iterations.length < MAX_ITERATIONS)
      facts.iterations.push({ ...facts.usage, type: facts.texts.iteration, cache_creation: facts.usage })
    facts.usage = this.#usageAround ?? {}
  }

  #within(bytes: Buffer, at: number): void {
    const byte = bytes[at]!
    if (this.#counts && (byte & 0xc0) !== 0x80) this.#facts.characters++
    if (byte === QUOTE) this.#state = VALUE
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --this.#depth === 0) {
      this.#counts = false
      if (this.#kept !== null) this.#endKept(bytes, at + 1)
    }
  }

  #beginName(): void {
    this.#state = NAME
    this.#nameLength = 0
  }

  #beginString(at: number): void {
    this.#state = VALUE
    this.#counts = this.#place?.is === 'said'
    this.#isEmpty = true
    this.#isText = this.#place?.is === 'text'
    if (this.#place?.is === 'error') this.#beginKept(at)
  }

  /** Continues in a string. Returns the index after its part. */
  #string(bytes: Buffer, from: number, to: number): number {
    let i = from
    while (i < to && bytes[i] !== QUOTE && bytes[i] !== BACKSLASH) i++
    this.#isEmpty &&= i === from
    if (this.#counts) this.#count(bytes, from, i)
    if (this.#state === NAME) this.#addName(bytes, from, i)
    else if (this.#isText) this.#word += bytes.toString('latin1', from, Math.min(i, from + MAX_TEXT_CHARS))
    if (i === to) return to
    if (bytes[i] === QUOTE) this.#endString(bytes, i)
    else {
      // No name of interest is written with escapes.
      if (this.#state === NAME) this.#nameLength = MAX_NAME_BYTES + 1
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

  #placeOfName(): Place | undefined {
    for (const { name, place } of this.#around.at(-1)?.fields ?? []) {
      if (name.length !== this.#nameLength) continue
      let i = 0
      while (i < name.length && name[i] === this.#name[i]) i++
      if (i === name.length) return place
    }
    return this.#around.at(-1)?.rest
  }

  #count(bytes: Buffer, from: number, to: number): void {
    let count = 0
    for (let i = from; i < to; i++) count += (bytes[i]! & 0xc0) === 0x80 ? LATER_BYTE_CHARACTERS : 1
    this.#facts.characters += count
  }

  /** Reads an escape, which counts as its character. */
  #escape(byte: number): void {
    const at = this.#escaped++
    if (at === 0) {
      this.#isUnicode = byte === LETTER_U
      this.#escapedUnit = 0
    } else this.#escapedUnit = this.#escapedUnit * 16 + hexDigit(byte)
    if (this.#isUnicode && at < 4) return
    this.#state = this.#escapedIn
    if (this.#counts) this.#facts.characters += this.#isUnicode ? weightOfCodeUnit(this.#escapedUnit) : 1
  }

  #endString(bytes: Buffer, at: number): void {
    const isName = this.#state === NAME
    this.#state = BETWEEN
    if (this.#depth > 0) {
      if (this.#counts) this.#facts.characters++
      return
    }
    if (isName) {
      this.#place = this.#placeOfName()
      return
    }
    this.#counts = false
    if (this.#isText) this.#endText()
    const is = this.#place?.is
    if ((is === 'finish' || is === 'block') && !this.#isEmpty) this.#facts.hasFinish = true
    if ((is === 'made' || is === 'block') && !this.#isEmpty) this.#facts.hasOtherContent = true
    if (is === 'query') this.#facts.queries += this.#isEmpty ? 0 : 1
    else if (is === 'page') this.#facts.pages++
    else if (is === 'run') this.#facts.runs++
    else if (is === 'error') this.#endKept(bytes, at + 1)
  }

  #endText(): void {
    this.#isText = false
    if (this.#place!.name === 'finish') this.#isFinished = this.#word !== ''
    if (this.#word.length <= MAX_TEXT_CHARS) this.#facts.texts[this.#place!.name!] = this.#word
    this.#word = ''
  }

  #beginKept(at: number): void {
    this.#kept = []
    this.#keptBytes = 0
    this.#keptFrom = at
  }

  #keep(bytes: Buffer, to: number): void {
    this.#keptBytes += to - this.#keptFrom
    if (this.#keptBytes <= MAX_KEPT_BYTES) this.#kept?.push(Buffer.from(bytes.subarray(this.#keptFrom, to)))
    this.#keptFrom = to
  }

  #endKept(bytes: Buffer, to: number): void {
    this.#keep(bytes, to)
    const isRead = this.#keptBytes <= MAX_KEPT_BYTES
    const text = isRead ? Buffer.concat(this.#kept ?? []).toString('utf8') : '{"message":""}'
    this.#kept = null
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return
    }
    if (value !== '' && (typeof value === 'string' || Object.keys(fieldsOf(value)).length > 0))
      this.#facts.error = `{"error":${text}}`
  }
}
