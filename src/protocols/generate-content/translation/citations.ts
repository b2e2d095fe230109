/**
 * The sources that an answer of the generate-content protocol cites: `groundingMetadata` of searches and
 * `citationMetadata` of texts that the model recites. Places in the text count bytes of UTF-8.
 */
import { Buffer } from 'node:buffer'
import { type LooseObject, toFields, toList, toText } from '../../loose.ts'

interface Citation {
  /** Characters of the text. */
  readonly start: number
  readonly end: number
  readonly url: string
  readonly title: string
}

/** No answer of a model has more. */
const MAX_CITATIONS = 512
/** Of the same citation several: an answer may say them twice. */
const MAX_TRIES = 2 * MAX_CITATIONS
const MAX_URL_CHARS = 8192
/** The fields in which a chunk of grounding names its source. */
const SOURCE_KINDS = ['web', 'maps', 'retrievedContext'] as const

/** A list of which chunks of a stream repeat the whole, or have the next items. */
class GrowingList {
  items: unknown[] = []
  /** The first item, as JSON. */
  #first = ''

  add(more: unknown): void {
    const items = toList(more)
    if (items.length === 0) return
    const first = JSON.stringify(items[0])
    if (this.items.length === 0) this.#first = first
    if (first !== this.#first) for (const item of items) this.items.push(item)
    else if (items.length >= this.items.length) this.items = [...items]
  }
}

export class CitedSources {
  readonly #chunks = new GrowingList()
  readonly #supports = new GrowingList()
  readonly #recited = new GrowingList()

  /** Takes in one event of a candidate. */
  add({ groundingMetadata: grounding, citationMetadata: recited }: LooseObject): void {
    if (grounding != null) {
      const { groundingChunks, groundingSupports } = toFields(grounding)
      this.#chunks.add(groundingChunks)
      this.#supports.add(groundingSupports)
    }
    if (recited == null) return
    const { citationSources, citations } = toFields(recited)
    this.#recited.add(citationSources ?? citations)
  }

  /** Returns the citations of the whole text. A source without a place in it is cited for all of it. */
  citations(text: string): readonly Citation[] {
    const [chunks, supports, recited] = [this.#chunks.items, this.#supports.items, this.#recited.items]
    if (chunks.length === 0 && recited.length === 0) return []
    const places = new BytePlaces(text)
    const found = new Map<string, Citation>()
    let tries = 0
    const cite = (segment: unknown, source: LooseObject): void => {
      const [url, title] = [toText(source.uri), toText(source.title)]
      if (url === '' || url.length > MAX_URL_CHARS || found.size >= MAX_CITATIONS) return
      // Each may look through the whole text.
      if (++tries > MAX_TRIES) return
      const citation = { ...places.toCharacters(toFields(segment)), url, title }
      found.set(`${citation.start} ${citation.end} ${url}`, citation)
    }
    for (const support of supports) {
      const { segment, groundingChunkIndices: indices } = toFields(support)
      for (const index of toList(indices)) cite(segment, readSource(chunks[Number(index)]))
    }
    if (supports.length === 0) for (const chunk of chunks) cite(null, readSource(chunk))
    for (const one of recited) cite(one, toFields(one))
    return [...found.values()]
  }
}

function readSource(chunk: unknown): LooseObject {
  const fields = toFields(chunk)
  const kind = SOURCE_KINDS.find((name) => fields[name] != null)
  return kind === undefined ? {} : toFields(fields[kind])
}

const BYTES_PER_MARK = 1024

/** Finds characters by the bytes before them. */
class BytePlaces {
  readonly #bytes: Buffer
  /** Characters before every `BYTES_PER_MARK`th byte. */
  readonly #marks: number[] = []

  constructor(text: string) {
    this.#bytes = Buffer.from(text)
    let characters = 0
    for (const [at, byte] of this.#bytes.entries()) {
      if (at % BYTES_PER_MARK === 0) this.#marks.push(characters)
      if (isFirstByte(byte)) characters++
    }
    if (this.#bytes.length % BYTES_PER_MARK === 0) this.#marks.push(characters)
  }

  toCharacters({ startIndex, endIndex, text }: LooseObject): {
    readonly start: number
    readonly end: number
  } {
    const { length } = this.#bytes
    // Zeros are omitted.
    const start = this.#findByte(startIndex, 0)
    const end = this.#findByte(endIndex, length)
    const said = Buffer.from(toText(text))
    const isThere = said.length === 0 || this.#bytes.subarray(start, end).equals(said)
    if (isThere && start <= end) return { start: this.#character(start), end: this.#character(end) }
    const found = this.#bytes.indexOf(said)
    if (said.length === 0 || found < 0) return { start: 0, end: this.#character(length) }
    return { start: this.#character(found), end: this.#character(found + said.length) }
  }

  #findByte(index: unknown, otherwise: number): number {
    return Number.isSafeInteger(index)
      ? Math.min(Math.max(0, index as number), this.#bytes.length)
      : otherwise
  }

  #character(byte: number): number {
    const mark = Math.floor(byte / BYTES_PER_MARK)
    let characters = this.#marks[mark]!
    for (let at = mark * BYTES_PER_MARK; at < byte; at++) if (isFirstByte(this.#bytes[at]!)) characters++
    return characters
  }
}

const isFirstByte = (byte: number): boolean => (byte & 0xc0) !== 0x80
