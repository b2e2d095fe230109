/**
 * The disk of a lost machine comes back months later: `tollgate journal import` books what it can, and refuses and keeps
 * calls of months that retention has taken away. See docs/operating.md, "Retention".
 */

import { join } from 'node:path'
import t from 'tap'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { openJournal, type Ticket } from '../../../src/journal/journal.ts'
import { answerOf } from '../../src/cli/support.ts'
import { makeOld } from '../../src/postgres/partition-support.ts'
import { newAccount, openFresh, settlement } from '../../src/postgres/support.ts'
import { startEngines } from '../../support/engines.ts'

const OLD_MS = 8 * 31 * 86_400_000
const SILENT = { info() {}, warn() {}, error() {} }

const engines = await startEngines(t, { only: ['postgres', 'nats'] })
const { database, sql, url, masterKey } = await openFresh(t, engines)
const account = await newAccount(database)
const now = Date.now()

const calledAt = (at: number, more: Partial<Settlement> = {}): Settlement =>
  settlement(account, { request_id: newId('req', at), submitted_at: at, created_at: at, ...more })
const admitted = ({
  request_id,
  account_id,
  key_id,
  model,
  protocol,
  stream,
  submitted_at,
  estimate,
}: Settlement) => ({
  request_id,
  account_id,
  key_id,
  model,
  protocol,
  stream,
  submitted_at,
  estimate,
  session_id: null,
})

const oldBooked = calledAt(now - OLD_MS)
const oldUnbooked = calledAt(now - OLD_MS)
const oldOpen = calledAt(now - OLD_MS)
const booked = calledAt(now)
const unbooked = calledAt(now, { cost: '700' })
const open = calledAt(now)

// As it was booked at its time, before everything is made old.
await database.bookings.book([{ ...oldBooked, submitted_at: now, created_at: now }])
await makeOld(sql)
const months = { usage_rows: 2, ledger_entries: 2, audit_entries: 2, tasks: 2 }
const { retired } = await database.partitions.retire({ months, detaches: false })
await database.bookings.book([booked])

const directory = join(engines.dataDir, 'found')
const journal = await openJournal({ directory, log: SILENT })
const admit = (call: Settlement): Promise<Ticket> =>
  new Promise((resolve, reject) => {
    const ticket = journal.admit(admitted(call), (error) =>
      error === null ? resolve(ticket) : reject(error),
    )
  })
for (const call of [oldBooked, oldUnbooked, booked, unbooked]) journal.settle(await admit(call), call)
for (const call of [oldOpen, open]) await admit(call)
await journal.close()
const reservedIn = (call: Settlement) => ({ journalId: journal.id, admission: admitted(call) })
for (const call of [oldUnbooked, oldOpen, open])
  await database.reservations.reserveWallet({
    accountId: account,
    requestId: call.request_id,
    amount: 1n,
    reservedIn: reservedIn(call),
  })
await database.journals.recordHeartbeat({
  id: journal.id,
  node: 'lost',
  directory,
  openCalls: 2,
  openEstimate: 0n,
  unbookedCalls: 4,
  unbookedCost: 0n,
})
await sql`UPDATE journals SET seen_at = now() - interval '6 minutes'`

const importJournal = () =>
  answerOf(['journal', 'import', directory], {
    DATABASE_URL: url,
    NATS_URL: engines.natsUrl,
    TOLLGATE_MASTER_KEY: masterKey.toString('hex'),
    TOLLGATE_DATA_DIR: join(engines.dataDir, 'command'),
  })
const usedNow = async () => {
  const [wallet] = await sql<[{ used: bigint }]>`SELECT used FROM wallets WHERE account_id = ${account}`
  return wallet.used
}

const used = await usedNow()
const refused = [oldBooked, oldUnbooked, oldOpen].map(({ request_id }) => request_id).sort()

await t.test('old calls are refused and kept, the rest is booked, and the answer says so', async (t) => {
  t.ok(retired.some(({ name, rows }) => name === 'usage_rows_past' && rows === 1n))
  t.match(await importJournal(), {
    booked_calls: 2,
    booked_cost: '0.000007',
    known_calls: 1,
    refused_calls: 3,
    damaged_bytes: 0,
    rest_calls: 0,
  })
  const rows = await sql<{ request_id: string; reason: string }[]>`
    SELECT request_id, reason FROM settlements_refused ORDER BY 1`
  t.same(
    rows.map(({ request_id }) => request_id),
    refused,
  )
  t.ok(rows.every(({ reason }) => /retention has taken away the calls/.test(reason)))
  t.equal(await usedNow(), used + 700n)
  const calls = await sql<{ request_id: string; status: string; cost: bigint }[]>`
    SELECT request_id, status, cost FROM usage_rows WHERE request_id IN (${unbooked.request_id}, ${open.request_id})`
  t.same(
    calls.map(({ status, cost }) => ({ status, cost })).sort((a, b) => a.status.localeCompare(b.status)),
    [
      { status: 'interrupted', cost: 0n },
      { status: 'success', cost: 700n },
    ],
  )
})

await t.test('nothing is left: the journal is closed, and no reservation stays', async (t) => {
  t.match(await sql`SELECT outcome FROM journals`, [{ outcome: 'imported' }])
  t.same(await sql`SELECT ref FROM wallet_reservations`, [])
})

await t.test('another import changes nothing, and the books differ in the refused calls alone', async (t) => {
  t.match(await importJournal(), { booked_calls: 0, known_calls: 3, refused_calls: 3, rest_calls: 0 })
  t.equal(await usedNow(), used + 700n)
  const { differences } = await database.audits.verifyWallets()
  t.same(
    differences.map(({ kind, ref }) => `${kind} ${ref}`).sort(),
    refused.map((id) => `settlement_unbooked ${id}`),
  )
})
