/** The line that the settler logs once a day, and when. */
import t from 'tap'
import type { Difference } from '../../../src/postgres/billing/audit-report.ts'
import type { MeteringReport } from '../../../src/postgres/metering.ts'
import { logAudit, untilAudit } from '../../../src/server/settler/daily-audit.ts'

const NONE: readonly never[] = []
const DAY_MS = 24 * 60 * 60 * 1000
const GROUP = { account_id: 'acc_a', model: 'fast', channel_id: 'primary', calls: 9 }
const DIFFERENCE: Difference = { account_id: 'acc_a', kind: 'balance', expected: '1', found: '2' }

async function lineOf(differences: readonly Difference[], metering: MeteringReport) {
  const lines: unknown[][] = []
  const write =
    (level: string) =>
    (...line: unknown[]) =>
      void lines.push([level, ...line])
  const database = {
    verifyWallets: async () => ({ ok: differences.length === 0, accounts: 1, entries: 2, differences }),
    meteringReport: async () => metering,
    countNegativeBalances: async () => 0,
  }
  await logAudit(database, { info: write('info'), warn: write('warn'), error: write('error') })
  t.equal(lines.length, 1)
  return lines[0]
}

t.test('the line says whether the books agree, and how calls were metered', async (t) => {
  const groups = [
    { ...GROUP, estimated: 3, suspect: 1, otherModel: 0 },
    { ...GROUP, estimated: 0, suspect: 1, otherModel: 4 },
  ]
  const counts = { estimated_calls: 3, suspect_calls: 2, other_model_calls: 4 }
  t.match(await lineOf(NONE, { groups, negative: NONE }), [
    'info',
    { ok: true, ...counts, negative_balances: 0 },
    /ok$/,
  ])
  const negative = [{ account_id: 'acc_a', balance: -150_000_000n }]
  t.match(await lineOf(NONE, { groups, negative }), [
    'warn',
    { ok: true, lowest_balances: [{ account_id: 'acc_a', balance: '-1.5' }] },
    /negative balances/,
  ])
  t.match(await lineOf([DIFFERENCE], { groups: NONE, negative }), [
    'error',
    { ok: false, differences: 1, named_differences: [DIFFERENCE] },
    /differ/,
  ])
})

t.test('it is planned for the same instant of each day', async (t) => {
  const first = Date.UTC(2026, 0, 1, 3, 17)
  for (const [now, waits] of [
    [first, DAY_MS],
    [first - 1, 1],
    [first + 1, DAY_MS - 1],
    [first + 5 * DAY_MS - 60_000, 60_000],
  ] as const)
    t.equal(untilAudit(now), waits)
})
