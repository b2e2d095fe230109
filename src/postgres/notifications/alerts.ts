/** The events that accounts and people want. */
import type { Credits } from '../../../schemas/money.ts'
import { accountNotFound } from '../accounts/accounts.ts'
import type { Queryable, Sql } from '../connection.ts'

/** Returns the balance below which an account is notified; null: never. @throws Refusal `account_not_found` */
export async function readLowBalance(sql: Queryable, accountId: string): Promise<Credits | null> {
  const [row] = await sql<{ low_below: Credits | null }[]>`
    SELECT low_below FROM wallets WHERE account_id = ${accountId}`
  if (row === undefined) throw accountNotFound(accountId)
  return row.low_below
}

/** @throws Refusal `account_not_found` */
export async function setLowBalance(
  sql: Queryable,
  accountId: string,
  threshold: Credits | null,
): Promise<void> {
  const rows = await sql`
    UPDATE wallets SET low_below = ${threshold} WHERE account_id = ${accountId} RETURNING account_id`
  if (rows.length === 0) throw accountNotFound(accountId)
}

/** Returns the events that a user chose to get by email, by account. */
export async function readEmailChoices(
  sql: Queryable,
  userId: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await sql<{ account_id: string; events: string[] }[]>`
    SELECT account_id, events FROM email_choices WHERE user_id = ${userId}`
  return new Map(rows.map(({ account_id, events }) => [account_id, events]))
}

export async function setEmailChoices(
  sql: Queryable,
  userId: string,
  accountId: string,
  events: readonly string[],
): Promise<void> {
  await sql`
    INSERT INTO email_choices (user_id, account_id, events)
    VALUES (${userId}, ${accountId}, ${events as string[]}::text[])
    ON CONFLICT (user_id, account_id) DO UPDATE SET events = EXCLUDED.events`
}

export interface Breaker {
  readonly channelId: string
  readonly isOpen: boolean
}

/** Time for which a breaker stays closed in every process before operators are notified of it. */
const CALM_SECONDS = 60

/**
 * Compares the breakers of all processes with what operators were last notified of, and records each crossing once.
 * One that closes and opens again within a minute is open all the while.
 */
export async function recordBreakers(sql: Sql, breakers: readonly Breaker[]): Promise<void> {
  const open = breakers.filter(({ isOpen }) => isOpen).map(({ channelId }) => channelId)
  await sql`
    WITH opened AS (
      INSERT INTO channel_breakers (channel_id) SELECT unnest(${open}::text[])
      ON CONFLICT (channel_id) DO UPDATE SET closed_since = NULL WHERE channel_breakers.closed_since IS NOT NULL
      RETURNING channel_id, xmax = 0 AS is_new, opened_at
    )
    SELECT record_event('channel.opened', NULL, channel_id, 'channel.opened ' || channel_id || ' ' || opened_at,
      jsonb_build_object('channel', channel_id)) FROM opened WHERE is_new`
  await sql`
    UPDATE channel_breakers SET closed_since = now()
    WHERE closed_since IS NULL AND channel_id <> ALL (${open}::text[])`
  await sql`
    WITH closed AS (
      DELETE FROM channel_breakers WHERE closed_since < now() - make_interval(secs => ${CALM_SECONDS})
        AND channel_id <> ALL (${open}::text[])
      RETURNING channel_id, opened_at
    )
    SELECT record_event('channel.closed', NULL, channel_id, 'channel.closed ' || channel_id || ' ' || opened_at,
      jsonb_build_object('channel', channel_id, 'opened_at', print_instant(opened_at))) FROM closed`
}
