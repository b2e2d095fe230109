/** Retention takes months away, and what replaces them keeps every total and every finding of the audit. */
import t from 'tap'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import type { Sql } from '../../../src/postgres/connection.ts'
import type { Database } from '../../../src/postgres/database.ts'
import type { Retention } from '../../../src/postgres/partitions/retire.ts'
import { makeOld, unguarded } from './partition-support.ts'
import { newAccount, openFresh, settlement, startDatabase } from './support.ts'
import { giveBack, hold, settle } from './tasks/support.ts'

const { engines } = await startDatabase(t)
const months = { usage_rows: 2, ledger_entries: 2, audit_entries: 2, tasks: 2 }
const NONE = { usage_rows: null, ledger_entries: null, audit_entries: null, tasks: null }
const DROP: Retention = { months, detaches: false }
const PAST = ['audit_entries_past', 'ledger_entries_past', 'tasks_past', 'usage_rows_past']

/** Ids begin with the instant at which they were made. */
const oldId = () => newId('req', Date.now() - 8 * 31 * 86_400_000)

const recent = (accountId: string, more = {}) =>
  settlement(accountId, { submitted_at: Date.now(), created_at: Date.now(), ...more })
const totalsOf = async (sql: Sql) => {
  const rows = await sql`SELECT account_id, balance, held, used FROM wallets ORDER BY 1`
  return rows.map((row) => ({ ...row }))
}

/** Two accounts with calls, holds, a top-up and a refund of long ago, and calls of today. */
async function populate(database: Database, sql: Sql) {
  const [one, other] = [await newAccount(database), await newAccount(database)]
  const old = [{}, { cost: '700' }].map((more) => recent(one, { request_id: oldId(), ...more }))
  old.push(recent(other, { request_id: oldId() }))
  await database.bookSettlements(old)
  await settle(database, await hold(database, one, 50_000_000n, 'vid_settled'), 20_000_000n)
  await giveBack(database, await hold(database, other, 50_000_000n, 'vid_refunded'), 'failed')
  await database.topUp(one, 500n * ONE_CREDIT, { reference: 'invoice 1' })
  await database.refund(one, old[0]!.request_id, { amount: null, reason: 'empty' })
  await makeOld(sql)
  await database.bookSettlements([recent(one), recent(other, { cost: '0', status: 'rejected' })])
  return { one, other, old: old[0]! }
}

t.test('what months are gone changes no total, and no finding', async (t) => {
  const { database, sql } = await openFresh(t, engines)
  const { one, old } = await populate(database, sql)
  t.match(await database.verifyWallets(), { ok: true })
  const before = await totalsOf(sql)
  const { retired, waiting } = await database.retirePartitions(DROP)
  t.same(waiting, [])
  t.same(retired.map(({ name }) => name).sort(), PAST)
  t.match(await database.verifyWallets(), { ok: true }, 'exact without the old months')
  t.same(await totalsOf(sql), before)
  t.same(await database.retirePartitions(DROP), { retired: [], waiting: [] }, 'once')
  const [closing] = await sql`SELECT balance, used, held FROM closing_balances WHERE account_id = ${one}`
  t.match(closing, { held: 0n, used: 24_900_700n })
  const [calls] = await sql`SELECT sum(row_count) AS rows, sum(cost) AS cost FROM closing_usage`
  t.match({ ...calls }, { rows: '5', cost: '29800700' })

  await t.test('credits stay, and a reference counts once for ever', async (t) => {
    const kinds = (await database.ledgerPage(one, { before: null, limit: 50 })).map(({ kind }) => kind)
    t.same(kinds, ['charge', 'adjustment', 'topup', 'trial'])
    t.ok((await database.topUp(one, 500n * ONE_CREDIT, { reference: 'invoice 1' })).isRepeated)
    t.ok((await database.refund(one, old.request_id, { amount: null, reason: 'again' })).isRepeated)
    await t.rejects(
      database.refund(one, oldId(), { amount: null, reason: 'late' }),
      /taken away by retention/,
    )
    t.match(await database.verifyWallets(), { ok: true })
  })

  await t.test('a changed balance is found, and a changed closing balance', async (t) => {
    for (const table of ['wallets', 'closing_balances']) {
      await sql`UPDATE ${sql(table)} SET balance = balance + 1 WHERE account_id = ${one}`
      const { differences } = await database.verifyWallets()
      t.match(differences, [{ kind: 'balance', account_id: one }], table)
      await sql`UPDATE ${sql(table)} SET balance = balance - 1 WHERE account_id = ${one}`
    }
    t.match(await database.verifyWallets(), { ok: true })
  })

  await t.test('a call of such a month is refused, and kept for a person to decide', async (t) => {
    const late = { ...old, submitted_at: old.submitted_at - 8 * 31 * 86_400_000 }
    const wallets = await totalsOf(sql)
    const { booked, refused } = await database.bookSettlements([late])
    t.same({ booked: booked.length, refused }, { booked: 0, refused: [late.request_id] })
    t.match((await database.findCall(late.request_id)).refused?.reason, /retention has taken away the calls/)
    t.same(await totalsOf(sql), wallets)
  })
})

t.test('nothing is taken away while the books differ', async (t) => {
  const { database, sql } = await openFresh(t, engines)
  const { one } = await populate(database, sql)
  await sql`UPDATE wallets SET balance = balance + 1 WHERE account_id = ${one}`
  const { retired, waiting } = await database.retirePartitions(DROP)
  t.equal(retired.length, 0)
  t.same(waiting.map(({ name }) => name).sort(), PAST)
  t.ok(waiting.every(({ reason }) => reason.includes('the books differ')))
})

t.test('everything is read before, unless an audit of everything has on the day before', async (t) => {
  const { database, sql } = await openFresh(t, engines)
  const { old } = await populate(database, sql)
  t.match(await database.verifyWallets(), { ok: true })
  await unguarded(sql, () => sql`UPDATE usage_rows SET cost = cost + 1 WHERE request_id = ${old.request_id}`)
  await sql`UPDATE verified SET full_at = now() - interval '25 hours'`
  const { waiting } = await database.retirePartitions(DROP)
  t.match(waiting[0], { reason: /the books differ/ }, 'a changed row of before is found')
  await sql`UPDATE verified SET full_at = now()`
  const { retired } = await database.retirePartitions(DROP)
  t.same(retired.map(({ name }) => name).sort(), PAST, 'what was audited is not read again')
})

t.test(
  'a month waits for its open tasks and for the call log; a detached one stays as a table',
  async (t) => {
    const { database, sql } = await openFresh(t, engines)
    const { one } = await populate(database, sql)
    const open = await hold(database, one, 30_000_000n, 'vid_open')
    await unguarded(sql, () => sql`UPDATE tasks SET submitted_at = 0 WHERE id = 'vid_open'`)
    await sql`UPDATE usage_copy SET copied_upto = 0`
    const detach = (only: Partial<typeof months>) =>
      database.retirePartitions({ months: { ...NONE, ...only }, detaches: true })
    t.match(await detach({ usage_rows: 2 }), {
      retired: { length: 0 },
      waiting: [{ reason: /task .* is open/ }],
    })
    await giveBack(database, open, 'failed')
    t.match(await detach({ usage_rows: 2 }), { waiting: [{ reason: /call log does not have all/ }] })
    await sql`UPDATE usage_copy SET copied_upto = (SELECT max(id) FROM usage_rows)`
    t.match(await detach({ usage_rows: 2 }), {
      retired: [{ name: 'usage_rows_past' }],
      waiting: { length: 0 },
    })
    const [left] = await sql`SELECT count(*)::int AS rows FROM usage_rows_past`
    t.equal(left?.rows, 5)
    t.match(await database.verifyWallets(), { ok: true }, 'the ledger is kept for longer than the calls')
    t.match(
      (await database.listPartitions()).filter(({ state }) => state !== 'attached'),
      [{ name: 'usage_rows_past', state: 'detached', rows: 5n }],
    )
  },
)
