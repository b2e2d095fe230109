/** An incremental audit reads what was written since the last one without a difference; a full one reads everything. */
import t from 'tap'
import { makeOld, unguarded } from '../partition-support.ts'
import { newAccount, openFresh, settlement, startDatabase } from '../support.ts'
import { hold, settle } from '../tasks/support.ts'

const { engines } = await startDatabase(t)
const recent = (accountId: string, more = {}) =>
  settlement(accountId, { submitted_at: Date.now(), created_at: Date.now(), ...more })

/** A database with an old call, that was audited, and a new call. */
async function audited(t: Parameters<typeof openFresh>[0]) {
  const opened = await openFresh(t, engines)
  const { database, sql } = opened
  const account = await newAccount(database)
  const old = recent(account)
  await database.bookings.book([old])
  await settle(database, await hold(database, account, 50_000_000n, 'vid_old'), 20_000_000n)
  await makeOld(sql)
  await database.audits.verifyWallets(undefined, { isIncremental: true })
  const fresh = recent(account)
  await database.bookings.book([fresh, recent(account, { cost: '0', status: 'rejected' })])
  await settle(database, await hold(database, account, 50_000_000n, 'vid_new'), 20_000_000n)
  await database.wallets.topUp(account, 1000_00000000n)
  const verify = (isIncremental: boolean) => database.audits.verifyWallets(undefined, { isIncremental })
  return { ...opened, account, old, fresh, verify }
}

t.test('the first reads everything, the next what was written since', async (t) => {
  const { database, sql, account, verify } = await audited(t)
  const [{ entries }] = await sql<[{ entries: bigint }]>`SELECT count(*) AS entries FROM ledger_entries`
  const changes = await verify(true)
  t.match(changes, { ok: true, since: Date })
  t.equal(
    changes.entries,
    Number(entries) - 5,
    'the trial credit, a call and three entries of a task are old',
  )
  for (let i = 0; i < 3; i++) {
    await database.bookings.book([recent(account)])
    t.match(await verify(true), { ok: true, since: Date }, 'again, from its own sums')
  }
  const full = await verify(false)
  t.match(full, { ok: true })
  t.notOk(full.since)
})

t.test('a row of what was written since is found, by its kind', async (t) => {
  for (const [kind, change] of [
    ['charge', 'UPDATE usage_rows SET cost = cost + 1 WHERE request_id = $1'],
    ['call_missing', 'DELETE FROM usage_rows WHERE request_id = $1'],
    ['balance', 'UPDATE ledger_entries SET amount = amount - 1 WHERE ref = $1'],
    ['hold_entries', `UPDATE holds SET charged = charged + 1 WHERE ref = 'vid_new' AND $1 <> ''`],
    ['credit_act', `UPDATE ledger_entries SET amount = amount + 1 WHERE kind = 'topup' AND $1 <> ''`],
  ] as const) {
    const { sql, fresh, verify } = await audited(t)
    await unguarded(sql, () => sql.unsafe(change, [fresh.request_id]))
    const { ok, differences } = await verify(true)
    t.equal(ok, false, kind)
    t.ok(
      differences.some((difference) => difference.kind === kind),
      kind,
    )
  }
})

t.test('a changed row of before is found by a full audit, a changed balance by each', async (t) => {
  const { sql, account, old, verify } = await audited(t)
  await unguarded(sql, async () => {
    await sql`UPDATE usage_rows SET cost = cost + 1 WHERE request_id = ${old.request_id}`
    await sql`UPDATE ledger_entries SET amount = amount - 1 WHERE ref = ${old.request_id}`
  })
  t.match(await verify(true), { ok: true }, 'what was audited is not read again')
  t.match((await verify(false)).differences, [{ kind: 'balance', account_id: account }, { kind: 'used' }])
  await unguarded(sql, async () => {
    await sql`UPDATE usage_rows SET cost = cost - 1 WHERE request_id = ${old.request_id}`
    await sql`UPDATE ledger_entries SET amount = amount + 1 WHERE ref = ${old.request_id}`
    await sql`UPDATE wallets SET balance = balance + 1`
  })
  const { differences, since } = await verify(true)
  t.match(differences, [{ kind: 'balance', account_id: account }])
  t.notOk(since, 'a difference is followed by an audit of everything')
})

t.test('every 30 days everything is read', async (t) => {
  const { sql, verify } = await audited(t)
  await sql`UPDATE verified SET full_at = now() - interval '31 days'`
  t.notOk((await verify(true)).since)
  t.ok((await verify(true)).since)
})
