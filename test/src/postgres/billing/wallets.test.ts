/** Wallets: their ledger, what is booked, held, reserved and refunded. */
import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { SETTLED_COLUMNS, type Settlement } from '../../../../schemas/call-log/columns.ts'
import { ONE_CREDIT, parseCredits } from '../../../../schemas/money.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import { MAX_BATCH_SETTLEMENTS } from '../../../../src/postgres/billing/booking.ts'
import { CAP_RESERVATION_MINUTES } from '../../../../src/postgres/billing/caps.ts'
import { openDatabase } from '../../../../src/postgres/database.ts'
import { DeadlineExceeded } from '../../../../src/postgres/errors.ts'
import type { Task } from '../../../../src/postgres/tasks/types.ts'
import { Random } from '../../../simulation/random.ts'
import { startEngines } from '../../../support/engines.ts'
import { eventually, until } from '../../../support/eventually.ts'
import { usageText } from '../../../support/usage-text.ts'
import { newAccount, openFresh, reserveCap, settlement, sharePostgres } from '../support.ts'
import { created, giveBack, hold, move, newVideo, settle } from '../tasks/support.ts'

const engines = await sharePostgres()

t.test('top up has a minimum', async (t) => {
  const { database } = await openFresh(t, engines)

  t.test('an account is born with its trial credit as a ledger entry', async (t) => {
    const { account, wallet } = await database.accounts.create({
      name: 'Ada',
      kind: 'organization',
      credit: parseCredits('121.32'),
    })
    t.match(account, {
      name: 'Ada',
      kind: 'organization',
      enabled: true,
      requestsPerMinute: null,
      concurrency: null,
    })
    t.same(wallet, { accountId: account.id, balance: 12_132_000_000n, held: 0n, used: 0n, version: 1n })
    const entries = await database.wallets.readLedger(account.id, { before: null, limit: 10 })
    t.match(entries, [{ kind: 'trial', amount: 12_132_000_000n, ref: null, note: null }])
    t.same(await database.accounts.show(account.id), { account, wallet })
  })

  t.test('the ledger is summed up by day and kind, with the balance of each day, and searched', async (t) => {
    const { account } = await database.accounts.create({ name: 'Days', credit: 100n * ONE_CREDIT })
    await database.wallets.topUp(account.id, 500n * ONE_CREDIT, { note: 'by card' })
    await database.wallets.adjust(account.id, -50n * ONE_CREDIT, { reason: 'Goodwill taken back' })
    const day = new Date().toISOString().slice(0, 10)
    const days = await database.wallets.sumLedgerMonth(account.id, {
      month: day.slice(0, 7),
      timezone: 'UTC',
    })
    t.same(days, [
      {
        day,
        balance: 550n * ONE_CREDIT,
        kinds: [
          { kind: 'adjustment', entries: 1, amount: -50n * ONE_CREDIT },
          { kind: 'topup', entries: 1, amount: 500n * ONE_CREDIT },
          { kind: 'trial', entries: 1, amount: 100n * ONE_CREDIT },
        ],
      },
    ])
    t.same(await database.wallets.sumLedgerMonth(account.id, { month: '2020-01', timezone: 'UTC' }), [])
    const list = async (query: object) =>
      (await database.wallets.readLedger(account.id, { before: null, limit: 10, ...query })).map(
        ({ kind }) => kind,
      )
    t.same(await list({ search: 'GOODWILL' }), ['adjustment'])
    t.same(await list({ search: '%' }), [], 'a text, not a pattern')
    t.same(await list({ kind: 'topup', day }), ['topup'])
    t.same(await list({ day: '2020-01-01' }), [])
    // Days of Kiritimati begin ten hours before those of Honolulu, and the day before.
    await Promise.all(
      ['Pacific/Kiritimati', 'Pacific/Honolulu'].map(async (timezone) => {
        const there = new Date().toLocaleDateString('sv-SE', { timeZone: timezone })
        const [only] = await database.wallets.sumLedgerMonth(account.id, {
          month: there.slice(0, 7),
          timezone,
        })
        t.match(only, { day: there, balance: 550n * ONE_CREDIT }, timezone)
        t.same(await list({ kind: 'topup', day: there, timezone }), ['topup'])
      }),
    )
    await t.rejects(database.wallets.sumLedgerMonth('acc_nobody', { month: '2020-01', timezone: 'UTC' }), {
      code: 'account_not_found',
    })
  })

  t.test('no trial credit, no entry; a negative one is refused', async (t) => {
    const account = await newAccount(database, 0n)
    t.same(await database.wallets.readLedger(account, { before: null, limit: 10 }), [])
    await t.rejects(database.accounts.create({ name: 'x', credit: -1n }), { code: 'invalid_amount' })
  })

  t.test('a top-up under 404.4 is refused and changes nothing', async (t) => {
    const account = await newAccount(database, 1n)
    for (const amount of ['404.39999999', '0', '-500'])
      await t.rejects(database.wallets.topUp(account, parseCredits(amount)), {
        code: 'top_up_too_small',
        message: `A top-up is at least 404.4 credits, not ${amount}`,
      })
    t.equal((await database.wallets.readLedger(account, { before: null, limit: 10 })).length, 1)
    const { entry, wallet } = await database.wallets.topUp(account, parseCredits('404.4'), {
      note: 'by card',
    })
    t.match(entry, { kind: 'topup', amount: 40_440_000_000n, note: 'by card', ref: null })
    t.match(wallet, { balance: 40_540_000_000n, version: 2n })
  })

  t.test('the ledger is listed newest first, as many as asked', async (t) => {
    const account = await newAccount(database)
    for (const note of ['a', 'b', 'c']) await database.wallets.topUp(account, parseCredits('500'), { note })
    const notes = (await database.wallets.readLedger(account, { before: null, limit: 2 })).map(
      ({ note }) => note,
    )
    t.same(notes, ['c', 'b'])
  })

  t.test('limits are set one by one and taken away', async (t) => {
    const account = await newAccount(database)
    await database.accounts.setLimits(account, { requestsPerMinute: 60 })
    const both = await database.accounts.setLimits(account, { concurrency: 4 })
    t.match(both.account, { requestsPerMinute: 60, concurrency: 4 })
    const one = await database.accounts.setLimits(account, { requestsPerMinute: null })
    t.match(one.account, { requestsPerMinute: null, concurrency: 4 })
    t.same(await database.accounts.setLimits(account, {}), one)
    t.equal((await database.accounts.setEnabled(account, false)).account.enabled, false)
    t.ok(
      (await database.accounts.list()).some(
        ({ account: listed }) => listed.id === account && !listed.enabled,
      ),
    )
  })
})

t.test('credits have an author', async (t) => {
  const ACTOR = 'operator:ada'
  const { sql, url, masterKey } = await openFresh(t, engines)
  const database = await openDatabase({ url, masterKey, maxConnections: 4, actor: ACTOR })
  t.teardown(() => database.close())

  const balanceOf = async (account: string) => (await database.accounts.show(account)).wallet.balance
  const actsOf = async (account: string) =>
    (await database.auditRecord.list({ accountId: account, limit: 100 }))
      .filter(({ action }) => action.startsWith('wallet.'))
      .map(({ actor, action, before, after }) => ({ actor, action, before, after }))
      .reverse()

  t.test('ledger and audit name the actor and the amount of every credit', async (t) => {
    const account = await newAccount(database, 100n)
    const first = await database.wallets.topUp(account, 500n * ONE_CREDIT, {
      note: 'by card',
      reference: 'pay 1',
    })
    const second = await database.wallets.adjust(account, -25n * ONE_CREDIT, { reason: 'charged twice' })
    const entries = (await database.wallets.readLedger(account, { before: null, limit: 10 })).reverse()
    t.match(entries, [
      { kind: 'trial', amount: 100n * ONE_CREDIT, actor: ACTOR, reference: null },
      { kind: 'topup', amount: 500n * ONE_CREDIT, actor: ACTOR, reference: 'pay 1', note: 'by card' },
      { kind: 'adjustment', amount: -25n * ONE_CREDIT, actor: ACTOR, reference: null, note: 'charged twice' },
    ])
    t.same([first.entry, second.entry], entries.slice(1))
    const [trial, topup, adjustment] = entries.map(({ id }) => Number(id))
    t.same(await actsOf(account), [
      {
        actor: ACTOR,
        action: 'wallet.trial',
        before: { balance: '0' },
        after: { balance: '100', amount: '100', note: null, reference: null, entry: trial },
      },
      {
        actor: ACTOR,
        action: 'wallet.topup',
        before: { balance: '100' },
        after: { balance: '600', amount: '500', note: 'by card', reference: 'pay 1', entry: topup },
      },
      {
        actor: ACTOR,
        action: 'wallet.adjustment',
        before: { balance: '600' },
        after: { balance: '575', amount: '-25', note: 'charged twice', reference: null, entry: adjustment },
      },
    ])
    await database.bookings.book([settlement(account)])
    t.match(await database.wallets.readLedger(account, { before: null, limit: 1 }), [
      { kind: 'charge', actor: null, reference: null },
    ])
    t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
  })

  t.test('a reference counts once, also where the command is repeated at the same time', async (t) => {
    const account = await newAccount(database, 0n)
    const amount = 500n * ONE_CREDIT
    const done = await Promise.all(
      ['a', 'b', 'c', 'd'].map((note) =>
        database.wallets.topUp(account, amount, { note, reference: 'pay 2' }),
      ),
    )
    t.equal(done.filter(({ isRepeated }) => !isRepeated).length, 1)
    t.equal(new Set(done.map(({ entry }) => entry.id)).size, 1, 'each is answered the one entry')
    t.equal(await balanceOf(account), amount)
    t.equal((await actsOf(account)).length, 1)

    for (const refused of [
      () => database.wallets.topUp(account, amount + 1n, { reference: 'pay 2' }),
      () => database.wallets.adjust(account, amount, { reason: 'x', reference: 'pay 2' }),
    ])
      await t.rejects(refused, { code: 'reference_conflict', message: /"pay 2".*topup of 500 credits/ })
    t.equal(await balanceOf(account), amount)

    const other = await newAccount(database, 0n)
    t.match(await database.wallets.topUp(other, amount, { reference: 'pay 2' }), { isRepeated: false })
    const down = () =>
      database.wallets.adjust(other, -amount * 2n, { reason: 'chargeback', reference: 'back 2' })
    t.match(await down(), { isRepeated: false, wallet: { balance: -amount } })
    t.match(await down(), { isRepeated: true, wallet: { balance: -amount } })
    await t.rejects(database.wallets.adjust(other, 0n, { reason: 'x' }), { code: 'invalid_amount' })
    await t.rejects(database.wallets.adjust('acc_none', 1n, { reason: 'x' }), { code: 'account_not_found' })
    t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
  })

  t.test('what is booked cannot be changed or deleted', async (t) => {
    const account = await newAccount(database)
    const call = settlement(account)
    await database.bookings.book([call])
    const refused = /are only ever added/
    await t.rejects(sql`UPDATE ledger_entries SET amount = -1 WHERE ref = ${call.request_id}`, refused)
    await t.rejects(sql`DELETE FROM ledger_entries WHERE ref = ${call.request_id}`, refused)
    await t.rejects(sql`TRUNCATE ledger_entries`, refused)
    await t.rejects(sql`UPDATE usage_rows SET cost = 0 WHERE request_id = ${call.request_id}`, refused)
    await t.rejects(sql`DELETE FROM usage_rows WHERE request_id = ${call.request_id}`, refused)
    await t.rejects(sql`TRUNCATE usage_rows`, refused)
    t.match(
      await database.bookings.book([call]),
      { booked: { length: 0 } },
      'a second delivery is none of these',
    )
    t.match(await database.audits.verifyWallets(), { ok: true })
  })
})

t.test('call booked once', async (t) => {
  const { database, sql } = await openFresh(t, engines)
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
      const [row] = await sql<
        { id: bigint }[]
      >`SELECT id FROM usage_rows WHERE request_id = ${call.request_id}`
      const { id } = row!
      const attempts = [{ ...attempt, error_message: keptInJson }]
      const read = { ...call, id, error_message: kept, attempts, key_name: '', key_prefix: '' }
      t.equal(
        (await database.callCopy.readRows({ from: id, to: id })).toString(),
        usageText([read]).toString(),
      )
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
})

t.test('concurrent bookers no deadlock', async (t) => {
  const { database, sql, openAnother } = await openFresh(t, engines)

  t.test(
    'bookers and holds on wallets in opposite orders: nothing waits for ever, totals exact',
    async (t) => {
      const accounts = await Promise.all(Array.from({ length: 8 }, () => newAccount(database)))
      const bookers = [database, await openAnother(), await openAnother()]
      const BATCHES = 12
      const booked: string[] = []
      const work = bookers.map(async (booker, index) => {
        for (let batch = 0; batch < BATCHES; batch++) {
          const order = index % 2 === 0 ? accounts : accounts.toReversed()
          const calls = order.flatMap((account) => [
            settlement(account, { cost: '3' }),
            settlement(account, { cost: '4' }),
          ])
          booked.push(...(await booker.bookings.book(calls)).booked)
        }
      })
      const holding = accounts.map(async (accountId, index) => {
        for (let round = 0; round < BATCHES; round++) {
          const ref = `vid_${index}_${round}`
          const task = await hold(database, accountId, 1000n, ref)
          if (round % 2 === 0) await settle(database, task, 100n)
        }
      })
      await Promise.all([...work, ...holding])
      t.equal(new Set(booked).size, bookers.length * BATCHES * accounts.length * 2)
      const spent = BigInt(bookers.length * BATCHES * 7 + (BATCHES / 2) * 100)
      for (const wallet of await database.wallets.read(accounts))
        t.match(wallet, { used: spent, held: BigInt(BATCHES / 2) * 1000n }, 'every charge, once')
      t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
    },
  )

  t.test('the same batch given to three bookers at once is booked once', async (t) => {
    const account = await newAccount(database)
    const bookers = [database, await openAnother(), await openAnother()]
    const batch = Array.from({ length: 50 }, () => settlement(account, { cost: '2' }))
    const bookings = await Promise.all(bookers.map((booker) => booker.bookings.book(batch)))
    t.equal(bookings.flatMap((booking) => booking.booked).length, batch.length)
    t.equal((await database.wallets.read([account]))[0]?.used, 100n)
  })

  t.test('ids of booked calls rise in the order of commit', async (t) => {
    const account = await newAccount(database)
    const bookers = [database, await openAnother(), await openAnother()]
    const visible = async () => {
      const rows = await sql<{ id: bigint }[]>`
      SELECT id FROM usage_rows WHERE account_id = ${account} ORDER BY id`
      return rows.map((row) => row.id)
    }
    const seen: bigint[][] = []
    let running = true
    const watcher = (async () => {
      while (running) seen.push(await visible())
    })()
    await Promise.all(
      bookers.map(async (booker) => {
        for (let round = 0; round < 10; round++) {
          await booker.bookings.book(Array.from({ length: 10 }, () => settlement(account)))
          // The second look from here began after this booking: on a busy machine the watcher may not have come to one.
          for (const looks = seen.length; round === 0 && seen.length < looks + 2; ) await nextTurn()
        }
      }),
    )
    running = false
    await watcher
    const last = await visible()
    t.equal(last.length, 300)
    t.ok(
      seen.some((ids) => ids.length > 0 && ids.length < last.length),
      'it was watched while it grew',
    )
    const misses = seen.filter((ids) => ids.some((id, index) => id !== last[index]))
    t.same(misses, [], 'no row ever appears below one that was visible before')
  })
})

t.test('no float entries sum to balance', async (t) => {
  const { database, sql } = await openFresh(t, engines)

  const TOP_UP_MIN = 40_440_000_000n
  const RUNS = 12
  const MAX_STEPS = 25

  const amount = fc.bigInt({ min: 0n, max: 123_456_789_012n })
  const which = fc.nat({ max: 2 })
  const step = fc.oneof(
    fc.record({ do: fc.constant('topup' as const), which, amount: amount.map((more) => TOP_UP_MIN + more) }),
    fc.record({
      do: fc.constant('book' as const),
      costs: fc.array(fc.tuple(which, amount), { maxLength: 8 }),
    }),
    fc.record({ do: fc.constant('rebook' as const) }),
    fc.record({ do: fc.constant('hold' as const), which, amount }),
    fc.record({ do: fc.constant('settle' as const), pick: fc.nat(), amount }),
    fc.record({ do: fc.constant('refund' as const), pick: fc.nat() }),
  )

  /** What the wallets must come to, computed beside the database in whole units. */
  interface Expected {
    balance: bigint
    held: bigint
    used: bigint
  }

  t.test('whatever is done in whatever order, entries sum to the balance to the last unit', async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: MAX_STEPS }), async (steps) => {
        const accounts = await Promise.all([0n, 1n, 121n].map((credits) => newAccount(database, credits)))
        const wallets: Expected[] = [0n, 100_000_000n, 12_100_000_000n].map((balance) => ({
          balance,
          held: 0n,
          used: 0n,
        }))
        const open: { task: Task; which: number; amount: bigint }[] = []
        let lastBatch: Settlement[] = []
        for (const move of steps) {
          switch (move.do) {
            case 'topup':
              await database.wallets.topUp(accounts[move.which]!, move.amount)
              wallets[move.which]!.balance += move.amount
              break
            case 'book':
              lastBatch = move.costs.map(([index, cost]) =>
                settlement(accounts[index]!, { cost: String(cost) }),
              )
              await database.bookings.book(lastBatch)
              for (const [index, cost] of move.costs) {
                wallets[index]!.balance -= cost
                wallets[index]!.used += cost
              }
              break
            case 'rebook':
              await database.bookings.book(lastBatch.toReversed())
              break
            case 'hold': {
              const wallet = wallets[move.which]!
              const made = await database.tasks.create(newVideo(accounts[move.which]!, { hold: move.amount }))
              t.equal(made.outcome, move.amount <= wallet.balance ? 'created' : 'insufficient')
              if (made.outcome !== 'created') break
              open.push({ task: made.task, which: move.which, amount: move.amount })
              wallet.balance -= move.amount
              wallet.held += move.amount
              break
            }
            default: {
              const [hold] = open.splice(move.pick % Math.max(open.length, 1), 1)
              if (hold === undefined) break
              const cost = move.do === 'settle' ? move.amount : 0n
              if (move.do === 'settle') await settle(database, hold.task, cost)
              else await giveBack(database, hold.task, 'failed')
              const wallet = wallets[hold.which]!
              wallet.balance += hold.amount - cost
              wallet.held -= hold.amount
              wallet.used += cost
            }
          }
        }
        for (const [index, accountId] of accounts.entries()) {
          const [row] = await sql<Expected[]>`
          SELECT w.balance, w.held, w.used, (
            SELECT coalesce(sum(amount), 0)::bigint FROM ledger_entries AS l WHERE l.account_id = w.account_id
          ) AS entries
          FROM wallets AS w WHERE account_id = ${accountId}`
          t.same({ ...row }, { ...wallets[index], entries: wallets[index]!.balance })
        }
      }),
      { numRuns: RUNS },
    )
    t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
  })
})

t.test('caps hold over processes', async (t) => {
  const { database, sql, openAnother } = await openFresh(t, engines)
  const other = await openAnother()

  async function newKey(spendCap: bigint | null) {
    const accountId = await newAccount(database)
    const { key } = await database.keys.create({ accountId, name: 'capped', kind: 'employee', spendCap })
    return { accountId, keyId: key.id }
  }

  const reserved = async (keyId: string): Promise<bigint> => {
    const [row] = await sql<[{ sum: string }]>`
    SELECT coalesce(sum(amount), 0)::text AS sum FROM cap_reservations WHERE key_id = ${keyId}`
    return BigInt(row.sum)
  }
  const grantOf = async (keyId: string) => (await database.keys.show(keyId)).grant

  t.test('of many that ask at once in two processes, those get it whom the cap covers', async (t) => {
    const { keyId } = await newKey(50n)
    const asked = Array.from({ length: 40 }, (_, at) =>
      reserveCap([database, other][at % 2]!, { keyId, requestId: newId('req'), amount: 10n }),
    )
    t.equal((await Promise.all(asked)).filter(Boolean).length, 5)
    t.equal(await reserved(keyId), 50n)
  })

  t.test('who asks while another reservation is being made waits for it', async (t) => {
    const { keyId } = await newKey(50n)
    let answer: boolean | null = null
    const isWaiting = async () => {
      const [row] = await sql<[{ count: bigint }]>`SELECT count(*) FROM pg_locks WHERE NOT granted`
      return row.count > 0n || answer !== null ? true : undefined
    }
    const asked = await sql.begin(async (transaction) => {
      await transaction`SELECT reserve_spend(${newId('req')}, ${keyId}, 30, ${Date.now()}, '1 hour')`
      const asking = reserveCap(other, { keyId, requestId: newId('req'), amount: 30n })
      void asking.then((isReserved) => {
        answer = isReserved
      })
      await eventually('it waits', isWaiting)
      return { asking }
    })
    t.equal(await asked.asking, false)
  })

  t.test('a booking spends what was reserved, in the transaction that frees the reservation', async (t) => {
    const { accountId, keyId } = await newKey(50n)
    const requestId = newId('req')
    t.ok(await reserveCap(database, { keyId, requestId, amount: 30n }))
    t.ok(await reserveCap(other, { keyId, requestId, amount: 30n }), 'a request reserves once')
    t.equal(await reserved(keyId), 30n)
    const ended = settlement(accountId, { request_id: requestId, key_id: keyId, cost: '20' })
    const { wallets } = await database.bookings.book([ended, settlement(accountId, { cost: '7' })])
    t.match(
      wallets.find(({ accountId: id }) => id === keyId),
      { balance: 30n, used: 20n, version: 2n },
      'the notification has what the cap leaves',
    )
    t.equal(await reserved(keyId), 0n)
    t.match(await grantOf(keyId), { spent: 20n, version: 2n })
    t.same((await database.bookings.book([ended])).wallets, [], 'a second delivery changes nothing')
    t.match(await grantOf(keyId), { spent: 20n, version: 2n })
    t.same(
      (await database.wallets.read([keyId])).map(({ balance }) => balance),
      [30n],
    )
    t.same(
      (await database.bookings.readBooked([], [keyId])).wallets.map(({ used }) => used),
      [20n],
    )

    const free = newId('req')
    t.ok(await reserveCap(database, { keyId, requestId: free, amount: 30n }))
    const refused = settlement(accountId, {
      request_id: free,
      key_id: keyId,
      cost: '0',
      status: 'interrupted',
    })
    t.match((await database.bookings.book([refused])).wallets, [{ accountId: keyId, balance: 30n }])
    t.equal(await reserved(keyId), 0n, 'a call at no charge frees what it reserved')
    t.match(await grantOf(keyId), { spent: 20n, version: 2n })
    t.equal((await database.audits.verifyWallets()).ok, true)
  })

  t.test('a call that has ended reserves its cost, and one that was given up nothing', async (t) => {
    const { keyId } = await newKey(50n)
    const [ended, givenUp] = [newId('req'), newId('req')]
    await reserveCap(database, { keyId, requestId: ended, amount: 40n })
    await database.reservations.shrink(ended, 15n)
    t.ok(await reserveCap(other, { keyId, requestId: givenUp, amount: 35n }))
    t.notOk(await reserveCap(other, { keyId, requestId: newId('req'), amount: 1n }))
    await database.reservations.release(givenUp)
    await sql`
    UPDATE cap_reservations SET expires_at = expires_at - make_interval(mins => ${CAP_RESERVATION_MINUTES})
    WHERE key_id = ${keyId}`
    t.notOk(await reserveCap(other, { keyId, requestId: newId('req'), amount: 36n }), 'its row may come late')
    t.equal(await reserved(keyId), 15n)
  })

  t.test('what a process left behind that died is free again in time', async (t) => {
    const { keyId } = await newKey(50n)
    await reserveCap(database, { keyId, requestId: newId('req'), amount: 50n })
    t.notOk(await reserveCap(other, { keyId, requestId: newId('req'), amount: 1n }))
    await sql`UPDATE cap_reservations SET expires_at = now() WHERE key_id = ${keyId}`
    t.ok(await reserveCap(other, { keyId, requestId: newId('req'), amount: 50n }))
  })

  t.test('a cap that is raised, lowered or taken away holds from then on', async (t) => {
    const { keyId } = await newKey(50n)
    const ask = (amount: bigint) => reserveCap(other, { keyId, requestId: newId('req'), amount })
    t.notOk(await ask(60n))
    await database.keys.update(keyId, { spendCap: 60n })
    t.ok(await ask(60n))
    await database.keys.update(keyId, { spendCap: 10n })
    t.notOk(await ask(1n))
    await database.keys.update(keyId, { spendCap: null })
    t.ok(await ask(1_000n))
    t.equal(await reserved(keyId), 60n, 'nothing is reserved without a cap')
    t.same(await database.wallets.read([keyId]), [])
  })

  t.test('a task reserves its hold until it ends, however it ends', async (t) => {
    const { accountId, keyId } = await newKey(1_000n)
    const order = (hold: bigint) => database.tasks.create(newVideo(accountId, { keyId, hold }))
    const made = (hold: bigint) => created(database, newVideo(accountId, { keyId, hold }))
    const [first, second] = [await made(600n), await made(300n)]
    t.same(await order(200n), { outcome: 'over_limit', refusal: { by: 'spend_cap' } })
    t.equal(await reserved(keyId), 900n)
    t.equal((await database.accounts.show(accountId)).wallet.held, 900n, 'what was refused holds nothing')

    const wallet = await settle(database, first, 450n)
    t.equal(wallet.accountId, accountId, 'a move tells of the account’s wallet')
    t.match(await grantOf(keyId), { spent: 450n })
    t.equal(await reserved(keyId), 300n)
    await giveBack(database, second, 'failed')
    t.equal(await reserved(keyId), 0n)
    t.match(await grantOf(keyId), { spent: 450n })

    const poor = await database.accounts.create({ name: 'poor', credit: 10n })
    const { key } = await database.keys.create({
      accountId: poor.account.id,
      name: 'capped',
      kind: 'employee',
      spendCap: 1_000n,
    })
    t.match(await database.tasks.create(newVideo(poor.account.id, { keyId: key.id, hold: 11n })), {
      outcome: 'insufficient',
    })
    t.equal(await reserved(key.id), 0n, 'what the wallet refuses reserves nothing')
    t.equal((await database.audits.verifyWallets()).ok, true)
  })

  t.test('calls and tasks of one account are made, moved and booked at once without deadlock', async (t) => {
    const { accountId, keyId } = await newKey(1_000_000n)
    const work = Array.from({ length: 30 }, async (_, at) => {
      const by = [database, other][at % 2]!
      if (at % 3 === 0) {
        const made = await by.tasks.create(newVideo(accountId, { keyId, hold: 100n }))
        if (made.outcome === 'created') await settle(by, made.task, 60n)
        return
      }
      const requestId = newId('req')
      await reserveCap(by, { keyId, requestId, amount: 50n })
      await by.bookings.book([settlement(accountId, { request_id: requestId, key_id: keyId, cost: '40' })])
    })
    await Promise.all(work)
    t.match(await grantOf(keyId), { spent: 10n * 60n + 20n * 40n })
    t.equal(await reserved(keyId), 0n)
    t.equal((await database.audits.verifyWallets()).ok, true)
  })
})

t.test('late reservations are released', async (t) => {
  // A reservation that is made after its caller stopped waiting is released: the call may be booked by then, and nothing else ends it.
  const { database, sql, openAnother } = await openFresh(t, engines)
  const other = await openAnother()
  const accountId = await newAccount(database)
  const { key } = await database.keys.create({
    accountId,
    name: 'capped',
    kind: 'employee',
    spendCap: 1_000n,
  })

  const LOCKS = {
    'in a spend cap': async (work: () => Promise<void>) =>
      void (await sql.begin(async (holding) => {
        await holding`SELECT FROM grants WHERE key_id = ${key.id} FOR UPDATE`
        await work()
      })),
    'in a wallet': async (work: () => Promise<void>) =>
      void (await sql.begin(async (holding) => {
        await holding`SELECT FROM wallets WHERE account_id = ${accountId} FOR UPDATE`
        await work()
      })),
  }
  const reservedIn = undefined

  for (const [where, underLock] of Object.entries(LOCKS))
    t.test(where, async (t) => {
      const requestId = newId('req')
      const wanted = {
        requestId,
        amount: 100n,
        submittedAt: Date.now(),
        keyId: key.id,
        accountId,
        reservedIn,
      }
      await underLock(async () => {
        const reserving: Promise<unknown> =
          where === 'in a wallet'
            ? other.reservations.reserveWallet(wanted)
            : other.reservations.reserveSpend(wanted)
        await t.rejects(reserving, DeadlineExceeded)
      })
      const left = async () => {
        const rows = await sql`
        SELECT ref FROM cap_reservations WHERE ref = ${requestId}
        UNION SELECT ref FROM wallet_reservations WHERE ref = ${requestId}`
        return rows.length
      }
      const isIdle = async () => {
        const [row] = await sql<[{ busy: bigint }]>`
        SELECT count(*) AS busy FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%reserve_%' AND pid <> pg_backend_pid()`
        return row.busy === 0n
      }
      await until('the late statement is over', isIdle)
      await until('nothing stays reserved', async () => (await left()) === 0)
    })
})

t.test('wallet reservations hold over processes', async (t) => {
  const { database, sql, openAnother } = await openFresh(t, engines)
  const other = await openAnother()

  /** An account with a balance of 100 units beside what another one has. */
  async function newWallet(): Promise<string> {
    const accountId = await newAccount(database, 0n)
    await sql`UPDATE wallets SET balance = 100 WHERE account_id = ${accountId}`
    return accountId
  }
  const reserve = (accountId: string, amount: bigint, by = database, requestId = newId('req')) =>
    by.reservations.reserveWallet({ accountId, requestId, amount })
  const reservedIn = async (accountId: string): Promise<bigint> => {
    const [row] = await sql<[{ reserved: bigint }]>`SELECT reserved_in(${accountId}) AS reserved`
    return row.reserved
  }

  t.test('of many that ask at once in two processes, the balance covers those that get it', async (t) => {
    const accountId = await newWallet()
    await reserve(await newWallet(), 100n)
    const asked = Array.from({ length: 40 }, (_, at) => reserve(accountId, 20n, [database, other][at % 2]))
    t.equal((await Promise.all(asked)).filter(Boolean).length, 5)
    t.equal(await reservedIn(accountId), 100n)
    t.notOk(await reserve('acc_unknown', 0n))
  })

  t.test('a booking ends the reservation, and every reader learns what stays reserved', async (t) => {
    const accountId = await newWallet()
    const [ended, free, open] = [newId('req'), newId('req'), newId('req')]
    for (const requestId of [ended, free, open]) t.ok(await reserve(accountId, 30n, database, requestId))
    t.ok(await reserve(accountId, 30n, other, open), 'a request reserves once')
    t.equal(await reservedIn(accountId), 90n)
    const booking = [
      settlement(accountId, { request_id: ended, cost: '20' }),
      settlement(accountId, { request_id: free, cost: '0', status: 'interrupted' }),
    ]
    const left = { accountId, balance: 80n, reserved: 30n }
    t.match((await database.bookings.book(booking)).wallets, [left])
    t.equal(await reservedIn(accountId), 30n)
    t.match(await database.wallets.read([accountId]), [left])
    t.match((await database.bookings.readBooked([], [accountId])).wallets, [left])
    const { raw } = await database.keys.create({ accountId, name: 'reader' })
    t.match((await database.keys.findCredential(database.keys.lookupHash(raw)))?.wallet, left)

    await database.reservations.release(open)
    await reserve(await newWallet(), 1n)
    const last = settlement(accountId, { cost: '5' })
    const [wallet] = (await database.bookings.book([last])).wallets
    t.equal(wallet?.reserved, undefined, 'nothing stays reserved')
  })

  t.test('a call that has ended reserves its cost, and a dead process frees its calls in time', async (t) => {
    const accountId = await newWallet()
    const [ended, dead] = [newId('req'), newId('req')]
    await reserve(accountId, 60n, database, ended)
    await database.reservations.shrink(ended, 15n)
    t.ok(await reserve(accountId, 85n, other, dead))
    t.notOk(await reserve(accountId, 1n))
    await sql`
    UPDATE wallet_reservations SET expires_at = expires_at - make_interval(mins => ${CAP_RESERVATION_MINUTES})
    WHERE account_id = ${accountId}`
    t.notOk(await reserve(accountId, 86n), 'the row of the call that has ended may come late')
    t.ok(await reserve(accountId, 85n))
  })

  t.test('a reservation outlives the longest call', async (t) => {
    const accountId = await newWallet()
    const requestId = newId('req')
    const callMs = 3_600_000
    await database.reservations.reserveWallet({ accountId, requestId, amount: 60n, callMs })
    await sql`
      UPDATE wallet_reservations SET expires_at = expires_at - interval '1 hour' WHERE account_id = ${accountId}`
    t.equal(await reservedIn(accountId), 60n)
  })

  t.test('a task is held only from what no call has reserved', async (t) => {
    const accountId = await newWallet()
    await reserve(accountId, 60n)
    t.match(await database.tasks.create(newVideo(accountId, { hold: 41n })), { outcome: 'insufficient' })
    const made = await database.tasks.create(newVideo(accountId, { hold: 40n }))
    t.match(made, { outcome: 'created', wallet: { balance: 60n, held: 40n, reserved: 60n } })
    t.notOk(await reserve(accountId, 1n))
  })
})

t.test('holds exact after restart', async (t) => {
  const engines = await startEngines(t, { only: ['postgres'] })
  const { database, sql, openAnother } = await openFresh(t, engines)
  const CREDIT = 100_000_000_000n

  const entriesOf = async (ref: string) => {
    const rows = await sql<{ kind: string; amount: bigint }[]>`
    SELECT kind, amount FROM ledger_entries WHERE ref = ${ref} ORDER BY id`
    return Object.fromEntries(rows.map(({ kind, amount }) => [kind, amount]))
  }

  t.test('a hold leaves the balance at once and comes back less what was charged', async (t) => {
    const accountId = await newAccount(database)
    const task = await hold(database, accountId, 500n)
    t.match((await database.wallets.read([accountId]))[0], { balance: CREDIT - 500n, held: 500n, used: 0n })
    t.match(await settle(database, task, 320n), { balance: CREDIT - 320n, held: 0n, used: 320n })
    t.same(await entriesOf(task.id), { hold: -500n, release: 500n, charge: -320n })
  })

  t.test('a hold that comes back whole leaves the used total as it was', async (t) => {
    const accountId = await newAccount(database)
    for (const [event, kind] of [
      ['refused', 'release'],
      ['failed', 'refund'],
    ] as const) {
      const task = await hold(database, accountId, 500n)
      const started = (await database.tasks.applyTransition(move(task, 'claimed'))).task
      t.match(await giveBack(database, started, event), { balance: CREDIT, held: 0n, used: 0n })
      t.same(await entriesOf(task.id), { hold: -500n, [kind]: 500n })
    }
  })

  t.test('parallel holds never take more than the balance', async (t) => {
    const accountId = await newAccount(database, 1n)
    const amount = CREDIT / 10_000n
    const made = await Promise.all(
      Array.from({ length: 30 }, () => database.tasks.create(newVideo(accountId, { hold: amount }))),
    )
    t.equal(made.filter(({ outcome }) => outcome === 'created').length, 10)
    t.equal(made.filter(({ outcome }) => outcome === 'insufficient').length, 20)
    t.match((await database.wallets.read([accountId]))[0], { balance: 0n, held: amount * 10n })
    await t.rejects(hold(database, newId('acc'), amount), { code: 'account_not_found' })
  })

  t.test('a crash of the engine with open holds gives an exact balance', async (t) => {
    const accountId = await newAccount(database)
    const [open, done] = [await hold(database, accountId, 700n), await hold(database, accountId, 50n)]
    await settle(database, done, 20n)
    await database.bookings.book([settlement(accountId, { cost: '5' })])
    const [before] = await database.wallets.read([accountId])
    engines.killEngine('postgres')
    // Fast test clusters do not wait for the disk, but the kernel has what a killed process wrote.
    const again = await eventually('the engine is back', () => openAnother().catch(() => undefined))
    const [after] = await again.wallets.read([accountId])
    t.same(after, before)
    t.match(after, { balance: CREDIT - 725n, held: 700n, used: 25n })
    t.match(await again.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
    t.match(await settle(again, open, 1n), { balance: CREDIT - 26n, held: 0n, used: 26n })
  })
})

t.test('refund once and at most the charge', async (t) => {
  // A call or task is refunded once, at most by its charge, and the books stay right.
  const { database } = await openFresh(t, engines)
  const reason = 'the answer was empty'

  t.test('a refund is booked once, also when two come at once', async (t) => {
    const account = await newAccount(database)
    const call = settlement(account)
    await database.bookings.book([call])
    const { wallet: before } = await database.accounts.show(account)
    const refund = () => database.wallets.refund(account, call.request_id, { amount: null, reason })
    const [one, two] = await Promise.all([refund(), refund()])
    t.same([one.isRepeated, two.isRepeated].sort(), [false, true])
    t.equal(one.entry.amount, BigInt(call.cost))
    t.equal(one.entry.ref, call.request_id)
    const { wallet } = await database.accounts.show(account)
    t.equal(wallet.balance, before.balance + BigInt(call.cost))
    t.equal(wallet.used, before.used, 'what was used stays used')
    t.same((await database.audits.verifyWallets()).differences, [])
  })

  t.test('nothing is given back above the charge, or without one', async (t) => {
    const account = await newAccount(database)
    const call = settlement(account)
    const rejected = settlement(account, { cost: '0', status: 'rejected' })
    await database.bookings.book([call, rejected])
    const above = BigInt(call.cost) + 1n
    const refund = (ref: string, amount: bigint | null) =>
      database.wallets.refund(account, ref, { amount, reason })
    await t.rejects(refund(call.request_id, above), { code: 'invalid_amount' })
    await t.rejects(refund(call.request_id, 0n), { code: 'invalid_amount' })
    await t.rejects(refund(call.request_id, -1n), { code: 'invalid_amount' })
    await t.rejects(refund(rejected.request_id, null), { code: 'charge_not_found' })
    await t.rejects(
      database.wallets.refund(await newAccount(database), call.request_id, { amount: 1n, reason }),
      {
        code: 'charge_not_found',
      },
    )
    await refund(call.request_id, 1n)
    await t.rejects(refund(call.request_id, 2n), { code: 'refunded_already' })
    t.match(await database.wallets.findRefund(account, call.request_id), { amount: 1n, note: reason })
  })

  t.test('a task is refunded like a call', async (t) => {
    const account = await newAccount(database)
    const ref = await hold(database, account, 50_000_000n, 'vid_refund')
    await settle(database, ref, 20_000_000n)
    const { entry } = await database.wallets.refund(account, 'vid_refund', { amount: null, reason })
    t.equal(entry.amount, 20_000_000n)
    t.same(
      (await database.audits.verifyWallets()).differences.filter(({ account_id }) => account_id === account),
      [],
    )
  })
})

t.test('refunds leave used what was charged', async (t) => {
  // Whatever is held and given back, used is the sum of what was charged. See docs/failure-modes.md, "Money", row 16.
  const SEED = 16
  const STEPS = 120
  const CREDIT = 100_000_000_000n

  t.test('holds, releases, refunds, charges and calls in any order', async (t) => {
    const { database, sql } = await openFresh(t, engines)
    const random = new Random(SEED)
    const accountId = await newAccount(database)
    let charged = 0n
    let held = 0n
    const open: Awaited<ReturnType<typeof hold>>[] = []
    const takeOpen = () => open.splice(random.int(0, open.length - 1), 1)[0]!
    const steps: Record<string, () => Promise<unknown>> = {
      async hold() {
        const amount = BigInt(random.int(1, 1_000_000))
        held += amount
        open.push(await hold(database, accountId, amount))
      },
      async charge() {
        const task = takeOpen()
        // As much as was held, or less.
        const cost = random.chance(0.3) ? task.hold : BigInt(random.int(0, Number(task.hold)))
        held -= task.hold
        charged += cost
        await settle(database, task, cost)
      },
      async release() {
        const task = takeOpen()
        held -= task.hold
        await giveBack(database, task, 'refused')
      },
      async refund() {
        const task = takeOpen()
        held -= task.hold
        const { task: running } = await database.tasks.applyTransition(move(task, 'claimed'))
        // A second refund is late.
        await Promise.all(
          [
            giveBack(database, running, 'failed'),
            database.tasks.applyTransition(move(running, 'deadline')),
          ].map((ended) => ended.catch(() => null)),
        )
      },
      async call() {
        const cost = BigInt(random.int(1, 1_000))
        charged += cost
        await database.bookings.book([settlement(accountId, { cost: String(cost) })])
      },
    }
    for (let step = 0; step < STEPS; step++) {
      const names = open.length === 0 ? ['hold', 'call'] : Object.keys(steps)
      const name = random.pick(names)
      await steps[name]!()
      const [wallet] = await database.wallets.read([accountId])
      const expected = { used: charged, held, balance: CREDIT - charged - held }
      if (!t.match(wallet, expected, `step ${step} of seed ${SEED}: ${name}`)) return
    }
    while (open.length > 0) await giveBack(database, takeOpen(), 'refused')
    const [sums] = await sql<[{ rows: string; charges: string }]>`
    SELECT (SELECT coalesce(sum(cost), 0)::text FROM usage_rows WHERE account_id = ${accountId}) AS rows,
      (SELECT coalesce(-sum(amount), 0)::text FROM ledger_entries
       WHERE account_id = ${accountId} AND kind = 'charge') AS charges`
    t.same(sums, { rows: String(charged), charges: String(charged) }, 'used is what rows and ledger say')
    t.match((await database.wallets.read([accountId]))[0], {
      used: charged,
      held: 0n,
      balance: CREDIT - charged,
    })
    t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
  })
})

t.test('refunds never pass the charge', async (t) => {
  // Whatever refunds of calls and tasks arrive, at once and again, over processes: one counts, and the books agree.
  const { database, openAnother } = await openFresh(t, engines)
  const processes = [database, await openAnother()]

  const RUNS = 15
  const CREDIT = 1000n
  const ONE_CREDIT = 100_000_000n
  const HOLD = 1_000n
  /** Of a task that is held at `HOLD`: a part of it, or all. */
  const charge = fc.bigInt({ min: 1n, max: HOLD })
  const asked = fc.record({
    process: fc.nat({ max: 1 }),
    /** Null: all of the charge. */
    amount: fc.option(fc.bigInt({ min: -1n, max: HOLD + 1n })),
  })
  const charged = fc.record({
    isTask: fc.boolean(),
    charge,
    /** Those of one list are sent at once, the lists one after another. */
    refunds: fc.array(fc.array(asked, { minLength: 1, maxLength: 4 }), { maxLength: 3 }),
  })

  const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error)

  t.test('at most one refund of each, never above its charge', async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.array(charged, { minLength: 1, maxLength: 5 }), async (works) => {
        const account = await newAccount(database, CREDIT)
        let balance = CREDIT * ONE_CREDIT
        let used = 0n
        for (const { isTask, charge: cost, refunds } of works) {
          const call = settlement(account, { cost: String(cost) })
          const task = isTask ? await hold(database, account, HOLD) : null
          const ref = task?.id ?? call.request_id
          const refund = (amount: bigint | null, process = 0) =>
            processes[process]!.wallets.refund(account, ref, { amount, reason: 'late' })
          t.equal(await refund(null).catch(codeOf), 'charge_not_found', 'nothing was charged yet')
          if (task === null) await database.bookings.book([call])
          else await settle(database, task, cost)
          balance -= cost
          used += cost
          let booked: bigint | null = null
          for (const batch of refunds) {
            const outcomes = await Promise.all(
              batch.map(({ amount, process }) => refund(amount, process).catch(codeOf)),
            )
            const wanted = batch.map(({ amount }) => amount ?? cost)
            const isValid = (amount: bigint) => amount > 0n && amount <= cost
            const done = outcomes.flatMap((outcome) => (typeof outcome === 'string' ? [] : [outcome]))
            const before = booked
            booked ??= done[0]?.entry.amount ?? null
            t.equal(
              done.filter(({ isRepeated }) => !isRepeated).length,
              before === null && booked !== null ? 1 : 0,
            )
            t.equal(booked === null, before === null && !wanted.some(isValid), 'a valid one is booked')
            for (const [index, outcome] of outcomes.entries())
              if (typeof outcome !== 'string') t.equal(wanted[index], booked)
              else if (before !== null) t.equal(outcome, 'refunded_already')
              else t.ok(['invalid_amount', 'refunded_already'].includes(outcome), outcome)
          }
          balance += booked ?? 0n
          t.equal((await database.wallets.findRefund(account, ref))?.amount ?? null, booked)
          // What was settled comes again.
          if (task === null) await database.bookings.book([call])
        }
        const { wallet } = await database.accounts.show(account)
        t.match(wallet, { balance, used, held: 0n })
        t.same((await database.audits.verifyWallets()).differences, [])
      }),
      { numRuns: RUNS, seed: 22, endOnFailure: true },
    )
  })
})
