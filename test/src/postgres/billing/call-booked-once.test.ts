import { randomBytes } from 'node:crypto'
import t from 'tap'
import { SETTLED_COLUMNS, type Settlement } from '../../../../schemas/call-log/columns.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import { MAX_BATCH_SETTLEMENTS } from '../../../../src/postgres/billing/booking.ts'
import { usageText } from '../../../support/usage-text.ts'
import { newAccount, settlement, startDatabase } from '../support.ts'

const { database, sql } = await startDatabase(t)
const CREDIT = 100_000_000_000n

const countOf = async (requestId: string) => {
  const [row] = await sql`
    SELECT (SELECT count(*)::int FROM usage_rows WHERE request_id = ${requestId}) AS rows,
           (SELECT count(*)::int FROM ledger_entries WHERE ref = ${requestId}) AS charges`
  return { ...row }
}

t.test('a batch is charged to the wallets and gives their totals', async (t) => {
  const [one, two, idle] = await Promise.all([
    newAccount(database),
    newAccount(database),
    newAccount(database),
  ])
  const batch = [
    settlement(one, { cost: '700' }),
    settlement(two, { cost: '50' }),
    settlement(one, { cost: '7' }),
    settlement(idle, { cost: '0', status: 'rejected' }),
  ]
  const booking = await database.bookings.book(batch)
  t.same(new Set(booking.booked), new Set(batch.map((call) => call.request_id)))
  t.same(booking.refused, [])
  const totals = new Map(booking.wallets.map((wallet) => [wallet.accountId, wallet]))
  t.same(totals.get(one), { accountId: one, balance: CREDIT - 707n, held: 0n, used: 707n, version: 2n })
  t.same(totals.get(two), { accountId: two, balance: CREDIT - 50n, held: 0n, used: 50n, version: 2n })
  t.notOk(totals.has(idle), 'a call that cost nothing leaves its wallet as it was')
  t.same(await countOf(batch[3]!.request_id), { rows: 1, charges: 0 })
})

t.test('a second delivery changes nothing', async (t) => {
  const account = await newAccount(database)
  const batch = [settlement(account), settlement(account)]
  const first = await database.bookings.book(batch)
  const second = await database.bookings.book(batch)
  t.same(second, { wallets: [], booked: [], refused: [] })
  const overlapping = await database.bookings.book([batch[1]!, settlement(account, { cost: '1' })])
  t.equal(overlapping.booked.length, 1)
  t.equal(overlapping.wallets[0]?.used, first.wallets[0]!.used + 1n)
  t.same(await countOf(batch[1]!.request_id), { rows: 1, charges: 1 })
})

t.test('the same call twice in one batch is booked once', async (t) => {
  const account = await newAccount(database)
  const call = settlement(account, { cost: '40' })
  const { booked, wallets } = await database.bookings.book([call, settlement(account, { cost: '2' }), call])
  t.equal(booked.length, 2)
  t.equal(wallets[0]?.used, 42n)
  t.same(await countOf(call.request_id), { rows: 1, charges: 1 })
})

t.test('a call of an unknown account is put aside with its reason and the batch goes on', async (t) => {
  const account = await newAccount(database)
  const stray = settlement(newId('acc'))
  const good = settlement(account)
  const booking = await database.bookings.book([stray, good])
  t.same(booking.booked, [good.request_id])
  t.same(booking.refused, [stray.request_id])
  const [kept] = await sql`
    SELECT reason, settlement::json AS settlement FROM settlements_refused WHERE request_id = ${stray.request_id}`
  t.equal(kept?.reason, `unknown account ${stray.account_id}`)
  t.match(kept?.settlement, { request_id: stray.request_id, cost: Number(stray.cost) })
  t.same(
    (await database.bookings.book([stray])).refused,
    [stray.request_id],
    'a second delivery is refused again',
  )
})

t.test('a call of an unknown key is booked', async (t) => {
  const account = await newAccount(database)
  const { booked } = await database.bookings.book([settlement(account, { key_id: newId('key') })])
  t.equal(booked.length, 1)
})

t.test('what no column can hold is put aside alone, wherever it stands in the batch', async (t) => {
  const account = await newAccount(database)
  for (const bad of [
    { cost: '9223372036854775808' },
    // Fits a column, but not together with what was used before.
    { cost: '9223372036854775807' },
    { cost: '-1' },
    { cost: 'much' },
    { input_tokens: 1.5 },
    { attempts_count: 2 ** 40 },
    { request_id: `req_${randomBytes(5000).toString('hex')}` },
  ]) {
    const batch = Array.from({ length: 5 }, () => settlement(account, { cost: '10' }))
    const poison = settlement(account, bad)
    batch.splice(3, 0, poison, settlement(newId('acc')))
    const { booked, refused, wallets } = await database.bookings.book(batch)
    t.equal(booked.length, 5, JSON.stringify(bad))
    t.same(new Set(refused), new Set([poison.request_id, batch[4]!.request_id]))
    const [current] = await database.wallets.read([account])
    t.same(wallets, [current], 'the totals are those after the last part')
  }
  t.equal((await database.wallets.read([account]))[0]?.used, 350n)
  const { differences } = await database.audits.verifyWallets()
  t.same(new Set(differences.map(({ kind }) => kind)), new Set(['settlement_unbooked']))
  await sql`DELETE FROM settlements_refused`
  t.match(await database.audits.verifyWallets(), { ok: true })
})

t.test('a batch of an earlier version lacks the last columns: they have their defaults', async (t) => {
  const account = await newAccount(database)
  const quoted = (value: unknown) =>
    value === null || (Array.isArray(value) && value.length === 0)
      ? ''
      : `"${String(value).replace(/["\\]/g, '\\$&')}"`
  const bookKnowing = async (known: number, calls: readonly Settlement[]) => {
    const names = SETTLED_COLUMNS.slice(0, known)
    const composites = calls.map((call) => `(${names.map((name) => quoted(call[name])).join()})`)
    const [row] = await sql`SELECT booked, refused FROM book_settlements(${composites}, ${known})`
    return { ...row }
  }
  const hard = { error_message: '), "', cost: '10' }
  const call = (more: Partial<Settlement> = {}) =>
    settlement(account, { ...hard, session_id: 'run 7', call_count: 3, detail: '{}', ...more })
  for (const [last, kept] of [
    ['detail', { call_count: 3, detail: '{}', session_id: null }],
    ['attempts', { call_count: 1, detail: null, session_id: null }],
  ] as const) {
    const known = SETTLED_COLUMNS.indexOf(last) + 1
    t.ok(known < SETTLED_COLUMNS.length)
    const [good, stray] = [call(), call({ account_id: newId('acc') })]
    // Nothing is booked then: that process halves its batch, as this version does.
    await t.rejects(bookKnowing(known, [good, call({ cost: 'much' })]), /invalid input syntax/)
    const booked = { booked: [good.request_id], refused: [stray.request_id] }
    t.same(await bookKnowing(known, [good, stray]), booked)
    const [row] = await sql`
      SELECT cost, error_message, call_count, detail, session_id FROM usage_rows
      WHERE request_id = ${good.request_id}`
    t.same({ ...row }, { ...hard, cost: 10n, ...kept })
  }
  t.equal((await database.wallets.read([account]))[0]?.used, 20n)
})

t.test('every field of a call is kept as it was, whatever characters it has', async (t) => {
  const account = await newAccount(database)
  const hostile =
    'quote " backslash \\ brace } comma , NULL null \n\t\u{1F600} nul \0 part \x1e\x1f lone \ud800 end'
  const kept = 'quote " backslash \\ brace } comma , NULL null \n\t\u{1F600} nul  part \x1e lone \ufffd end'
  const keptInJson = kept.replace('part \x1e', 'part \x1e\x1f')
  const attempt = { seq: 1, created_at: '2026-01-01T00:00:00.000Z', latency_ms: 5, error_code: null }
  const hostileCall = () =>
    settlement(account, {
      model: '',
      error_code: 'NULL',
      error_message: hostile,
      unit_count: '1.5',
      unit_type: 'image',
      ttfb_ms: null,
      channel_id: null,
      attempts_count: null,
      call_count: 7,
      session_id: 'a "run", \\ of (two) parts',
      upstream_cost: '123456789012345678',
      input_tokens: Number.MAX_SAFE_INTEGER,
      attempts: [{ ...attempt, error_message: hostile }],
    })
  const [alone, amongOthers] = [hostileCall(), hostileCall()]
  const batches = [[alone], [settlement(account), amongOthers, settlement(account)]]
  for (const batch of batches) t.equal((await database.bookings.book(batch)).booked.length, batch.length)
  for (const call of [alone, amongOthers]) {
    const [row] = await sql<{ id: bigint }[]>`SELECT id FROM usage_rows WHERE request_id = ${call.request_id}`
    const { id } = row!
    const attempts = [{ ...attempt, error_message: keptInJson }]
    const read = { ...call, id, error_message: kept, attempts, key_name: '', key_prefix: '' }
    t.equal((await database.callCopy.readRows({ from: id, to: id })).toString(), usageText([read]).toString())
  }
})

t.test('a batch has a bound, and may be empty', async (t) => {
  const account = await newAccount(database)
  const full = Array.from({ length: MAX_BATCH_SETTLEMENTS }, () => settlement(account, { cost: '1' }))
  await t.rejects(database.bookings.book([...full, settlement(account)]), { name: 'RangeError' })
  t.equal((await database.bookings.book(full)).booked.length, MAX_BATCH_SETTLEMENTS)
  t.same(await database.bookings.book([]), { wallets: [], booked: [], refused: [] })
})

t.test('what is booked and the wallets are read together', async (t) => {
  const account = await newAccount(database)
  const [known, open, stray] = [
    settlement(account, { cost: '5' }),
    settlement(account),
    settlement(newId('acc')),
  ]
  await database.bookings.book([known, stray])
  const state = await database.bookings.readBooked(
    [known.request_id, open.request_id, stray.request_id],
    [account, newId('acc')],
  )
  t.same(state.requestIds, new Set([known.request_id, stray.request_id]), 'refused for good counts as done')
  t.same(state.wallets, await database.wallets.read([account]))
  t.same(await database.bookings.readBooked([], []), { requestIds: new Set(), wallets: [] })
})
