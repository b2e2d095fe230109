/** Removes the markup of Markdown, and collects its links. */
import { Marked, type Token, type TokenizerExtension, type Tokens } from 'marked'
import { nameKey } from '../core/search/name-key.ts'
import { BOUNDED_TABLES, BoundedLexer } from './bounded-lexer.ts'

export const LINKS_MAX = 2_000

const WIKI_LINK = /^\[\[([^[\]|#\n]{0,300})(?:#([^[\]|\n]{0,300}))?(?:\|([^[\]\n]{0,300}))?\]\]/
const TAG = /<[^<>]*>/g
const COMMENT = { opening: '<!--', closing: '-->' }
const ENTITY = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,6}));/g
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
}
const MAX_CODE_POINT = 0x10_ffff
const BLANKS = /[ \t]+/g

interface WikiLink extends Tokens.Generic {
  readonly type: 'wikiLink'
  /** The page's title or alias, as it is written; empty for a place on the same page. */
  readonly target: string
  readonly shown: string
}

const wikiLink: TokenizerExtension = {
  name: 'wikiLink',
  // Text ends before every [ in any case: a search for the next one would read the whole paragraph for each piece of
  // it.
  level: 'inline',
  tokenizer(text): WikiLink | undefined {
    const found = WIKI_LINK.exec(text)
    if (found === null) return undefined
    const [raw, written = '', heading = '', label = ''] = found
    const target = written.trim()
    const shown = label.trim() || target || heading.trim()
    return shown === '' ? undefined : { type: 'wikiLink', raw, target, shown }
  },
}

const { defaults } = new Marked({ gfm: true, extensions: [wikiLink] }, BOUNDED_TABLES)

export interface PlainPage {
  /** Blocks by lines. */
  readonly text: string
  /** Titles and aliases of other pages, each once however it is written, as the text names it first. */
  readonly links: readonly string[]
  /** Of the first heading; null where there is none. */
  readonly heading: string | null
}

/**
 * Returns the text and the links. Null: nested too deeply to be read.
 * @throws TooMuchMarkup
 */
export function renderPlain(body: string): PlainPage | null {
  const reader = new PlainReader()
  try {
    reader.addBlocks(new BoundedLexer(defaults).lex(body))
  } catch (error) {
    // Of the depth of the stack; the lexer calls itself for each level.
    if (error instanceof RangeError) return null
    throw error
  }
  return reader.finish()
}

const decodeEntity = (raw: string, decimal?: string, hex?: string, name?: string): string => {
  if (name !== undefined) return ENTITIES[name] ?? raw
  const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
  const isText = code > 0 && code <= MAX_CODE_POINT && (code < 0xd800 || code > 0xdfff)
  return isText ? String.fromCodePoint(code) : raw
}

const decodeEntities = (text: string): string => text.replace(ENTITY, decodeEntity)

/** Removes tags and comments; one without an end extends to the end. */
function withoutTags(html: string): string {
  const { opening, closing } = COMMENT
  let text = ''
  let from = 0
  for (let at = html.indexOf(opening); at !== -1; at = html.indexOf(opening, from)) {
    text += `${html.slice(from, at)} `
    const end = html.indexOf(closing, at + opening.length)
    from = end === -1 ? html.length : end + closing.length
  }
  return decodeEntities((text + html.slice(from)).replace(TAG, ' ').replace(BLANKS, ' '))
}

const withoutBlankLines = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('\n')

class PlainReader {
  readonly #lines: string[] = []
  readonly #links = new Map<string, string>()
  #heading: string | null = null

  finish(): PlainPage {
    return {
      text: withoutBlankLines(this.#lines.join('\n')),
      links: [...this.#links.values()],
      heading: this.#heading,
    }
  }

  addBlocks(tokens: readonly Token[]): void {
    for (const token of tokens) this.#addBlock(token)
  }

  #addBlock(token: Token): void {
    switch (token.type) {
      case 'heading': {
        const text = this.#renderInline(token.tokens ?? []).trim()
        if (text !== '') this.#heading ??= text
        this.#lines.push(text)
        return
      }
      case 'code':
        this.#lines.push(token.text)
        return
      case 'html':
        this.#lines.push(withoutTags(token.text))
        return
      case 'blockquote':
        this.addBlocks(token.tokens ?? [])
        return
      case 'list':
        for (const item of (token as Tokens.List).items) this.addBlocks(item.tokens)
        return
      case 'table':
        for (const row of [(token as Tokens.Table).header, ...(token as Tokens.Table).rows])
          this.#lines.push(row.map((cell) => this.#renderInline(cell.tokens)).join(' '))
        return
      case 'paragraph':
      case 'text':
        this.#lines.push(this.#renderInline('tokens' in token && token.tokens ? token.tokens : [token]))
    }
  }

  #renderInline(tokens: readonly Token[]): string {
    return tokens.map((token) => this.#renderPiece(token)).join('')
  }

  #renderPiece(token: Token): string {
    switch (token.type) {
      case 'wikiLink':
        return this.#renderLink(token as WikiLink)
      case 'br':
        return '\n'
      case 'html':
        return ''
      case 'codespan':
        return token.text
      case 'image':
        return decodeEntities(token.text)
      default:
        if ('tokens' in token && token.tokens) return this.#renderInline(token.tokens)
        return 'text' in token ? decodeEntities(token.text) : ''
    }
  }

  #renderLink({ target, shown }: WikiLink): string {
    const key = nameKey(target)
    if (key !== '' && !this.#links.has(key)) this.#links.set(key, target)
    return decodeEntities(shown)
  }
}
