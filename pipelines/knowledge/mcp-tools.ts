/** The tools of the MCP server, which read every base that the key's user may read. See docs/api-rules.md, "MCP". */
import { Failure } from '../../schemas/failure.ts'
import {
  MCP_LIST_MAX_ENTRIES,
  READ_PAGE_BODY_MAX_CHARS,
  READ_PAGES_BODY_MAX_CHARS,
  type WikiEntry,
  type WikiPage,
} from '../../schemas/knowledge/wiki.ts'
import type { ToolSet } from '../../src/mcp/tools.ts'
import type { ReadableBase, WikiReader } from '../../src/postgres/knowledge/types.ts'
import { cutPage, isPageId, linkToSource, printSearch, read, readByTag, type WikiDeps } from './reading.ts'

/** The longest part of a client's id that an error repeats. */
const ECHO_MAX_CHARS = 60
/** One more than is listed, to know whether there are more. */
const FETCHED_ENTRIES = MCP_LIST_MAX_ENTRIES + 1

const noPage = (id: string): Failure =>
  new Failure(
    'not_found',
    `There is no page ${JSON.stringify(id.slice(0, ECHO_MAX_CHARS))} that this key can read. Take ids from ` +
      'search_wiki, list_by_tag, backlinks or outgoing_links.',
  )

const printEntries = (found: readonly WikiEntry[]) => {
  const pages = found.slice(0, MCP_LIST_MAX_ENTRIES)
  return { returned: pages.length, has_more: found.length > pages.length, pages }
}

export function wikiTools(deps: WikiDeps, reader: WikiReader): ToolSet {
  const { wiki } = deps
  const bases = (): Promise<ReadableBase[]> => read(wiki.listReadableBases(reader))

  const findPage = async (id: string): Promise<WikiPage> => {
    const [page] = isPageId(id) ? await read(wiki.readPages(await bases(), [id])) : []
    if (page === undefined) throw noPage(id)
    return page
  }

  return {
    search_wiki: async ({ q, limit, offset }) =>
      printSearch(q, offset, await read(wiki.searchPages(await bases(), q, { limit, offset }))),
    read_page: async ({ id }) => cutPage(await findPage(id), READ_PAGE_BODY_MAX_CHARS),
    read_pages: async ({ ids }) => {
      const asked = [...new Set(ids)]
      const found = await read(wiki.readPages(await bases(), asked.filter(isPageId)))
      const known = new Set(found.map(({ id }) => id))
      return {
        pages: found.map((page) => cutPage(page, READ_PAGES_BODY_MAX_CHARS)),
        missing: asked.filter((id) => !known.has(id)),
      }
    },
    list_by_tag: async ({ tag }) => ({
      tag,
      ...printEntries(await readByTag(deps, await bases(), tag, FETCHED_ENTRIES)),
    }),
    backlinks: async ({ id }) => {
      const found = isPageId(id) ? await read(wiki.listBacklinks(await bases(), id, FETCHED_ENTRIES)) : null
      if (found === null) throw noPage(id)
      return { id, ...printEntries(found) }
    },
    get_source: async ({ id }) => linkToSource(deps, await findPage(id)),
  }
}
