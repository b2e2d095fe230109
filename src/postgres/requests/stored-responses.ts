/** Responses that upstreams keep for accounts. See docs/api-rules.md, "Responses". */
import type { Queryable, Sql } from '../connection.ts'
import { type EndedConversationCall, endConversationCall } from './stored-conversations.ts'

/** The most expired rows that one statement removes. */
const PURGE_ROWS = 1000

export interface StoredResponse {
  readonly channelId: string
  /** The upstream's id of it, where the account may have another one. */
  readonly upstreamId: string
  /** Tokens that a call which goes on with it reads again: of its prompt and of its output; null while unknown. */
  readonly tokens: number | null
}

/** An item of a response that an upstream keeps. */
export interface StoredItem {
  readonly id: string
  readonly responseId: string
  readonly channelId: string
  /** Of the output that it is a part of; null while unknown. */
  readonly tokens: number | null
}

/** The items of a response's output, and the tokens of all of it. */
interface ItemsToStore {
  readonly ids: readonly string[]
  readonly tokens: number | null
}

export interface ResponseToStore {
  readonly accountId: string
  /** The upstream's; null where it keeps none. */
  readonly id: string | null
  readonly channelId: string
  readonly tokens: number | null
  readonly items?: ItemsToStore
  /** How long the upstream keeps it. */
  readonly days: number
  /** The end of the call in the conversation that it is a part of; null without one. */
  readonly conversation: Omit<EndedConversationCall, 'accountId'> | null
}

export async function storeResponse(
  sql: Sql,
  { accountId, id, channelId, tokens, items, days, conversation }: ResponseToStore,
): Promise<void> {
  if (conversation !== null) await endConversationCall(sql, { accountId, ...conversation })
  if (id === null) return
  await sql`
    INSERT INTO stored_responses (account_id, id, channel_id, tokens, expires_at)
    VALUES (${accountId}, ${id}, ${channelId}, ${tokens}, now() + make_interval(days => ${days}))
    ON CONFLICT (account_id, id) DO UPDATE SET
      channel_id = excluded.channel_id, tokens = excluded.tokens, expires_at = excluded.expires_at`
  if (items === undefined || items.ids.length === 0) return
  await sql`
    INSERT INTO stored_items (account_id, id, response_id, channel_id, tokens, expires_at)
    SELECT DISTINCT ${accountId}, item, ${id}, ${channelId}, ${items.tokens}::bigint, now() + make_interval(days => ${days})
    FROM unnest(${items.ids as string[]}::text[]) AS item
    ON CONFLICT (account_id, id) DO UPDATE SET response_id = excluded.response_id,
      channel_id = excluded.channel_id, tokens = excluded.tokens, expires_at = excluded.expires_at`
}

/** Returns those of the items that the account has. */
export async function findStoredItems(
  sql: Sql,
  accountId: string,
  ids: readonly string[],
): Promise<StoredItem[]> {
  const rows = await sql<{ id: string; response_id: string; channel_id: string; tokens: bigint | null }[]>`
    SELECT id, response_id, channel_id, tokens FROM stored_items
    WHERE account_id = ${accountId} AND id = ANY (${ids as string[]}::text[]) AND expires_at > now()`
  return rows.map(({ id, response_id: responseId, channel_id: channelId, tokens }) => ({
    ...{ id, responseId, channelId },
    tokens: tokens === null ? null : Number(tokens),
  }))
}

/** Returns a response of the account, one made in the background too; null for one that it does not have, or that has expired. */
export async function findStoredResponse(
  sql: Sql,
  accountId: string,
  id: string,
): Promise<StoredResponse | null> {
  const [row] = await sql<{ channel_id: string; upstream_id: string; tokens: bigint | null }[]>`
    SELECT channel_id, coalesce(upstream_id, id) AS upstream_id, tokens FROM stored_responses
    WHERE account_id = ${accountId} AND id = ${id} AND expires_at > now()`
  if (row === undefined) return null
  const { channel_id: channelId, upstream_id: upstreamId, tokens } = row
  return { channelId, upstreamId, tokens: tokens === null ? null : Number(tokens) }
}

/** Removes a response, under all of its ids, and its items. */
export async function forgetStoredResponse(sql: Sql, accountId: string, id: string): Promise<void> {
  await sql`DELETE FROM stored_items WHERE account_id = ${accountId} AND response_id = ${id}`
  await sql`
    DELETE FROM stored_responses WHERE account_id = ${accountId} AND (id = ${id} OR task_id = (
      SELECT task_id FROM stored_responses WHERE account_id = ${accountId} AND id = ${id}))`
}

interface BackgroundResponse {
  readonly accountId: string
  readonly taskId: string
  readonly upstreamId: string
  readonly channelId: string
  readonly days: number
}

/** Notes which upstream has a response that is made in the background, under its id and under that of its task. */
export async function noteBackgroundResponse(
  sql: Queryable,
  { accountId, taskId, upstreamId, channelId, days }: BackgroundResponse,
): Promise<void> {
  await sql`
    INSERT INTO stored_responses (account_id, id, channel_id, tokens, expires_at, task_id, upstream_id)
    SELECT ${accountId}, id, ${channelId}, NULL, now() + make_interval(days => ${days}), ${taskId}, ${upstreamId}
    FROM unnest(ARRAY[${taskId}, ${upstreamId}]) AS id
    ON CONFLICT (account_id, id) DO NOTHING`
}

/** Notes the tokens of a response that was made in the background, and its items, under the id of its task. */
export async function measureBackgroundResponse(
  sql: Queryable,
  taskId: string,
  tokens: number,
  items: ItemsToStore,
): Promise<void> {
  await sql`UPDATE stored_responses SET tokens = ${tokens} WHERE task_id = ${taskId}`
  if (items.ids.length === 0) return
  await sql`
    INSERT INTO stored_items (account_id, id, response_id, channel_id, tokens, expires_at)
    SELECT DISTINCT account_id, item, id, channel_id, ${items.tokens}::bigint, expires_at
    FROM stored_responses, unnest(${items.ids as string[]}::text[]) AS item
    WHERE task_id = ${taskId} AND id = ${taskId}
    ON CONFLICT (account_id, id) DO NOTHING`
}

/** Removes some of the rows that have expired; returns how many. */
export async function purgeStoredResponses(sql: Sql): Promise<number> {
  const gone = await sql`
    DELETE FROM stored_responses WHERE (account_id, id) IN (
      SELECT account_id, id FROM stored_responses WHERE expires_at <= now() LIMIT ${PURGE_ROWS})`
  const items = await sql`
    DELETE FROM stored_items WHERE (account_id, id) IN (
      SELECT account_id, id FROM stored_items WHERE expires_at <= now() LIMIT ${PURGE_ROWS})`
  return gone.count + items.count
}
