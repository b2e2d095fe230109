/** The journals of all gateways, and the end of those whose machine never comes back. */
import type { Credits } from '../../../schemas/money.ts'
import type { EventType } from '../../../schemas/notifications/event.ts'
import { fromRow, type SnakeCase } from '../../core/json/snake-case.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable, Sql } from '../connection.ts'

/** A journal without a heartbeat for this long counts as silent: its process has ended, or does not reach PostgreSQL. */
const SILENT_AFTER_SECONDS = 30
/** Operators are notified of a journal that has been silent for this long. */
const NOTICE_AFTER_MINUTES = 5

type JournalOutcome = 'drained' | 'imported' | 'abandoned'

/** Contents of a journal: calls under way with the most that they may cost, and ended calls that are not booked. */
export interface JournalHoldings {
  readonly openCalls: number
  readonly openEstimate: Credits
  readonly unbookedCalls: number
  readonly unbookedCost: Credits
}

export interface JournalHeartbeat extends JournalHoldings {
  readonly id: string
  readonly node: string
  readonly directory: string
}

export interface RegisteredJournal extends JournalHeartbeat {
  readonly seenAt: Date
  readonly isLive: boolean
  /** Null while something in it may have to be booked. */
  readonly outcome: JournalOutcome | null
}

type JournalRow = SnakeCase<RegisteredJournal>

const columns = (sql: Queryable) => sql`
  id, node, directory, seen_at, open_calls, open_estimate, unbooked_calls, unbooked_cost, outcome,
  outcome IS NULL AND seen_at > now() - make_interval(secs => ${SILENT_AFTER_SECONDS}) AS is_live`

/** Records a heartbeat of a journal that is in use, also of one that was closed: its process is back. */
export async function recordHeartbeat(sql: Queryable, journal: JournalHeartbeat): Promise<void> {
  const { id, node, directory, openCalls, openEstimate, unbookedCalls, unbookedCost } = journal
  await sql`
    INSERT INTO journals (id, node, directory, open_calls, open_estimate, unbooked_calls, unbooked_cost)
    VALUES (${id}, ${node}, ${directory}, ${openCalls}, ${openEstimate}, ${unbookedCalls}, ${unbookedCost})
    ON CONFLICT (id) DO UPDATE SET
      node = excluded.node, directory = excluded.directory, seen_at = now(), open_calls = excluded.open_calls,
      open_estimate = excluded.open_estimate, unbooked_calls = excluded.unbooked_calls,
      unbooked_cost = excluded.unbooked_cost, outcome = NULL, closed_at = NULL`
}

/** Records that the process of a journal has ended, and that nothing was left in it. */
export async function recordDrained(sql: Queryable, id: string): Promise<void> {
  await sql`
    UPDATE journals SET outcome = 'drained', closed_at = now(), seen_at = now(), open_calls = 0, open_estimate = 0,
      unbooked_calls = 0, unbooked_cost = 0
    WHERE id = ${id}`
}

/** Lists the journals that are not drained, those with the oldest heartbeat first. */
export async function listJournals(sql: Queryable): Promise<RegisteredJournal[]> {
  const rows = await sql<JournalRow[]>`
    SELECT ${columns(sql)} FROM journals WHERE outcome IS NULL ORDER BY seen_at, id`
  return rows.map(fromRow<RegisteredJournal>)
}

/**
 * Returns the journal, and keeps its process from changing it until the end of the transaction, where there is one.
 * @throws Refusal `journal_not_found`, `journal_in_use`
 */
export async function lockSilentJournal(sql: Queryable, id: string): Promise<RegisteredJournal> {
  const [row] = await sql<JournalRow[]>`SELECT ${columns(sql)} FROM journals WHERE id = ${id} FOR UPDATE`
  if (row === undefined) throw new Refusal('journal_not_found', `This installation has no journal ${id}`)
  if (row.is_live)
    throw new Refusal(
      'journal_in_use',
      `The journal ${id} is in use on ${row.node}: its gateway books it. Its last heartbeat is less than ${SILENT_AFTER_SECONDS} seconds ago`,
    )
  return fromRow<RegisteredJournal>(row)
}

/** Returns the calls of a journal that have something reserved and were neither booked nor refused, as they were admitted. */
export async function listReservedCalls(sql: Queryable, journalId: string): Promise<object[]> {
  const rows = await sql<{ admission: object }[]>`
    SELECT DISTINCT ON (ref) admission FROM (
      SELECT ref, admission FROM wallet_reservations WHERE journal_id = ${journalId}
      UNION ALL
      SELECT ref, admission FROM cap_reservations WHERE journal_id = ${journalId}
    ) AS reserved
    WHERE admission IS NOT NULL AND NOT EXISTS (SELECT FROM usage_rows AS u WHERE u.request_id = ref)
      AND NOT EXISTS (SELECT FROM settlements_refused AS s WHERE s.request_id = ref)
    ORDER BY ref`
  return rows.map(({ admission }) => admission)
}

/** The end of a journal by an operation, with facts for the audit record. */
export interface JournalEnd {
  readonly outcome: 'imported' | 'abandoned'
  /** True where calls of it may be left: it stays in the list. */
  readonly hasRest: boolean
  readonly facts: object
}

/** Ends what calls of a silent journal have reserved, and records the operation; as part of the transaction that closes it. */
export async function endJournal(
  sql: Queryable,
  journal: RegisteredJournal,
  { outcome, hasRest, facts }: JournalEnd,
): Promise<void> {
  const { id } = journal
  if (!hasRest) {
    await sql`DELETE FROM wallet_reservations WHERE journal_id = ${id}`
    await sql`DELETE FROM cap_reservations WHERE journal_id = ${id}`
  }
  await sql`
    UPDATE journals SET unbooked_calls = 0, unbooked_cost = 0,
      outcome = ${hasRest ? null : outcome}, closed_at = ${hasRest ? null : sql`now()`}
    WHERE id = ${id}`
  await recordOperation(sql, {
    action: outcome === 'imported' ? 'journal.import' : 'journal.abandon',
    accountId: null,
    subjectId: id,
    before: {
      node: journal.node,
      last_heartbeat: journal.seenAt.toISOString(),
      open_calls: journal.openCalls,
      unbooked_calls: journal.unbookedCalls,
    },
    after: facts,
  })
}

/** Makes every gateway read these wallets again. */
export async function announceWallets(sql: Queryable, accountIds: readonly string[]): Promise<void> {
  await sql`
    SELECT pg_notify('tollgate_changes', 'wallet:' || id) FROM unnest(${accountIds as string[]}::text[]) AS id`
}

/** Records `journal.silent`, once in each silence. Returns the number of events. */
export async function recordSilentJournals(sql: Sql): Promise<number> {
  const type: EventType = 'journal.silent'
  const rows = await sql`
    WITH silent AS (
      SELECT *, concat_ws(' ', 'journal.silent', id, print_instant((extract(epoch FROM seen_at) * 1000)::bigint)) AS crossing
      FROM journals
      WHERE outcome IS NULL AND seen_at < now() - make_interval(mins => ${NOTICE_AFTER_MINUTES})
    )
    SELECT record_event(${type}, NULL, id, s.crossing, jsonb_build_object(
      'journal', id, 'node', node, 'directory', directory,
      'last_heartbeat', print_instant((extract(epoch FROM seen_at) * 1000)::bigint),
      'open_calls', open_calls, 'unbooked_calls', unbooked_calls, 'unbooked_cost', print_credits(unbooked_cost)))
    FROM silent AS s WHERE NOT EXISTS (SELECT FROM events AS e WHERE e.crossing = s.crossing)`
  return rows.length
}
