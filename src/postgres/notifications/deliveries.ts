/** Deliveries as the worker makes, names, reads and ends them. The row is the truth. */
import type { Locale } from '../../../schemas/accounts/people.ts'
import type { AttemptResult, DueDelivery, NewMail } from '../../../schemas/notifications/delivery.ts'
import {
  EMAILED_EVENTS,
  EVENTS_CHANNEL,
  INSTALLATION,
  type NotifiedEvent,
} from '../../../schemas/notifications/event.ts'
import { type KeyMaterial, mailSealId, SealError, webhookSealId } from '../../core/keys/material.ts'
import { assertCurrent } from '../accounts/master-key.ts'
import type { Queryable, Sql } from '../connection.ts'
import { printJson } from '../json.ts'
import { inTransaction } from '../transaction.ts'
import { recordEvent } from './outbox.ts'

/** An endpoint that keeps failing for this long is switched off. */
const FAILING_DAYS = 5
const KEPT_DAYS = 30
/** A crossing is remembered for longer than any period that it names. */
const CROSSINGS_KEPT_DAYS = 400
const MAX_ATTEMPTS_KEPT = 40

/** A delivery, and when it was named: together the id of the message that names it. */
export interface NamedDelivery {
  readonly id: string
  readonly namedAt: Date
}

/** Makes the deliveries of recorded events. Returns the number of events. */
export async function dispatchEvents(
  sql: Sql,
  most: number,
  { hasMail }: { readonly hasMail: boolean },
): Promise<number> {
  const [row] = await sql<[{ taken: number }]>`
    SELECT dispatch_events(${most}, ${hasMail}, ${EMAILED_EVENTS as string[]}::text[]) AS taken`
  return row.taken
}

/** Names deliveries that are due, at most this many of a lane at a time. */
export async function nameDeliveries(sql: Sql, ofLane: number, staleMs: number): Promise<NamedDelivery[]> {
  const rows = await sql<{ id: string; named_at: Date }[]>`
    SELECT * FROM name_deliveries(${ofLane}, make_interval(secs => ${staleMs / 1000}))`
  return rows.map(({ id, named_at: namedAt }) => ({ id, namedAt }))
}

/** Says that a process still has these deliveries. */
export async function touchDeliveries(sql: Sql, ids: readonly string[]): Promise<void> {
  await sql`
    UPDATE deliveries SET named_at = clock_timestamp()
    WHERE id = ANY (${ids as string[]}::text[]) AND state = 'waiting' AND named_at IS NOT NULL`
}

interface DueRow {
  id: string
  lane: string
  tries: number
  state: DueDelivery['state']
  address: string | null
  sealed_mail: Buffer | null
  locale: Locale
  endpoint_id: string | null
  url: string | null
  enabled: boolean | null
  sealed_secret: Buffer | null
  sealed_former_secret: Buffer | null
  event_id: string | null
  type: NotifiedEvent['type']
  account_id: string
  account_name: string | null
  data: Record<string, unknown>
  event_at: Date
}

/**
 * Reads what attempts at these deliveries need; a delivery that is gone is left out.
 * @throws Refusal `wrong_master_key` where this process cannot read one because the master key was replaced
 */
export async function readDeliveries(
  sql: Sql,
  material: KeyMaterial,
  ids: readonly string[],
): Promise<DueDelivery[]> {
  const rows = await sql<DueRow[]>`
    SELECT d.id, d.lane, d.tries, d.state, d.address, d.sealed_mail, coalesce(u.locale, 'en') AS locale,
      d.endpoint_id, coalesce(d.url, w.url) AS url, w.enabled, w.sealed_secret,
      CASE WHEN w.former_until > now() THEN w.sealed_former_secret END AS sealed_former_secret,
      d.event_id, e.type, coalesce(e.account_id, ${INSTALLATION}) AS account_id, a.name AS account_name, e.data,
      e.created_at AS event_at
    FROM deliveries AS d
    LEFT JOIN events AS e ON e.id = d.event_id
    LEFT JOIN webhook_endpoints AS w ON w.id = d.endpoint_id
    LEFT JOIN accounts AS a ON a.id = e.account_id
    LEFT JOIN users AS u ON u.id = d.user_id
    WHERE d.id = ANY (${ids as string[]}::text[])`
  const due = rows.map((row) => toDueDelivery(row, material))
  if (due.some(({ isUnreadable }) => isUnreadable)) await assertCurrent(sql, material)
  return due
}

function toDueDelivery(row: DueRow, material: KeyMaterial): DueDelivery {
  const mail = openSealed(material, row.sealed_mail, mailSealId(row.id))
  const secretId = webhookSealId(row.endpoint_id ?? '')
  const secret = openSealed(material, row.sealed_secret, secretId)
  // It signs beside the current one for a day: a receiver that has the current one can do without.
  const former = openSealed(material, row.sealed_former_secret, secretId)
  const isUnreadable =
    (mail === null && row.sealed_mail !== null) || (secret === null && row.sealed_secret !== null)
  return {
    id: row.id,
    lane: row.lane,
    tries: row.tries,
    state: row.state,
    address: row.address,
    locale: row.locale,
    accountName: row.account_name,
    mail: mail === null ? null : (JSON.parse(mail) as NewMail),
    isUnreadable,
    endpoint: readEndpoint(
      row,
      [secret, former].filter((one) => one !== null),
    ),
    event:
      row.event_id === null
        ? null
        : {
            id: row.event_id,
            type: row.type,
            accountId: row.account_id,
            createdAt: row.event_at,
            data: row.data,
          },
  }
}

function readEndpoint(
  { endpoint_id: id, url, enabled }: DueRow,
  secrets: readonly string[],
): DueDelivery['endpoint'] {
  return id === null || url === null ? null : { url, enabled: enabled === true, secrets }
}

/** Returns the sealed text; null without one, and where it does not open. */
function openSealed(material: KeyMaterial, sealed: Buffer | null, id: string): string | null {
  try {
    return sealed === null ? null : material.open(sealed, id)
  } catch (error) {
    if (error instanceof SealError) return null
    throw error
  }
}

interface FailingRow {
  id: string
  account_id: string
  url: string | null
  failing_since: Date
}

/**
 * Records attempts, each once, and what they say of their endpoints: one that fails for days is switched off, and its
 * account is notified.
 */
export const endAttempts = (sql: Sql, results: readonly AttemptResult[]): Promise<void> =>
  inTransaction(sql, async (transaction) => {
    const written = results.map(({ delivery, attempt, state, pauseMs }) => ({
      id: delivery.id,
      tries: delivery.tries,
      attempt,
      state,
      pause: pauseMs / 1000,
    }))
    const ended = await transaction<{ endpoint_id: string | null; is_success: boolean }[]>`
      UPDATE deliveries AS d
      SET tries = d.tries + 1, state = r.state, named_at = NULL, due_at = now() + make_interval(secs => r.pause),
        attempts = CASE WHEN jsonb_array_length(d.attempts) >= ${MAX_ATTEMPTS_KEPT} THEN d.attempts - 0
          ELSE d.attempts END || r.attempt,
        ended_at = CASE WHEN r.state <> 'waiting' THEN now() END,
        sealed_mail = CASE WHEN r.state = 'waiting' THEN d.sealed_mail END
      FROM jsonb_to_recordset(${printJson(written)}::text::jsonb)
        AS r(id text, tries integer, attempt jsonb, state text, pause float8)
      WHERE d.id = r.id AND d.tries = r.tries AND d.state = 'waiting'
      RETURNING d.endpoint_id, r.attempt ->> 'error' IS NULL AS is_success`
    await judge(transaction, ended)
  })

async function judge(
  sql: Queryable,
  ended: readonly { readonly endpoint_id: string | null; readonly is_success: boolean }[],
): Promise<void> {
  const listIds = (isSuccess: boolean) => [
    ...new Set(
      ended.flatMap(({ endpoint_id, is_success }) => (is_success === isSuccess ? (endpoint_id ?? []) : [])),
    ),
  ]
  const good = listIds(true)
  const bad = listIds(false).filter((id) => !good.includes(id))
  if (good.length > 0)
    await sql`
      UPDATE webhook_endpoints SET failing_since = NULL
      WHERE id = ANY (${good}::text[]) AND failing_since IS NOT NULL`
  if (bad.length === 0) return
  await sql`
    UPDATE webhook_endpoints SET failing_since = now()
    WHERE id = ANY (${bad}::text[]) AND failing_since IS NULL AND enabled AND kind = 'webhook'`
  const off = await sql<FailingRow[]>`
    UPDATE webhook_endpoints SET enabled = false
    WHERE id = ANY (${bad}::text[]) AND enabled AND failing_since < now() - make_interval(days => ${FAILING_DAYS})
    RETURNING id, account_id, url, failing_since`
  for (const { id, account_id: accountId, url, failing_since: since } of off)
    await recordEvent(sql, {
      type: 'webhook.disabled',
      accountId: accountId === INSTALLATION ? null : accountId,
      subjectId: id,
      crossing: null,
      data: { endpoint_id: id, url, failing_since: since.toISOString() },
    })
}

/** Writes a mail to a person, as part of the transaction that causes it. */
export async function sendMail(
  sql: Queryable,
  material: KeyMaterial,
  address: string,
  mail: NewMail,
): Promise<void> {
  await assertCurrent(sql, material)
  const [row] = await sql<[{ id: string }]>`
    INSERT INTO deliveries (lane, address) VALUES ('mail', ${address}) RETURNING id`
  await sql`
    UPDATE deliveries SET sealed_mail = ${material.seal(JSON.stringify(mail), mailSealId(row.id))} WHERE id = ${row.id}`
  await sql`SELECT pg_notify(${EVENTS_CHANNEL}, '')`
}

/** Deletes what is older than deliveries are kept. */
export async function purgeDeliveries(sql: Sql): Promise<void> {
  await sql`DELETE FROM deliveries WHERE created_at < now() - make_interval(days => ${KEPT_DAYS})`
  await sql`
    DELETE FROM events AS e
    WHERE e.created_at < now() - make_interval(days => CASE WHEN e.crossing IS NULL
      THEN ${KEPT_DAYS}::integer ELSE ${CROSSINGS_KEPT_DAYS}::integer END)
      AND e.dispatched_at IS NOT NULL AND NOT EXISTS (SELECT FROM deliveries AS d WHERE d.event_id = e.id)`
}

/** Calls `onEvent` whenever there is something to deliver. Resolves with the function that stops it. */
export async function listenEvents(sql: Sql, onEvent: () => void): Promise<() => Promise<void>> {
  const { unlisten } = await sql.listen(EVENTS_CHANNEL, onEvent, onEvent)
  return unlisten
}
