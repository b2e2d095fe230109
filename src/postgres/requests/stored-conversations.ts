/** Conversations that upstreams keep for accounts. See docs/api-rules.md, "Conversations". */
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'

export interface StoredConversation {
  readonly channelId: string
  /** Tokens that a call which goes on with it reads, by the last report or by estimate. */
  readonly tokens: number
}

interface ConversationToStore extends StoredConversation {
  readonly accountId: string
  /** The upstream's. */
  readonly id: string
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
  const [row] = await sql<{ channel_id: string; tokens: bigint }[]>`
    SELECT channel_id, tokens FROM stored_conversations WHERE account_id = ${accountId} AND id = ${id}`
  return row === undefined ? null : { channelId: row.channel_id, tokens: Number(row.tokens) }
}

/** Adds the estimated tokens of items that its client has put into it. */
export async function addToConversation(
  sql: Sql,
  accountId: string,
  id: string,
  tokens: number,
): Promise<void> {
  await sql`
    UPDATE stored_conversations SET tokens = tokens + ${tokens} WHERE account_id = ${accountId} AND id = ${id}`
}

/** Notes the tokens of a conversation as the last answer in it reports them. */
export async function measureConversation(
  sql: Queryable,
  accountId: string,
  id: string,
  tokens: number,
): Promise<void> {
  await sql`UPDATE stored_conversations SET tokens = ${tokens} WHERE account_id = ${accountId} AND id = ${id}`
}

export async function forgetConversation(sql: Sql, accountId: string, id: string): Promise<void> {
  await sql`DELETE FROM stored_conversations WHERE account_id = ${accountId} AND id = ${id}`
}
