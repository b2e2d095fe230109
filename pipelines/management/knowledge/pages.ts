/** Operations that read the pages of a knowledge base. */
import { Failure } from '../../../schemas/failure.ts'
import { listPages, searchPages, showPage } from '../../../schemas/management/knowledge/pages.ts'
import type { Database } from '../../../src/postgres/database.ts'
import type { ReadableBase } from '../../../src/postgres/knowledge/types.ts'
import { isPageId, printSearch, read } from '../../knowledge/reading.ts'
import { implement } from '../operation.ts'
import { readPage, toPage } from '../page.ts'

const MAX_BACKLINKS = 100

/** @throws Failure `not_found`: there is none, or the account may not read it */
async function findBase(
  database: Database,
  { id, account_id: accountId }: { readonly id: string; readonly account_id: string },
): Promise<ReadableBase> {
  const base = await read(database.knowledge.findBase({ accountId }, id))
  if (base === null || base.id === '') throw new Failure('not_found', `There is no knowledge base ${id}.`)
  return base
}

export const pageOperations = [
  implement(listPages, async ({ database }, input) => {
    const base = await findBase(database, input)
    const found = await read(database.knowledge.listPages(base, readPage(input)))
    const listed = found.map(({ updatedAt, ...entry }) => ({ ...entry, updated_at: updatedAt.toISOString() }))
    return toPage(listed, input, ({ path }) => path)
  }),
  implement(showPage, async ({ database }, input) => {
    const base = await findBase(database, input)
    const { page_id: id } = input
    const [found] = isPageId(id) ? await read(database.knowledge.readPages([base], [id])) : []
    const linking = found && (await read(database.knowledge.listBacklinks([base], id, MAX_BACKLINKS)))
    if (!found || !linking) throw new Failure('not_found', `There is no page ${id} in ${base.name}.`)
    return { ...found, backlinks: linking.map(({ id, title }) => ({ id, title })) }
  }),
  implement(searchPages, async ({ database }, input) => {
    const base = await findBase(database, input)
    const { q, limit, offset } = input
    return printSearch(q, offset, await read(database.knowledge.searchPages([base], q, { limit, offset })))
  }),
]
