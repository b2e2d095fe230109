/** Requests and answers of the knowledge endpoints. See docs/api-rules.md, "Knowledge search". */
import { z } from 'zod'
import { queryNumber } from '../query.ts'
import {
  BATCH_MAX_PAGES,
  DEFAULT_KB_ID,
  QUERY_MAX_CHARS,
  REST_BATCH_BODY_MAX_CHARS,
  REST_LIST_MAX_ENTRIES,
  SEARCH_DEFAULT_LIMIT,
  SEARCH_MAX_LIMIT,
  SOURCE_LINK_TTL_SECS,
  searchResult,
  wikiEntry,
  wikiPage,
} from './wiki.ts'

/** The last offset of a search. */
export const OFFSET_MAX = 1_000_000

const REQUIRED = 'is required'

/** Replaces NUL, which PostgreSQL's texts cannot contain. */
const removeNul = (text: string): string => text.replaceAll('\0', ' ').trim()

export const queryText = z
  .string({ error: REQUIRED })
  .max(QUERY_MAX_CHARS, `must have at most ${QUERY_MAX_CHARS} characters`)
  .transform(removeNul)
  .refine((text) => text !== '', REQUIRED)
  .meta({ pattern: '[^\\s\\0]' })

export const ofBaseQuery = z.object({
  kb_id: z
    .string()
    .default(DEFAULT_KB_ID)
    .describe(`The base, as \`/kbs\` lists it; default \`${DEFAULT_KB_ID}\`, the account's own.`),
})

export const searchQuery = ofBaseQuery.extend({
  q: queryText.describe(
    `Words to look for, at most ${QUERY_MAX_CHARS} characters; typing errors are forgiven.`,
  ),
  limit: queryNumber(1, SEARCH_MAX_LIMIT)
    .optional()
    .describe(`1 to ${SEARCH_MAX_LIMIT}, default ${SEARCH_DEFAULT_LIMIT}.`),
  offset: queryNumber(0, OFFSET_MAX).optional().describe('The number of results to skip; default 0.'),
})

/** In the order given, each once, and at most as many as are answered. */
const pageIdList = z
  .string({ error: REQUIRED })
  .transform((text) => {
    const ids = text.split(',').map((id) => id.trim())
    return [...new Set(ids.filter((id) => id !== ''))].slice(0, BATCH_MAX_PAGES)
  })
  .refine((ids) => ids.length > 0, REQUIRED)
  .meta({ pattern: '[^\\s,]' })

export const pagesQuery = ofBaseQuery.extend({
  ids: pageIdList.describe(`Separated by commas; what is behind the ${BATCH_MAX_PAGES}th is left out.`),
})

export const wikiPagePath = z.object({ id: z.string().describe('`page_…`.') })
export const wikiTagPath = z.object({ tag: z.string().describe('URL-encoded; any script.') })

/** The hits of a search, for REST and MCP. */
export const searchPage = z.object({
  query: z.string(),
  total_hits: z.int(),
  offset: z.int(),
  returned: z.int(),
  has_more: z.boolean(),
  results: z.array(searchResult),
})

const acceptList = <T extends z.ZodType>(item: T) =>
  z.object({ object: z.literal('list'), data: z.array(item), has_more: z.boolean() })

export const kbList = acceptList(
  z.object({
    kb_id: z.string().describe('To be given as `kb_id`.'),
    name: z.string(),
    page_count: z.int(),
  }),
)

export const tagList = acceptList(
  z.object({ tag: z.string(), count: z.int().describe('Pages that have it.') }),
).describe(`The most used first, at most ${REST_LIST_MAX_ENTRIES}.`)

export const wikiEntryList = acceptList(wikiEntry).describe(`By title, at most ${REST_LIST_MAX_ENTRIES}.`)

export const cutPage = wikiPage.extend({
  body_truncated: z.boolean().describe('There is more of the body than is given here.'),
})
export type CutPage = z.infer<typeof cutPage>

export const cutPageList = acceptList(cutPage).describe(
  `Bodies are cut behind ${REST_BATCH_BODY_MAX_CHARS} characters. Ids that name no page of the base are left out.`,
)

export const sourceLink = z.object({
  r2_key: z.string().describe("The file's key in the object store."),
  filename: z.string(),
  locator: z.string().nullable().describe('Where in the file, such as a page or a line.'),
  url: z.string().describe('Opens the file, for anyone who has the link.'),
  url_ttl_secs: z.int().describe(`So long, in seconds: ${SOURCE_LINK_TTL_SECS}.`),
})
export type SourceLink = z.infer<typeof sourceLink>
