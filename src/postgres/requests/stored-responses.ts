/** Responses that upstreams keep for accounts. See docs/api-rules.md, "Responses". */
import type { Sql } from '../connection.ts'

/** Expired rows are removed so many at a time. */
const PURGE_ROWS = 1000

export interface StoredResponse {
  readonly channelId: string
  /** Tokens that a call which goes on with it reads again: of its prompt and of its output. */
  readonly tokens: number
}

export interface ResponseToStore extends StoredResponse {
  readonly accountId: string
  /** The upstream's. */
  readonly id: string
  /** For so long the upstream keeps it. */
  readonly days: number
}

export async function storeResponse(
  sql: Sql,
  { accountId, id, channelId, tokens, days }: ResponseToStore,
): Promise<void> {
  await sql`
    INSERT INTO stored_responses (account_id, id, channel_id, tokens, expires_at)
    VALUES (${accountId}, ${id}, ${channelId}, ${tokens}, now() + make_interval(days => ${days}))
    ON CONFLICT (account_id, id) DO UPDATE SET
      channel_id = excluded.channel_id, tokens = excluded.tokens, expires_at = excluded.expires_at`
}

/** Returns a response of the account; null for one that it does not have, or that has expired. */
export async function findStoredResponse(
  sql: Sql,
  accountId: string,
  id: string,
): Promise<StoredResponse | null> {
  const [row] = await sql<{ channel_id: string; tokens: string }[]>`
    SELECT channel_id, tokens::text FROM stored_responses
    WHERE account_id = ${accountId} AND id = ${id} AND expires_at > now()`
  return row === undefined ? null : { channelId: row.channel_id, tokens: Number(row.tokens) }
}

export async function forgetStoredResponse(sql: Sql, accountId: string, id: string): Promise<void> {
  await sql`DELETE FROM stored_responses WHERE account_id = ${accountId} AND id = ${id}`
}

/** Removes some of the rows that have expired; returns how many. */
export async function purgeStoredResponses(sql: Sql): Promise<number> {
  const gone = await sql`
    DELETE FROM stored_responses WHERE (account_id, id) IN (
      SELECT account_id, id FROM stored_responses WHERE expires_at <= now() LIMIT ${PURGE_ROWS})`
  return gone.count
}
