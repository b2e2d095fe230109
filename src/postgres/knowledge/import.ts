/** Imports a folder into a base: new and changed pages, and the removal of those without a file, all or nothing. */
import { randomUUID } from 'node:crypto'
import { COLLECTION_LIMITS } from '../../../schemas/collection-limits.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import { Refusal } from '../billing/refusal.ts'
import { lockCollection } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'
import { inTransaction, type Transaction } from '../transaction.ts'
import { baseNotFound, createDefaultBase } from './bases.ts'
import { PageIndexer } from './index.ts'
import { settleSources } from './sources.ts'
import {
  clearStaged,
  clearStale,
  countTags,
  type MergedPage,
  mergeStaged,
  mergeStagedNames,
  stageDrafts,
} from './staging.ts'
import type { FolderImport, ImportOutcome } from './types.ts'

/** One statement, also the one that waits until another import of the base is done. */
const STATEMENT_TIMEOUT_MS = 10 * 60_000
const BATCH_PAGES = 500

/** Returns path and hash of every page, so that unchanged pages need not be read again. */
export async function readPageHashes(sql: Queryable, baseId: string): Promise<Map<string, Buffer>> {
  const rows = await sql<{ path: string; hash: Buffer }[]>`
    SELECT path, hash FROM wiki_pages WHERE base_id = ${baseId}`
  return new Map(rows.map(({ path, hash }) => [path, hash]))
}

/**
 * Imports pages, all or nothing, for readers as well: they see the former base until the import is complete.
 * @throws Refusal `import_conflict`: another import has changed the base since `readPageHashes` was called; `kb_full`
 */
export async function importPages(sql: Sql, folder: FolderImport): Promise<ImportOutcome> {
  const importId = randomUUID()
  await clearStale(sql)
  try {
    const staged = await stageDrafts(sql, importId, folder.drafts)
    return await inTransaction(sql, (transaction) => importFolder(transaction, importId, folder, staged))
  } finally {
    // When PostgreSQL is down, the next import does it.
    await clearStaged(sql, importId).catch(() => {})
  }
}

async function importFolder(
  transaction: Transaction,
  importId: string,
  { baseId, ownerId, present, prune, maxAccountPages = null, onStored }: FolderImport,
  staged: ReadonlySet<string>,
): Promise<ImportOutcome> {
  await transaction`SELECT set_config('statement_timeout', ${String(STATEMENT_TIMEOUT_MS)}, true)`
  if (ownerId !== undefined) await createDefaultBase(transaction, baseId, ownerId)
  const [base] = await transaction<{ account_id: string }[]>`
    SELECT account_id FROM knowledge_bases WHERE id = ${baseId} FOR NO KEY UPDATE`
  // The account has an own base under another id: an import that began as early was faster.
  if (base === undefined) throw ownerId === undefined ? baseNotFound(baseId) : importConflict()
  const known = await readPageHashes(transaction, baseId)
  refuseConflict(known, present, staged)

  const index = new PageIndexer(transaction, baseId)
  const named = new Set<string>()
  const dropped = new Set<string>()
  let [added, changed] = [0, 0]
  for (let first = 1; first <= staged.size; first += BATCH_PAGES) {
    const range = { first, last: Math.min(first + BATCH_PAGES - 1, staged.size) }
    const taken = await importBatch(transaction, index, importId, baseId, range)
    for (const page of taken) {
      if (page.isNew) added++
      else changed++
      if (page.source_key !== null) named.add(page.source_key)
      if (page.formerSourceKey !== null) dropped.add(page.formerSourceKey)
    }
    onStored?.(range.last, staged.size)
  }
  const gone = [...known.keys()].filter((path) => !present.has(path)).sort()
  if (prune) for (const key of await removePages(transaction, index, baseId, gone)) dropped.add(key)
  await index.finish()
  if (added + changed > 0 || (prune && gone.length > 0)) await countTags(transaction, baseId)
  await settleSources(transaction, [...named], [...dropped])

  const pages = known.size + added - (prune ? gone.length : 0)
  await assertRoom(transaction, { baseId, accountId: base.account_id, pages, maxAccountPages })
  await transaction`UPDATE knowledge_bases SET page_count = ${pages} WHERE id = ${baseId}`
  await recordOperation(transaction, {
    action: 'kb.import',
    accountId: base.account_id,
    subjectId: baseId,
    before: { pages: known.size },
    after: { pages, added, changed, removed: prune ? gone.length : 0 },
  })
  return { added, changed, unchanged: present.size - added - changed, gone, pages }
}

interface Room {
  readonly baseId: string
  readonly accountId: string
  readonly pages: number
  readonly maxAccountPages: number | null
}

/** @throws Refusal `kb_full` */
async function assertRoom(
  transaction: Transaction,
  { baseId, accountId, pages, maxAccountPages }: Room,
): Promise<void> {
  const ofBase = COLLECTION_LIMITS.pages_per_knowledge_base
  if (pages > ofBase)
    throw new Refusal(
      'kb_full',
      `The base would have ${pages} pages. The limit pages_per_knowledge_base is ${ofBase}: import fewer`,
    )
  if (maxAccountPages === null) return
  // Of two imports into different bases at the same time, the second one counts the pages of the first.
  await lockCollection(transaction, 'pages_per_account', accountId)
  const [others] = await transaction<[{ pages: bigint }]>`
    SELECT coalesce(sum(page_count), 0) AS pages FROM knowledge_bases
    WHERE account_id = ${accountId} AND id <> ${baseId}`
  const all = Number(others.pages) + pages
  if (all > maxAccountPages)
    throw new Refusal(
      'kb_full',
      `The account would have ${all} pages. The limit pages_per_account is ${maxAccountPages}: import fewer, or ask an operator to import them`,
    )
}

async function importBatch(
  transaction: Transaction,
  index: PageIndexer,
  importId: string,
  baseId: string,
  range: { readonly first: number; readonly last: number },
): Promise<MergedPage[]> {
  const taken = await mergeStaged(transaction, importId, baseId, range)
  if (taken.length === 0) return taken
  await mergeStagedNames(transaction, baseId, taken)
  await index.put(
    taken.map(({ row_id, plain_text, title, aliases, tags, summary }) => {
      return { rowId: row_id, title, aliases, tags, summary, text: plain_text }
    }),
  )
  return taken
}

const importConflict = (): Refusal =>
  new Refusal(
    'import_conflict',
    'Another import has changed this knowledge base meanwhile, and nothing of this one was stored: run it again',
  )

/** Refuses the import when pages that it skipped as unchanged have changed since. */
function refuseConflict(
  known: ReadonlyMap<string, Buffer>,
  present: ReadonlyMap<string, Buffer>,
  staged: ReadonlySet<string>,
): void {
  for (const [path, hash] of present) {
    if (!staged.has(path) && !known.get(path)?.equals(hash)) throw importConflict()
  }
}

/** Answers the keys of the source files that they named. */
async function removePages(
  transaction: Transaction,
  index: PageIndexer,
  baseId: string,
  paths: readonly string[],
): Promise<string[]> {
  const keys: string[] = []
  for (let from = 0; from < paths.length; from += BATCH_PAGES) {
    const rows = await transaction<{ row_id: bigint; source_key: string | null }[]>`
      DELETE FROM wiki_pages WHERE base_id = ${baseId} AND path = ANY (${paths.slice(from, from + BATCH_PAGES)}::text[])
      RETURNING row_id, source ->> 'r2_key' AS source_key`
    if (rows.length > 0) await index.remove(rows.map(({ row_id }) => row_id))
    for (const { source_key } of rows) if (source_key !== null) keys.push(source_key)
  }
  return keys
}
