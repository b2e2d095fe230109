/**
 * The sources that an answer of the generate-content protocol cites: `groundingMetadata` of searches and
 * `citationMetadata` of texts that the model recites. Places in the text count bytes of UTF-8.
 */
import { Buffer } from 'node:buffer'
import { fieldsOf, type LooseObject, listOf, textOf } from '../loose.ts'

export interface Citation {
  /** Characters of the text. */
  readonly start: number
  readonly end: number
  readonly url: string
  readonly title: string
}

/** No answer of a model has more. */
const MAX_CITATIONS = 512
const MAX_URL_CHARS = 8192
/** The fields in which a chunk of grounding names its source. */
const SOURCE_KINDS = ['web', 'maps', 'retrievedContext'] as const

/** Returns the whole list: chunks of a stream repeat it, or add its next items. */
function continued(known: readonly unknown[], more: unknown): readonly unknown[] {
  const items = listOf(more)
  if (items.length === 0 || known.length === 0) return known.length === 0 ? items : known
  const isAgain = JSON.stringify(items[0]) === JSON.stringify(known[0])
  if (!isAgain) return [...known, ...items]
  return items.length < known.length ? known : items
}

export class CitedSources {
  #chunks: readonly unknown[] = []
  #supports: readonly unknown[] = []
  #recited: readonly unknown[] = []

  /** Takes in one event of a candidate. */
  add({ groundingMetadata: grounding, citationMetadata: recited }: LooseObject): void {
    if (grounding != null) {
      const { groundingChunks, groundingSupports } = fieldsOf(grounding)
      this.#chunks = continued(this.#chunks, groundingChunks)
      this.#supports = continued(this.#supports, groundingSupports)
    }
    if (recited == null) return
    const { citationSources, citations } = fieldsOf(recited)
    this.#recited = continued(this.#recited, citationSources ?? citations)
  }

  /** Returns the citations of the whole text. A source without a place in it is cited for all of it. */
  citations(text: string): readonly Citation[] {
    if (this.#chunks.length === 0 && this.#recited.length === 0) return []
    const places = new BytePlaces(text)
    const found = new Map<string, Citation>()
    const cite = (segment: unknown, source: LooseObject): void => {
      const [url, title] = [textOf(source.uri), textOf(source.title)]
      if (url === '' || url.length > MAX_URL_CHARS || found.size >= MAX_CITATIONS) return
      const citation = { ...places.charactersOf(fieldsOf(segment)), url, title }
      found.set(`${citation.start} ${citation.end} ${url}`, citation)
    }
    for (const support of this.#supports) {
      const { segment, groundingChunkIndices: indices } = fieldsOf(support)
      for (const index of listOf(indices)) cite(segment, sourceOf(this.#chunks[Number(index)]))
    }
    if (this.#supports.length === 0) for (const chunk of this.#chunks) cite(null, sourceOf(chunk))
    for (const recited of this.#recited) cite(recited, fieldsOf(recited))
    return [...found.values()]
  }
}

function sourceOf(chunk: unknown): LooseObject {
  const fields = fieldsOf(chunk)
  const kind = SOURCE_KINDS.find((name) => fields[name] != null)
  return kind === undefined ? {} : fieldsOf(fields[kind])
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

  charactersOf({ startIndex, endIndex, text }: LooseObject): {
    readonly start: number
    readonly end: number
  } {
    const { length } = this.#bytes
    // Zeros are omitted.
    const start = this.#byteOf(startIndex, 0)
    const end = this.#byteOf(endIndex, length)
    const said = Buffer.from(textOf(text))
    const isThere = said.length === 0 || this.#bytes.subarray(start, end).equals(said)
    if (isThere && start <= end) return { start: this.#character(start), end: this.#character(end) }
    const found = this.#bytes.indexOf(said)
    if (said.length === 0 || found < 0) return { start: 0, end: this.#character(length) }
    return { start: this.#character(found), end: this.#character(found + said.length) }
  }

  #byteOf(index: unknown, otherwise: number): number {
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
