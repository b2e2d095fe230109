/**
 * Header fields of a response, validated, decoded only when asked for. Values are latin1, without surrounding blanks.
 */
export class ResponseHeaders implements Iterable<readonly [name: string, value: string]> {
  /** `\r\nName: value\r\n...\r\n`: every field between two line ends, so that a name is found as `\r\nname:`. */
  readonly #text: string
  #lower: string | null = null
  readonly #contentType: string | null | undefined
  readonly #contentEncoding: string | null | undefined

  /** @param contentType as the scanner of the lines found it: null where there is none; undefined asks for a search */
  constructor(text: string, contentType?: string | null, contentEncoding?: string | null) {
    this.#text = text
    this.#contentType = contentType
    this.#contentEncoding = contentEncoding
  }

  /** As `get` returns them, without a search: every response is asked for these two. */
  get contentType(): string | undefined {
    return this.#contentType === undefined ? this.get('content-type') : (this.#contentType ?? undefined)
  }

  get contentEncoding(): string | undefined {
    return this.#contentEncoding === undefined
      ? this.get('content-encoding')
      : (this.#contentEncoding ?? undefined)
  }

  /** @param name in lower case. @returns the value, several joined with `, `; undefined when absent */
  get(name: string): string | undefined {
    this.#lower ??= this.#text.toLowerCase()
    const needle = `\r\n${name}:`
    let at = this.#lower.indexOf(needle)
    if (at < 0) return undefined
    let value: string | undefined
    while (at >= 0) {
      const from = at + needle.length
      const to = this.#text.indexOf('\r\n', from)
      const one = trimBlanks(this.#text.slice(from, to))
      value = value === undefined ? one : `${value}, ${one}`
      at = this.#lower.indexOf(needle, to)
    }
    return value
  }

  /** Fields in the order received, names in lower case, repeated fields one by one. */
  *[Symbol.iterator](): IterableIterator<readonly [name: string, value: string]> {
    const text = this.#text
    let from = 2
    while (from < text.length) {
      const colon = text.indexOf(':', from)
      const to = text.indexOf('\r\n', colon)
      yield [text.slice(from, colon).toLowerCase(), trimBlanks(text.slice(colon + 1, to))]
      from = to + 2
    }
  }
}

const SPACE = 0x20
const TAB = 0x09
const isBlank = (code: number): boolean => code === SPACE || code === TAB

/** Only space and tab: `trim` would take obs-text such as U+00A0 too. */
function trimBlanks(value: string): string {
  let from = 0
  let to = value.length
  while (from < to && isBlank(value.charCodeAt(from))) from++
  while (to > from && isBlank(value.charCodeAt(to - 1))) to--
  return value.slice(from, to)
}
