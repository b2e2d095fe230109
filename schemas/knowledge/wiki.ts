/** Knowledge bases and their pages, as REST and MCP show them. See docs/api-rules.md, "Knowledge search" and "MCP". */
import { z } from 'zod'

/** The id of the base of the key's own account. */
export const DEFAULT_KB_ID = 'default'
export const SEARCH_DEFAULT_LIMIT = 20
export const SEARCH_MAX_LIMIT = 50
export const MCP_SEARCH_DEFAULT_LIMIT = 10
export const BATCH_MAX_PAGES = 25
export const REST_BATCH_BODY_MAX_CHARS = 4_000
export const READ_PAGE_BODY_MAX_CHARS = 8_000
export const READ_PAGES_BODY_MAX_CHARS = 1_200
/** The most pages under a tag or behind a page, and the most tags, in a list: by REST, and for a model. */
export const REST_LIST_MAX_ENTRIES = 1_000
export const MCP_LIST_MAX_ENTRIES = 100
export const SOURCE_LINK_TTL_SECS = 3_600
export const QUERY_MAX_CHARS = 1_000
/** Of a page. */
export const TAG_MAX_CHARS = 100

const pageSource = z.object({
  /** Key of the source file in the object store. */
  r2_key: z.string(),
  filename: z.string(),
  /** Place in the file, such as a page or a line. */
  locator: z.string().nullable(),
  compiled_at: z.string().nullable(),
  /** The model that compiled the page from its source. */
  model: z.string().nullable(),
})
export type PageSource = z.infer<typeof pageSource>

const outgoingLink = z.object({
  /** Null while no page of the base has that title or alias. */
  id: z.string().nullable(),
  resolved: z.boolean(),
  title: z.string(),
})

/** One page in full. */
export const wikiPage = z.object({
  /** `page_` + ULID; stays the same when its file is imported again. */
  id: z.string(),
  kb_id: z.string(),
  title: z.string(),
  summary: z.string(),
  /** Markdown. */
  body: z.string(),
  tags: z.array(z.string()),
  aliases: z.array(z.string()),
  /** The page's links, as its text names them. */
  links: z.array(z.string()),
  confidence: z.string(),
  needs_review: z.boolean(),
  source: pageSource.nullable(),
  outgoing_links: z.array(outgoingLink),
})
export type WikiPage = z.infer<typeof wikiPage>

/** A page without its body: in search results, under tags, among backlinks. */
export const wikiEntry = wikiPage.pick({
  id: true,
  kb_id: true,
  title: true,
  summary: true,
  tags: true,
  confidence: true,
  needs_review: true,
})
export type WikiEntry = z.infer<typeof wikiEntry>

export const searchResult = wikiEntry.extend({
  /** Plain text around the hits, hits in `<mark>`; the rest is HTML-escaped. */
  snippet: z.string(),
  /** Higher is better; comparable within one answer only. */
  score: z.number(),
})
export type SearchResult = z.infer<typeof searchResult>

/** A base of which one may know. */
export interface KnowledgeBase {
  /** `kb_` + ULID, the account's own default base too: there `isDefault`. */
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly isDefault: boolean
  readonly pages: number
  readonly createdAt: Date
  /** Ids of accounts, organizations and agents that may read it, besides its account. */
  readonly readers: readonly string[]
}
