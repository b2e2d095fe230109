/**
 * Marked's lexer with a bound on its work. Its time is the product of a text's length and the marks in it, and of its
 * nesting, so that one long line of markup could take hours. The work is calculated in advance: a text that is refused
 * here is refused on every machine.
 */
import { Lexer, type MarkedExtension, type Token, type TokensList } from 'marked'

/** Steps for one page; a step takes 3 to 30 ns. A paragraph of 50,000 characters may have 10,000 marks. */
const PAGE_MAX_STEPS = 500_000_000
const STEPS_PER_BLOCK_CHAR = 5
const STEPS_PER_CELL = 500

/** Marks that may open an element, whose end is then searched up to the end of the text. */
const MARK = /[[*_`~<]/g
/** The end of an address is searched again for every bracket in it. */
const LONG_ADDRESS = /(?:https?:\/\/|ftp:\/\/|www\.)[^\s<]{1000,}/gi
const PIPE = /\|/g
const NEWLINE = /\n/g

/** A page whose markup takes more work than `PAGE_MAX_STEPS`. */
export class TooMuchMarkup extends Error {
  override readonly name = 'TooMuchMarkup'
  /** The text at the bound: a paragraph, a cell or a table of the page. */
  readonly text: string

  constructor(text: string) {
    super('Too much markup')
    this.text = text
  }
}

const count = (text: string, pattern: RegExp): number => {
  let found = 0
  pattern.lastIndex = 0
  while (pattern.test(text)) found++
  return found
}

export class BoundedLexer extends Lexer {
  #left = PAGE_MAX_STEPS

  /** @throws TooMuchMarkup */
  charge(steps: number, text: string): void {
    this.#left -= steps
    if (this.#left < 0) throw new TooMuchMarkup(text)
  }

  override blockTokens(src: string, tokens?: Token[], isClipped?: boolean): Token[]
  override blockTokens(src: string, tokens?: TokensList, isClipped?: boolean): TokensList
  override blockTokens(src: string, tokens?: Token[], isClipped?: boolean): Token[] {
    this.charge(src.length * STEPS_PER_BLOCK_CHAR, src)
    return super.blockTokens(src, tokens, isClipped)
  }

  override inlineTokens(src: string, tokens?: Token[]): Token[] {
    const addresses = src.match(LONG_ADDRESS) ?? []
    const forAddresses = addresses.reduce((sum, { length }) => sum + length * length, 0)
    this.charge(src.length * (1 + count(src, MARK)) + forAddresses, src)
    return super.inlineTokens(src, tokens)
  }
}

/** For the options of a `BoundedLexer`: a table has a cell for each column in each row, whether the file writes it or not. */
export const BOUNDED_TABLES: MarkedExtension = {
  tokenizer: {
    table(src) {
      const [, header = '', , rows = ''] = this.rules.block.table.exec(src) ?? []
      const cells = (1 + count(header, PIPE)) * (1 + count(rows, NEWLINE))
      if (this.lexer instanceof BoundedLexer) this.lexer.charge(cells * STEPS_PER_CELL, src)
      // Marked continues with its own.
      return false
    },
  },
}
