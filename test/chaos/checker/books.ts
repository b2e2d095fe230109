/** All books agree, and nothing is left open. */
import type { Run } from './check.ts'
import { type Problems, problem } from './problems.ts'
import { comparable } from './tables.ts'

const UNITS_PER_CREDIT = 100_000_000

export function checkBooks({ lines, tables }: Run): Problems {
  const { rows, wallets } = tables
  const ledger = new Map(tables.ledger.map((account) => [account.account_id, account]))
  const booked = rows.map(comparable)
  const [inRows, inLog] = [new Set(booked), new Set(tables.logged)]
  const charges = new Map<string, number>()
  for (const { account_id, cost } of rows) charges.set(account_id, (charges.get(account_id) ?? 0) + cost)
  return [
    ...problem(
      'Wallets that differ from the sum of their ledger',
      wallets.filter(({ account_id, balance }) => balance !== (ledger.get(account_id)?.balance ?? 0)),
    ),
    ...problem(
      'Wallets whose charges differ from their rows',
      wallets.filter(({ account_id, used }) => used !== (charges.get(account_id) ?? 0)),
    ),
    ...problem(
      'Wallets that hold credits',
      wallets.filter(({ held }) => held !== 0),
    ),
    ...problem('Open holds', tables.openHolds),
    ...problem('Reservations of calls that are booked', tables.leftReservations),
    ...problem('Settlements that were refused', tables.refusedSettlements),
    ...problem('Journals with calls that are not booked', tables.unbookedJournals),
    ...problem(
      'Rows that the call log lacks',
      booked.filter((row) => !inLog.has(row)),
    ),
    ...problem(
      'Rows that the call log alone has',
      tables.logged.filter((row) => !inRows.has(row)),
    ),
    ...problem(
      'The call log has a row twice',
      tables.logged.length === inLog.size ? [] : [tables.logged.length],
    ),
    ...problem(
      'Balances that are shown otherwise than the ledger has them',
      lines.balance.filter(
        ({ accountId, remaining }) =>
          Math.round(Number(remaining) * UNITS_PER_CREDIT) !== ledger.get(accountId)?.balance,
      ),
    ),
    ...problem(
      '`tollgate wallet verify` is not clean',
      lines.verify.filter(({ exitCode }) => exitCode !== 0),
    ),
    ...problem('No `tollgate wallet verify` was run', lines.verify.length === 0 ? [''] : []),
  ]
}
