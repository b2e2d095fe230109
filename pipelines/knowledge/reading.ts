/** Reads knowledge bases, over REST and over MCP. See docs/api-rules.md, "Knowledge search". */

import { Failure } from '../../schemas/failure.ts'
import type { CutPage, SourceLink } from '../../schemas/knowledge/query.ts'
import {
  SOURCE_LINK_TTL_SECS,
  TAG_MAX_CHARS,
  type WikiEntry,
  type WikiPage,
} from '../../schemas/knowledge/wiki.ts'
import { excerpt } from '../../src/core/search/excerpt.ts'
import type { KnownKey } from '../../src/credentials/credentials.ts'
import type { Knowledge } from '../../src/postgres/knowledge/repository.ts'
import type { ReadableBase, SearchPage, WikiReader } from '../../src/postgres/knowledge/types.ts'
import type { ObjectStore } from '../../src/storage/store.ts'

export interface WikiDeps {
  readonly wiki: Pick<
    Knowledge,
    | 'listReadableBases'
    | 'findBase'
    | 'searchPages'
    | 'readPages'
    | 'listTags'
    | 'listPagesByTag'
    | 'listBacklinks'
  >
  readonly files: Pick<ObjectStore, 'makeLink'>
  /** Returns epoch milliseconds. */
  readonly now?: () => number
}

const MS_PER_SECOND = 1000
const RETRY_AFTER_SECONDS = 5
const ULID = '[0-9A-HJKMNP-TV-Z]{26}'
const PAGE_ID = new RegExp(`^page_${ULID}$`)
const KB_ID = new RegExp(`^(?:default|kb_${ULID})$`)

export const isPageId = (text: string): boolean => PAGE_ID.test(text)
export const isKbId = (text: string): boolean => KB_ID.test(text)

/** Returns the key's account, and the member of the organization who has an employee key. */
export const toReader = ({ account, key }: Pick<KnownKey, 'account' | 'key'>): WikiReader => ({
  accountId: account.id,
  memberId: key.grant?.memberId ?? null,
})

const throwUnavailable = (error: Error): never => {
  throw new Failure(
    'service_unavailable',
    'Knowledge bases cannot be read at the moment. Try again in a minute.',
    {
      internal: `knowledge: ${error.message}`,
      headers: [['retry-after', String(RETRY_AFTER_SECONDS)]],
    },
  )
}

/** @throws Failure `service_unavailable` if PostgreSQL fails or takes too long */
export const read = <T>(answer: Promise<T>): Promise<T> => answer.catch(throwUnavailable)

/** A letter with accents may have this many characters, and be one character of a page's tag. */
const CHARS_OF_A_LETTER = 4
const isTag = (tag: string): boolean => tag.length <= TAG_MAX_CHARS * CHARS_OF_A_LETTER && !tag.includes('\0')

/** Returns pages by tag; none for a tag that no page can have: too long, or with NUL. */
export const readByTag = async (
  { wiki }: WikiDeps,
  bases: readonly ReadableBase[],
  tag: string,
  limit: number,
): Promise<WikiEntry[]> => (isTag(tag) ? read(wiki.listPagesByTag(bases, tag, limit)) : [])

export const cutPage = ({ body, ...page }: WikiPage, maxChars: number): CutPage => {
  const { text, isCut } = excerpt(body, maxChars)
  return { ...page, body: text, body_truncated: isCut }
}

export const printSearch = (query: string, offset: number, { totalHits, results }: SearchPage) => ({
  query,
  total_hits: totalHits,
  offset,
  returned: results.length,
  has_more: offset + results.length < totalHits,
  results,
})

/** @throws Failure `not_found`: the page was made from no file */
export async function linkToSource({ files, now = Date.now }: WikiDeps, page: WikiPage): Promise<SourceLink> {
  if (page.source === null) throw new Failure('not_found', 'The page has no source file.')
  const { r2_key, filename, locator } = page.source
  const url = await files.makeLink(r2_key, now() + SOURCE_LINK_TTL_SECS * MS_PER_SECOND)
  return { r2_key, filename, locator, url, url_ttl_secs: SOURCE_LINK_TTL_SECS }
}
