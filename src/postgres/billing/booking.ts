/** Ended calls into usage rows, ledger and wallets, each exactly once. The work itself is `book_settlements`. */

import type { WalletTotals } from '../../../schemas/accounts/account.ts'
import { findColumn, SETTLED_COLUMNS, type Settlement } from '../../../schemas/call-log/columns.ts'
import { DEFAULTS } from '../../core/call-log/settlement.ts'
import type { Queryable, Sql } from '../connection.ts'
import { isBadData } from '../errors.ts'
import { printJson } from '../json.ts'
import { readKeptSince } from '../partitions/make.ts'
import { parseWallet, type WalletJson } from './wallet-rows.ts'

export interface Booking {
  /** The totals, after the booking, of every account, capped key and period of a budget that was charged. */
  readonly wallets: WalletTotals[]
  /** Request ids booked by this call; the others had been booked before. */
  readonly booked: string[]
  /** Request ids that cannot be booked (an unknown account, a number out of range), kept with the reason. */
  readonly refused: string[]
}

export interface BookedState {
  /** The request ids that need no further booking: booked, or refused permanently. */
  readonly requestIds: Set<string>
  readonly wallets: WalletTotals[]
}

export const MAX_BATCH_SETTLEMENTS = 1000

/** The type of a column in a settlement: links come as JSON. */
const findType = (name: keyof Settlement): string =>
  findColumn(name).kind === 'links' ? 'json' : findColumn(name).postgres!

/** Returns the expression of a column's value. One that the settlement of an earlier version lacks has its default. */
function printSettledValue(name: keyof Settlement): string {
  if (findColumn(name).kind === 'links')
    return `CASE WHEN ${name} IS NOT NULL THEN (SELECT array_agg(link) FROM json_array_elements_text(${name}) AS link) END`
  const value = DEFAULTS[name]
  return typeof value === 'number' ? `coalesce(${name}, ${value})` : name
}

/** The lists that files of functions have in braces. */
export const SETTLED_LISTS: Readonly<Record<string, string>> = {
  settled_types: SETTLED_COLUMNS.map((name) => `${name} ${findType(name)}`).join(', '),
  settled_columns: SETTLED_COLUMNS.join(', '),
  settled_values: SETTLED_COLUMNS.map(printSettledValue).join(', '),
  settled_count: String(SETTLED_COLUMNS.length),
}

/** Stands between settlements. */
const SEPARATOR = '\x1f'

const BOOK = `SELECT booked, refused, end_reservations(booked, wallets) AS wallets
  FROM book_settlements(string_to_array($1::text, E'\\x1f'), ${SETTLED_COLUMNS.length})`

// PostgreSQL's text cannot hold NUL, and none needs the other.
const UNSTORABLE = new RegExp(`[\0${SEPARATOR}]`, 'g')

const removeUnstorable = (text: string): string => text.replace(UNSTORABLE, '')

const NEEDS_QUOTES = /[^\w.:@/-]/
const NEEDS_ESCAPE = /["\\]/g

/** Returns a value as one of a composite literal; nothing at all is null. */
function printLiteral(value: Settlement[keyof Settlement]): string {
  if (value === null || (typeof value === 'object' && value.length === 0)) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text = removeUnstorable(typeof value === 'string' ? value : printJson(value))
  return text !== '' && !NEEDS_QUOTES.test(text) ? text : `"${text.replace(NEEDS_ESCAPE, '\\$&')}"`
}

const printRow = (settlement: Settlement): string =>
  `(${SETTLED_COLUMNS.map((name) => printLiteral(settlement[name])).join()})`

interface BookRow {
  wallets: WalletJson[] | null
  booked: string[] | null
  refused: string[] | null
}

/** Returns those whose request id has not come before: a message that is delivered twice may be in one batch twice. */
function dropRepetitions(settlements: readonly Settlement[]): Settlement[] {
  const seen = new Set<string>()
  return settlements.filter(({ request_id }) => {
    const isNew = !seen.has(request_id)
    seen.add(request_id)
    return isNew
  })
}

/** Books the settlements of one transaction, as part of the caller's. */
export async function bookBatch(sql: Queryable, delivered: readonly Settlement[]): Promise<Booking> {
  const settlements = dropRepetitions(delivered)
  const rows = settlements.map(printRow).join(SEPARATOR)
  const [row] = await sql.unsafe<BookRow[]>(BOOK, [rows], { prepare: true })
  const refused = row?.refused ?? []
  if (refused.length > 0) await keepRefused(sql, settlements, new Set(refused))
  return { wallets: (row?.wallets ?? []).map(parseWallet), booked: row?.booked ?? [], refused }
}

async function keepRefused(
  sql: Queryable,
  settlements: readonly Settlement[],
  refused: ReadonlySet<string>,
): Promise<void> {
  const keptSince = await readKeptSince(sql, 'usage_rows')
  for (const settlement of settlements)
    if (refused.has(removeUnstorable(settlement.request_id)))
      await refuse(sql, settlement, explainRefusal(settlement, keptSince))
}

const explainRefusal = ({ account_id, submitted_at }: Settlement, keptSince: Date | null): string =>
  keptSince !== null && submitted_at < keptSince.getTime()
    ? `admitted before ${keptSince.toISOString()}: retention has taken away the calls of that time, so it cannot be said whether this one was booked`
    : `unknown account ${account_id}`

/**
 * Books 1 to 1,000 ended calls in one transaction, each exactly once by its `request_id`, also after an earlier or a
 * double delivery.
 * @throws transient errors (see `isTransient`), after which nothing is booked and another try may succeed, and
 *   permanent ones.
 */
export async function bookSettlements(sql: Sql, settlements: readonly Settlement[]): Promise<Booking> {
  if (settlements.length === 0) return { wallets: [], booked: [], refused: [] }
  if (settlements.length > MAX_BATCH_SETTLEMENTS)
    throw new RangeError(
      `A batch has at most ${MAX_BATCH_SETTLEMENTS} settlements, not ${settlements.length}`,
    )
  try {
    return await bookBatch(sql, settlements)
  } catch (error) {
    if (!isBadData(error)) throw error
    return bookByHalves(sql, settlements, error)
  }
}

/** Halves a batch of which nothing was booked until the faulty settlement is found, and books the rest. */
async function bookByHalves(sql: Sql, settlements: readonly Settlement[], reason: unknown): Promise<Booking> {
  const [only] = settlements
  if (settlements.length === 1 && only !== undefined) return refuse(sql, only, reason)
  const middle = Math.ceil(settlements.length / 2)
  const first = await bookSettlements(sql, settlements.slice(0, middle))
  const second = await bookSettlements(sql, settlements.slice(middle))
  // The later totals of a wallet replace the earlier ones.
  const wallets = new Map([...first.wallets, ...second.wallets].map((wallet) => [wallet.accountId, wallet]))
  return {
    wallets: [...wallets.values()],
    booked: [...first.booked, ...second.booked],
    refused: [...first.refused, ...second.refused],
  }
}

/** An id of ours is far shorter; whatever this one is, it must be kept. */
const MAX_REFUSED_ID_CHARS = 200

async function refuse(sql: Queryable, settlement: Settlement, reason: unknown): Promise<Booking> {
  const message = reason instanceof Error ? reason.message : String(reason)
  await sql`
    INSERT INTO settlements_refused (request_id, reason, settlement)
    VALUES (${removeUnstorable(settlement.request_id).slice(0, MAX_REFUSED_ID_CHARS)}, ${message}, ${printJson(settlement)})
    ON CONFLICT DO NOTHING`
  return { wallets: [], booked: [], refused: [settlement.request_id] }
}

/** Returns the booked settlements and the wallets, with the budgets of accounts, at the same instant, by one statement. */
export async function readBooked(
  sql: Sql,
  requestIds: readonly string[],
  walletIds: readonly string[],
): Promise<BookedState> {
  const [row] = await sql<[{ request_ids: string[] | null; wallets: WalletJson[] | null }]>`
    SELECT
      (SELECT json_agg(request_id) FROM (
        SELECT request_id FROM usage_rows WHERE request_id = ANY (${requestIds as string[]}::text[])
        UNION ALL
        SELECT request_id FROM settlements_refused WHERE request_id = ANY (${requestIds as string[]}::text[])
      ) AS ended) AS request_ids,
      (SELECT json_agg(totals) FROM (
        SELECT account_id, balance::text, held::text, used::text, version::text, reserved_in(account_id)::text AS reserved
        FROM wallets WHERE account_id = ANY (${walletIds as string[]}::text[])
        UNION ALL
        SELECT account_id, balance::text, held::text, used::text, version::text, NULL
        FROM grant_wallets WHERE account_id = ANY (${walletIds as string[]}::text[])
        UNION ALL
        SELECT account_id, balance::text, held::text, used::text, version::text, NULL
        FROM budget_wallets(ARRAY(SELECT id FROM budgets WHERE account_id = ANY (${walletIds as string[]}::text[])))
      ) AS totals) AS wallets`
  return { requestIds: new Set(row.request_ids), wallets: (row.wallets ?? []).map(parseWallet) }
}
