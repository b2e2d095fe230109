/**
 * `GET /api/v1/ext/wiki/…`: the knowledge bases that a key may read. Free, even with an empty wallet, and not
 * logged. See docs/api-rules.md, "Knowledge search".
 */
import { Failure } from '../../schemas/failure.ts'
import { ofBaseQuery, pagesQuery, searchQuery } from '../../schemas/knowledge/query.ts'
import {
  REST_BATCH_BODY_MAX_CHARS,
  REST_LIST_MAX_ENTRIES,
  SEARCH_DEFAULT_LIMIT,
  type WikiPage,
} from '../../schemas/knowledge/wiki.ts'
import type { Handler } from '../../src/http/handler.ts'
import type { ReadableBase } from '../../src/postgres/knowledge/types.ts'
import { type AuthenticatedCall, authenticate, type Caller, type KeyAccess } from '../calls/authenticate.ts'
import type { Call } from '../calls/pipeline.ts'
import { answerJson, calls, type Found, find } from '../calls/pipeline.ts'
import { readQuery } from '../calls/query.ts'
import {
  cutPage,
  isKbId,
  isPageId,
  linkToSource,
  printSearch,
  read,
  readByTag,
  toReader,
  type WikiDeps,
} from './reading.ts'

/**
 * Returns the same failure for a missing page and for one that the key may not read, so that clients cannot
 * distinguish them.
 */
const notFound = (): Failure => new Failure('not_found', 'There is no such knowledge base or page.')

/** Returns the stages of every endpoint here: free and without limits. */
const readWiki = (access: KeyAccess, work: (caller: Caller) => Promise<object>): Handler =>
  calls(authenticate(access))
    .then(find<AuthenticatedCall, object>(work))
    .then(answerJson(({ found }: Call & Found<object>) => found))
    .toHandler()

async function findBase(deps: WikiDeps, { known }: Caller, kbId: string): Promise<ReadableBase> {
  const base = isKbId(kbId) ? await read(deps.wiki.findBase(toReader(known), kbId)) : null
  if (base === null) throw notFound()
  return base
}

const findRequestedBase = (deps: WikiDeps, caller: Caller): Promise<ReadableBase> =>
  findBase(deps, caller, readQuery(ofBaseQuery, caller.request.query).kb_id)

/** Returns the base and the requested page id, which may not exist. */
async function readPageId(deps: WikiDeps, caller: Caller) {
  const { id } = caller.request.params
  const base = await findRequestedBase(deps, caller)
  if (!isPageId(id)) throw notFound()
  return { base, id }
}

async function findRequestedPage(deps: WikiDeps, caller: Caller): Promise<WikiPage> {
  const { base, id } = await readPageId(deps, caller)
  const [page] = await read(deps.wiki.readPages([base], [id]))
  if (page === undefined) throw notFound()
  return page
}

const list = (found: readonly object[], limit = Number.POSITIVE_INFINITY) => ({
  object: 'list',
  data: found.slice(0, limit),
  has_more: found.length > limit,
})

export const searchWiki = (access: KeyAccess, deps: WikiDeps): Handler =>
  readWiki(access, async (caller) => {
    const query = readQuery(searchQuery, caller.request.query)
    const { q, kb_id, limit = SEARCH_DEFAULT_LIMIT, offset = 0 } = query
    const base = await findBase(deps, caller, kb_id)
    return printSearch(q, offset, await read(deps.wiki.searchPages([base], q, { limit, offset })))
  })

export const listBases = (access: KeyAccess, deps: WikiDeps): Handler =>
  readWiki(access, async ({ known }) => {
    const bases = await read(deps.wiki.listReadableBases(toReader(known)))
    return list(bases.map(({ kbId, name, pages }) => ({ kb_id: kbId, name, page_count: pages })))
  })

/** One more than is listed, to know whether there are more. */
const FETCHED_ENTRIES = REST_LIST_MAX_ENTRIES + 1

export const listTags = (access: KeyAccess, deps: WikiDeps): Handler =>
  readWiki(access, async (caller) => {
    const base = await findRequestedBase(deps, caller)
    return list(await read(deps.wiki.listTags([base], FETCHED_ENTRIES)), REST_LIST_MAX_ENTRIES)
  })

export const listByTag = (access: KeyAccess, deps: WikiDeps): Handler =>
  readWiki(access, async (caller) => {
    const base = await findRequestedBase(deps, caller)
    return list(
      await readByTag(deps, [base], caller.request.params.tag, FETCHED_ENTRIES),
      REST_LIST_MAX_ENTRIES,
    )
  })

export const readPages = (access: KeyAccess, deps: WikiDeps): Handler =>
  readWiki(access, async (caller) => {
    const { ids, kb_id } = readQuery(pagesQuery, caller.request.query)
    const base = await findBase(deps, caller, kb_id)
    const pages = await read(deps.wiki.readPages([base], ids.filter(isPageId)))
    return list(pages.map((page) => cutPage(page, REST_BATCH_BODY_MAX_CHARS)))
  })

export const readPage = (access: KeyAccess, deps: WikiDeps): Handler =>
  readWiki(access, (caller) => findRequestedPage(deps, caller))

export const listBacklinks = (access: KeyAccess, deps: WikiDeps): Handler =>
  readWiki(access, async (caller) => {
    const { base, id } = await readPageId(deps, caller)
    const found = await read(deps.wiki.listBacklinks([base], id, FETCHED_ENTRIES))
    if (found === null) throw notFound()
    return list(found, REST_LIST_MAX_ENTRIES)
  })

export const showSource = (access: KeyAccess, deps: WikiDeps): Handler =>
  readWiki(access, async (caller) => linkToSource(deps, await findRequestedPage(deps, caller)))
