/** Knowledge bases, and who may read them. */
import type { KnowledgeBase } from '../../../schemas/knowledge/wiki.ts'
import { DEFAULT_KB_ID } from '../../../schemas/knowledge/wiki.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { accountNotFound } from '../accounts/accounts.ts'
import { Refusal } from '../billing/refusal.ts'
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'
import type { Listing } from '../listing.ts'
import { inTransaction } from '../transaction.ts'
import { expireSources } from './sources.ts'
import type { ReadableBase, WikiReader } from './types.ts'

/** Deleting a base of a million pages may take this long. */
const DELETE_TIMEOUT_MS = 10 * 60_000

type BaseRow = SnakeCase<Omit<KnowledgeBase, 'pages'>> & { page_count: number }

const toBase = (row: BaseRow): KnowledgeBase => ({
  id: row.id,
  accountId: row.account_id,
  name: row.name,
  isDefault: row.is_default,
  pages: row.page_count,
  createdAt: row.created_at,
  readers: row.readers,
})

export const baseNotFound = (baseId: string): Refusal =>
  new Refusal('kb_not_found', `There is no knowledge base ${baseId}`)

// By name: processes of the previous version run this beside a migration that adds a column.
const selectBases = (sql: Queryable) => sql`
  SELECT b.id, b.account_id, b.name, b.is_default, b.page_count, b.created_at, ARRAY(
    SELECT reader_id FROM knowledge_readers AS r WHERE r.base_id = b.id ORDER BY r.created_at, r.reader_id
  ) AS readers
  FROM knowledge_bases AS b`

/** @throws Refusal `kb_not_found` */
export async function showBase(sql: Queryable, baseId: string): Promise<KnowledgeBase> {
  const [row] = await sql<BaseRow[]>`${selectBases(sql)} WHERE b.id = ${baseId}`
  if (row === undefined) throw baseNotFound(baseId)
  return toBase(row)
}

/** Lists the bases of an account, or of all, in the order of their ids. */
export async function listBases(
  sql: Queryable,
  accountId: string | null,
  { after = null, limit = null }: Listing = {},
): Promise<KnowledgeBase[]> {
  const rows = await sql<BaseRow[]>`
    ${selectBases(sql)}
    WHERE ${accountId === null ? sql`true` : sql`b.account_id = ${accountId}`}
      AND ${after === null ? sql`true` : sql`b.id > ${after}`}
    ORDER BY b.id LIMIT ${limit}`
  return rows.map(toBase)
}

/** @throws Refusal `account_not_found`, `limit_reached` except for an operator */
export const createBase = (
  sql: Sql,
  accountId: string,
  name: string,
  { isOperator = false }: { readonly isOperator?: boolean } = {},
): Promise<KnowledgeBase> =>
  isOperator
    ? insertBase(sql, accountId, name)
    : addWithin(
        sql,
        {
          limit: 'knowledge_bases_per_account',
          ownerId: accountId,
          entries: (present) => present`SELECT FROM knowledge_bases WHERE account_id = ${accountId}`,
        },
        (transaction) => insertBase(transaction, accountId, name),
      )

async function insertBase(sql: Queryable, accountId: string, name: string): Promise<KnowledgeBase> {
  const id = newId('kb')
  const { count } = await sql`
    INSERT INTO knowledge_bases (id, account_id, name) SELECT ${id}, id, ${name} FROM accounts WHERE id = ${accountId}`
  if (count === 0) throw accountNotFound(accountId)
  return showBase(sql, id)
}

/** Returns the account's own base; null as long as nothing was imported into it. */
export async function findDefaultBase(sql: Queryable, accountId: string): Promise<KnowledgeBase | null> {
  const [row] = await sql<BaseRow[]>`
    ${selectBases(sql)} WHERE b.account_id = ${accountId} AND b.is_default`
  return row === undefined ? null : toBase(row)
}

/** Creates the account's own base under this id. Changes nothing where there is one already, or no such account. */
export async function createDefaultBase(sql: Queryable, id: string, accountId: string): Promise<void> {
  await sql`
    INSERT INTO knowledge_bases (id, account_id, name, is_default)
    SELECT ${id}, id, ${DEFAULT_KB_ID}, true FROM accounts WHERE id = ${accountId}
    ON CONFLICT (account_id) WHERE is_default DO NOTHING`
}

/** Returns the account's own base, created at its first use. */
export async function defaultBase(sql: Sql, accountId: string): Promise<KnowledgeBase> {
  await createDefaultBase(sql, newId('kb'), accountId)
  const base = await findDefaultBase(sql, accountId)
  if (base === null) throw accountNotFound(accountId)
  return base
}

/**
 * Deletes a base with all its pages. The sweep deletes its sources from the object store when no link to them is valid
 * any more.
 */
export function deleteBase(sql: Sql, baseId: string): Promise<KnowledgeBase> {
  return inTransaction(sql, async (transaction) => {
    await transaction`SELECT set_config('statement_timeout', ${String(DELETE_TIMEOUT_MS)}, true)`
    const [locked] = await transaction`SELECT FROM knowledge_bases WHERE id = ${baseId} FOR UPDATE`
    if (locked === undefined) throw baseNotFound(baseId)
    const base = await showBase(transaction, baseId)
    await expireSources(transaction, baseId)
    await transaction`DELETE FROM knowledge_bases WHERE id = ${baseId}`
    return base
  })
}

/**
 * Grants a base. A second call changes nothing.
 * @throws Refusal `reader_not_found`: neither an account nor an agent; `limit_reached`
 */
export async function grantBase(sql: Sql, baseId: string, readerId: string): Promise<KnowledgeBase> {
  return inTransaction(sql, async (transaction) => {
    const [locked] = await transaction`SELECT FROM knowledge_bases WHERE id = ${baseId} FOR SHARE`
    if (locked === undefined) throw baseNotFound(baseId)
    const [reader] = await transaction`
      SELECT FROM accounts WHERE id = ${readerId}
      UNION ALL
      SELECT FROM agents WHERE id = ${readerId} AND state <> 'deleted'`
    if (reader === undefined)
      throw new Refusal('reader_not_found', `There is neither an account nor an agent ${readerId}`)
    return addWithin(
      transaction,
      {
        limit: 'readers_per_knowledge_base',
        ownerId: baseId,
        entries: (present) =>
          present`SELECT FROM knowledge_readers WHERE base_id = ${baseId} AND reader_id <> ${readerId}`,
      },
      async () => {
        await transaction`
          INSERT INTO knowledge_readers (base_id, reader_id) VALUES (${baseId}, ${readerId}) ON CONFLICT DO NOTHING`
        return showBase(transaction, baseId)
      },
    )
  })
}

/** @throws Refusal `reader_not_found`: it was not granted to that reader. */
export async function revokeBase(sql: Sql, baseId: string, readerId: string): Promise<KnowledgeBase> {
  const { count } = await sql`
    DELETE FROM knowledge_readers WHERE base_id = ${baseId} AND reader_id = ${readerId}`
  const base = await showBase(sql, baseId)
  if (count === 0) throw new Refusal('reader_not_found', `${baseId} was not granted to ${readerId}`)
  return base
}

/** The own base before there is one. */
const NOTHING_IMPORTED: ReadableBase = { id: '', kbId: DEFAULT_KB_ID, name: DEFAULT_KB_ID, pages: 0 }

/** Returns the own base first (it exists even before any import), then the others by name. */
export async function listReadableBases(sql: Sql, reader: WikiReader): Promise<ReadableBase[]> {
  const { accountId, memberId, agentId } = reader
  const readers = [accountId, memberId, agentId].filter((id) => id !== null && id !== undefined)
  const rows = await sql<{ id: string; name: string; page_count: number; is_own: boolean }[]>`
    SELECT id, name, page_count, is_default AND account_id = ${accountId} AS is_own
    FROM knowledge_bases
    WHERE id IN (
      SELECT id FROM knowledge_bases WHERE account_id = ${accountId}
      UNION ALL
      SELECT base_id FROM knowledge_readers WHERE reader_id = ANY (${readers}::text[]))
    ORDER BY is_own DESC, name, id`
  const bases = rows.map(({ id, name, page_count, is_own }) => ({
    id,
    kbId: is_own ? DEFAULT_KB_ID : id,
    name,
    pages: page_count,
  }))
  return bases[0]?.kbId === DEFAULT_KB_ID ? bases : [NOTHING_IMPORTED, ...bases]
}

/**
 * Returns a base. Null: it does not exist, or the reader may not read it. `kbId` is the reader's name for it. The own
 * base is also found by its id.
 */
export async function findBase(sql: Sql, reader: WikiReader, kbId: string): Promise<ReadableBase | null> {
  if (kbId === '') return null
  const bases = await listReadableBases(sql, reader)
  return bases.find((base) => base.kbId === kbId || base.id === kbId) ?? null
}
