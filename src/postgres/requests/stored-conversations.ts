/**
 * Conversations that upstreams keep for accounts, and the tokens that a call which goes on with one reads: those of the
 * last report, what was added since, and what calls under way may add. See docs/api-rules.md, "Conversations".
 */
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'

/** The most expired rows that one statement removes. */
const PURGE_ROWS = 1000

export interface StoredConversation {
  readonly channelId: string
}

export interface ConversationToStore extends StoredConversation {
  readonly accountId: string
  /** The upstream's. */
  readonly id: string
  /** Of its first items, by estimate. */
  readonly tokens: number
}

/** @throws Refusal `limit_reached` */
export const storeConversation = (
  sql: Sql,
  { accountId, id, channelId, tokens }: ConversationToStore,
): Promise<void> =>
  addWithin(
    sql,
    {
      limit: 'conversations_per_account',
      ownerId: accountId,
      entries: (present) =>
        present`SELECT FROM stored_conversations WHERE account_id = ${accountId} AND id <> ${id}`,
    },
    async (transaction) => {
      await transaction`
        INSERT INTO stored_conversations (account_id, id, channel_id, tokens)
        VALUES (${accountId}, ${id}, ${channelId}, ${tokens})
        ON CONFLICT (account_id, id) DO UPDATE SET channel_id = excluded.channel_id, tokens = excluded.tokens`
    },
  )

/** Returns a conversation of the account; null for one that it does not have. */
export async function findStoredConversation(
  sql: Sql,
  accountId: string,
  id: string,
): Promise<StoredConversation | null> {
  const [row] = await sql<{ channel_id: string }[]>`
    SELECT channel_id FROM stored_conversations WHERE account_id = ${accountId} AND id = ${id}`
  return row === undefined ? null : { channelId: row.channel_id }
}

/** Adds the estimated tokens of items that its client puts into it; negative ones of items that were refused. */
export async function addToConversation(
  sql: Sql,
  accountId: string,
  id: string,
  tokens: number,
): Promise<void> {
  await sql`
    UPDATE stored_conversations
    SET tokens = greatest(0, tokens + ${tokens}), added = greatest(0, added + ${tokens})
    WHERE account_id = ${accountId} AND id = ${id}`
}

interface ConversationCall {
  readonly accountId: string
  /** The conversation's. */
  readonly id: string
  readonly requestId: string
}

export interface BegunConversationCall extends ConversationCall {
  /** All that the call may add. */
  readonly tokens: number
  /** How long a call without an end counts. */
  readonly hours: number
}

/** Tokens that a call reads of its conversation; null where they are not known. */
export interface ConversationTokens {
  readonly tokens: number | null
}

/** Counts a call among what its conversation holds; returns what it reads of it, or null where there is none. */
export async function beginConversationCall(
  sql: Sql,
  { accountId, id, requestId, tokens, hours }: BegunConversationCall,
): Promise<ConversationTokens | null> {
  const [row] = await sql<{ tokens: bigint | null }[]>`
    WITH begun AS (
      INSERT INTO conversation_calls
        (account_id, conversation_id, request_id, tokens, before, added_before, expires_at)
      SELECT account_id, id, ${requestId}, ${tokens}, tokens, added, now() + make_interval(hours => ${hours})
      FROM stored_conversations WHERE account_id = ${accountId} AND id = ${id}
      ON CONFLICT (account_id, conversation_id, request_id) DO UPDATE SET expires_at = excluded.expires_at
      RETURNING before
    )
    SELECT (begun.before + (
      SELECT coalesce(sum(tokens), 0) FROM conversation_calls
      WHERE account_id = ${accountId} AND conversation_id = ${id} AND expires_at > now()
    ))::bigint AS tokens FROM begun`
  return row === undefined ? null : { tokens: row.tokens === null ? null : Number(row.tokens) }
}

export interface EndedConversationCall extends ConversationCall {
  /** The prompt and the output that the upstream reports; null without a report. */
  readonly reported: number | null
  /** False where the upstream has refused the call, or never got it. */
  readonly isStored: boolean
}

/**
 * Notes what a conversation holds after a call: what was reported, or all that the call may have added, and what was added
 * while it was under way. Nothing changes for a call that has ended already.
 */
export async function endConversationCall(
  sql: Queryable,
  { accountId, id, requestId, reported, isStored }: EndedConversationCall,
): Promise<void> {
  await sql`
    WITH ended AS (
      DELETE FROM conversation_calls
      WHERE account_id = ${accountId} AND conversation_id = ${id} AND request_id = ${requestId}
      RETURNING tokens, before, added_before
    )
    UPDATE stored_conversations AS kept SET
      tokens = coalesce(${reported}::bigint, ended.before + ended.tokens) + kept.added - ended.added_before,
      added = kept.added + ended.tokens
    FROM ended WHERE kept.account_id = ${accountId} AND kept.id = ${id} AND ${isStored}`
}

export async function forgetConversation(sql: Sql, accountId: string, id: string): Promise<void> {
  await sql`DELETE FROM conversation_calls WHERE account_id = ${accountId} AND conversation_id = ${id}`
  await sql`DELETE FROM stored_conversations WHERE account_id = ${accountId} AND id = ${id}`
}

/** Removes some of the calls that have no end; returns how many. */
export async function purgeConversationCalls(sql: Sql): Promise<number> {
  const gone = await sql`
    DELETE FROM conversation_calls WHERE (account_id, conversation_id, request_id) IN (
      SELECT account_id, conversation_id, request_id FROM conversation_calls
      WHERE expires_at <= now() LIMIT ${PURGE_ROWS})`
  return gone.count
}
