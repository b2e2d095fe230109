/** The audit of wallets: what it finds, and what it reads again. */
import t from 'tap'
import type { Difference } from '../../../../src/postgres/billing/audit-report.ts'
import type { Sql } from '../../../../src/postgres/connection.ts'
import type { Database } from '../../../../src/postgres/database.ts'
import { makeOld, unguarded } from '../partition-support.ts'
import { newAccount, openFresh, settlement, sharePostgres } from '../support.ts'
import { giveBack, hold, settle } from '../tasks/support.ts'

const engines = await sharePostgres()

t.test('audit finds planted errors', async (t) => {
  const { database: sound } = await openFresh(t, engines)

  interface Planted {
    readonly account: string
    readonly call: string
    readonly hold: string
  }

  /** An account with 1,000 credits, one charged call (0.049), one settled hold (0.2) and one open hold (0.3). */
  async function populate(database: Database): Promise<Planted> {
    const account = await newAccount(database)
    const call = settlement(account)
    await database.bookings.book([call, settlement(account, { cost: '0', status: 'rejected' })])
    await settle(database, await hold(database, account, 50_000_000n, 'vid_settled'), 20_000_000n)
    await giveBack(database, await hold(database, account, 50_000_000n, 'vid_refunded'), 'failed')
    await hold(database, account, 30_000_000n, 'vid_open')
    return { account, call: call.request_id, hold: 'vid_open' }
  }

  t.test('a sound database has no difference', async (t) => {
    t.same(await sound.audits.verifyWallets(), { ok: true, accounts: 0, entries: 0, differences: [] })
    await populate(sound)
    t.same(await sound.audits.verifyWallets(), { ok: true, accounts: 1, entries: 8, differences: [] })
  })

  /** Of the calls. */
  const KEY = settlement('').key_id
  const BUDGET = 'bud_01J8Z3N4V9QKX2T5W7Y0ABCDEF'

  const plantKey = (sql: Sql, account: string) => sql`
  INSERT INTO api_keys (id, account_id, name, kind, prefix, key_hash)
  VALUES (${KEY}, ${account}, 'planted', 'employee', 'sk-tollgate-00000000', sha256('planted'))`

  /** The name of a malformed settlement: of what its line is. */
  const MALFORMED = /^malformed_[0-9a-f]{32}$/

  type Plant = (sql: Sql, planted: Planted, database: Database) => Promise<unknown>
  type Expected = (planted: Planted) => (Omit<Difference, 'ref'> & { readonly ref?: string | RegExp })[]

  /** Drops a unique index of the ledger in all partitions. */
  async function dropIndexes(sql: Sql, name: string): Promise<void> {
    const rows = await sql<{ index: string }[]>`
    SELECT indexname AS index FROM pg_indexes
    WHERE starts_with(tablename, 'ledger_entries') AND indexname = tablename || '_' || ${name}
      OR indexname = 'ledger_entries_' || ${name}`
    for (const { index } of rows) await sql`DROP INDEX ${sql(index)}`
  }

  const ERRORS: readonly [what: string, Plant, Expected][] = [
    [
      'a balance that is not the sum of the entries',
      (sql) => sql`UPDATE wallets SET balance = balance + 1`,
      ({ account }) => [{ account_id: account, kind: 'balance', expected: '999.451', found: '999.45100001' }],
    ],
    [
      'a used total that is not the sum of the charges',
      (sql) => sql`UPDATE wallets SET used = used + 5000000`,
      ({ account }) => [{ account_id: account, kind: 'used', expected: '0.249', found: '0.299' }],
    ],
    [
      'a refund above the charge',
      (sql, { account, call }) => sql`
      WITH entry AS (
        INSERT INTO ledger_entries (account_id, kind, amount, ref, note, actor)
        VALUES (${account}, 'adjustment', 5000000, ${call}, 'planted', 'operator:test') RETURNING *
      ), act AS (
        INSERT INTO audit_entries (actor, action, account_id, subject_id, after)
        SELECT actor, 'wallet.adjustment', account_id, account_id,
          jsonb_build_object('entry', id, 'amount', '0.05') FROM entry
      )
      UPDATE wallets SET balance = balance + 5000000`,
      ({ account, call }) => [
        { account_id: account, kind: 'refund', ref: call, expected: '0.049', found: '0.05' },
      ],
    ],
    [
      'two refunds that are above the charge together',
      async (sql, { account, call }) => {
        await dropIndexes(sql, 'ref_kind')
        await sql`
        WITH entry AS (
          INSERT INTO ledger_entries (account_id, kind, amount, ref, note, actor)
          SELECT ${account}, 'adjustment', 2500000, ${call}, 'planted', 'operator:test' FROM generate_series(1, 2)
          RETURNING *
        ), act AS (
          INSERT INTO audit_entries (actor, action, account_id, subject_id, after)
          SELECT actor, 'wallet.adjustment', account_id, account_id,
            jsonb_build_object('entry', id, 'amount', '0.025') FROM entry
        )
        UPDATE wallets SET balance = balance + 5000000`
      },
      ({ account, call }) => [
        { account_id: account, kind: 'refund', ref: call, expected: '0.049', found: '0.05' },
      ],
    ],
    [
      'a held total that is not the sum of the open holds',
      (sql) => sql`UPDATE wallets SET held = 0`,
      ({ account }) => [{ account_id: account, kind: 'held', expected: '0.3', found: '0' }],
    ],
    [
      'a hold that was closed without giving the money back',
      (sql, { hold }) => sql`UPDATE holds SET state = 'returned', closed_at = now() WHERE ref = ${hold}`,
      ({ account, hold }) => [
        { account_id: account, kind: 'held', expected: '0', found: '0.3' },
        { account_id: account, kind: 'held_entries', expected: '0', found: '0.3' },
        { account_id: account, kind: 'hold_entries', ref: hold, expected: '0', found: '-0.3' },
        { account_id: account, kind: 'task_hold', ref: hold, expected: '0.3', found: '0' },
      ],
    ],
    [
      'a hold that is lost',
      (sql, { hold }) => sql`DELETE FROM holds WHERE ref = ${hold}`,
      ({ account, hold }) => [
        { account_id: account, kind: 'held', expected: '0', found: '0.3' },
        { account_id: account, kind: 'held_entries', expected: '0', found: '0.3' },
        { account_id: account, kind: 'hold_entries', ref: hold, expected: '0', found: '-0.3' },
        { account_id: account, kind: 'task_hold', ref: hold, expected: '0.3', found: '0' },
      ],
    ],
    [
      'a settled hold whose charge says something else',
      (sql) => sql`UPDATE holds SET charged = 1 WHERE ref = 'vid_settled'`,
      ({ account }) => [
        {
          account_id: account,
          kind: 'hold_entries',
          ref: 'vid_settled',
          expected: '-0.00000001',
          found: '-0.2',
        },
        {
          account_id: account,
          kind: 'task_hold',
          ref: 'vid_settled',
          expected: '0.2',
          found: '0.00000001',
        },
      ],
    ],
    [
      'a task that ended while its hold stays open',
      (sql, { hold }) => sql`UPDATE tasks SET state = 'failed', ended_at = 1 WHERE id = ${hold}`,
      ({ account, hold }) => [
        { account_id: account, kind: 'task_hold', ref: hold, expected: '0', found: '0.3' },
      ],
    ],
    [
      'a charge that is missing',
      (sql, { call }) => sql`DELETE FROM ledger_entries WHERE ref = ${call}`,
      ({ account, call }) => [
        { account_id: account, kind: 'balance', expected: '999.5', found: '999.451' },
        { account_id: account, kind: 'used', expected: '0.2', found: '0.249' },
        { account_id: account, kind: 'charge', ref: call, expected: '0.049', found: '0' },
      ],
    ],
    [
      'a charge of another amount',
      (sql, { call }) => sql`UPDATE usage_rows SET cost = 4900001 WHERE request_id = ${call}`,
      ({ account, call }) => [
        { account_id: account, kind: 'charge', ref: call, expected: '0.04900001', found: '0.049' },
      ],
    ],
    [
      'a call charged twice',
      async (sql, { account, call }) => {
        await dropIndexes(sql, 'ref_kind')
        await sql`
        INSERT INTO ledger_entries (account_id, kind, amount, ref) VALUES (${account}, 'charge', -4900000, ${call})`
      },
      ({ account, call }) => [
        { account_id: account, kind: 'balance', expected: '999.402', found: '999.451' },
        { account_id: account, kind: 'used', expected: '0.298', found: '0.249' },
        { account_id: account, kind: 'charge', ref: call, expected: '0.049', found: '0.098' },
      ],
    ],
    [
      'two calls of an account that have the sum of their charges, and not their amounts',
      async (sql, { account }, database) => {
        await database.bookings.book([settlement(account, { request_id: 'req_other' })])
        await sql`
        UPDATE usage_rows SET cost = cost + CASE request_id WHEN 'req_other' THEN -1 ELSE 1 END WHERE cost = 4900000`
      },
      ({ account, call }) => [
        { account_id: account, kind: 'charge', ref: call, expected: '0.04900001', found: '0.049' },
        { account_id: account, kind: 'charge', ref: 'req_other', expected: '0.04899999', found: '0.049' },
      ],
    ],
    [
      'a task with two rows and two charges',
      async (sql, { account }) => {
        await dropIndexes(sql, 'ref_kind')
        await sql`
        INSERT INTO usage_rows
        SELECT (jsonb_populate_record(u, '{"request_id":"req_other"}')).* FROM usage_rows AS u WHERE task_id = 'vid_settled'`
        await sql`
        INSERT INTO ledger_entries (account_id, kind, amount, ref) VALUES (${account}, 'charge', -20000000, 'vid_settled')`
      },
      ({ account }) => [
        { account_id: account, kind: 'balance', expected: '999.251', found: '999.451' },
        { account_id: account, kind: 'used', expected: '0.449', found: '0.249' },
        { account_id: account, kind: 'hold_entries', ref: 'vid_settled', expected: '-0.2', found: '-0.4' },
        { account_id: account, kind: 'charge', ref: /^req_0/, expected: '0.2', found: '0.4' },
        { account_id: account, kind: 'charge', ref: 'req_other', expected: '0.2', found: '0.4' },
      ],
    ],
    [
      'a charge without its call',
      (sql, { call }) => sql`DELETE FROM usage_rows WHERE request_id = ${call}`,
      ({ account, call }) => [
        { account_id: account, kind: 'call_missing', ref: call, expected: '0', found: '0.049' },
      ],
    ],
    [
      'a call that was charged to somebody else',
      (sql, { call }) => sql`UPDATE usage_rows SET account_id = 'acc_other' WHERE request_id = ${call}`,
      ({ account, call }) => [
        { account_id: 'acc_other', kind: 'charge', ref: call, expected: '0.049', found: '0' },
        { account_id: account, kind: 'call_missing', ref: call, expected: '0', found: '0.049' },
      ],
    ],
    [
      'a reference that counted twice',
      async (sql, { account }) => {
        await dropIndexes(sql, 'reference')
        await sql`
        INSERT INTO ledger_entries (account_id, kind, amount, reference)
        SELECT ${account}, 'topup', 100000000, 'invoice 17' FROM generate_series(1, 2)`
        await sql`UPDATE wallets SET balance = balance + 200000000`
      },
      ({ account }) => [
        { account_id: account, kind: 'reference', ref: 'invoice 17', expected: '1', found: '2' },
      ],
    ],
    [
      'a trial credit whose amount was changed, and the wallet with it',
      async (sql) => {
        await sql`UPDATE ledger_entries SET amount = amount + 1 WHERE kind = 'trial'`
        await sql`UPDATE wallets SET balance = balance + 1`
      },
      ({ account }) => [{ account_id: account, kind: 'credit_act', ref: '1', expected: '1', found: '0' }],
    ],
    [
      'a grant that says less was spent than the calls of its key cost',
      async (sql, { account }) => {
        await plantKey(sql, account)
        await sql`INSERT INTO grants (key_id, account_id, spend_cap, spent) VALUES (${KEY}, ${account}, 500000000, 1)`
      },
      ({ account }) => [
        { account_id: account, kind: 'grant_spent', ref: KEY, expected: '0.249', found: '0.00000001' },
      ],
    ],
    [
      'a budget that says more was spent in a period than its calls cost',
      async (sql, { account }) => {
        await sql`
        INSERT INTO budgets (id, account_id, scope, subject_id, amount, period, timezone, counts_from)
        VALUES (${BUDGET}, ${account}, 'account', ${account}, 500000000, 'day', 'Europe/Berlin', 0)`
        await sql`
        INSERT INTO budget_periods (budget_id, starts_at, spent)
        SELECT ${BUDGET}, period_start('day', 'Europe/Berlin', submitted_at), cost + (task_id IS NULL)::integer
        FROM usage_rows WHERE cost > 0`
      },
      ({ account }) => [
        {
          account_id: account,
          kind: 'budget_spent',
          ref: `${BUDGET} 2025-10-08T22:00:00.000Z`,
          expected: '0.049',
          found: '0.04900001',
        },
      ],
    ],
    [
      'an employee key without a grant',
      (sql, { account }) => plantKey(sql, account),
      ({ account }) => [{ account_id: account, kind: 'grant_missing', ref: KEY, expected: '1', found: '0' }],
    ],
    [
      'a request id with several rows',
      async (sql, { call }) => {
        const parts = await sql<{ name: string; key: string }[]>`
        SELECT conrelid::regclass::text AS name, conname AS key FROM pg_constraint
        WHERE conname LIKE 'usage_rows%request_id_key'`
        for (const { name, key } of parts) await sql`ALTER TABLE ${sql(name)} DROP CONSTRAINT ${sql(key)}`
        await sql`UPDATE usage_rows SET request_id = ${call}`
      },
      ({ account, call }) => [
        { account_id: account, kind: 'charge', ref: call, expected: '0', found: '0.049' },
        { account_id: account, kind: 'request_id', ref: call, expected: '1', found: '4' },
      ],
    ],
    [
      'a settlement that was refused',
      async (_sql, _planted, database) => {
        await database.bookings.book([settlement('acc_gone', { request_id: 'req_refused' })])
      },
      () => [
        {
          account_id: 'acc_gone',
          kind: 'settlement_unbooked',
          ref: 'req_refused',
          expected: '0',
          found: '1',
        },
      ],
    ],
    [
      'a settlement that is malformed, delivered twice',
      async (_sql, { account }, database) => {
        const line = JSON.stringify({ account_id: account, cost: 1e300, error_message: '\0\ud800' })
        for (let i = 0; i < 2; i++) await database.bookings.keepMalformed(line, 'cost: Invalid input\0')
      },
      ({ account }) => [
        { account_id: account, kind: 'settlement_unbooked', ref: MALFORMED, expected: '0', found: '1' },
      ],
    ],
    [
      'an account whose wallet is gone',
      (sql) => sql`DELETE FROM wallets`,
      ({ account }) => [
        { account_id: account, kind: 'wallet_missing', expected: '1', found: '0' },
        { account_id: account, kind: 'entries_without_wallet', expected: '0', found: '8' },
      ],
    ],
  ]

  for (const [what, plant, expected] of ERRORS) {
    t.test(what, async (t) => {
      const { database, sql } = await openFresh(t, engines)
      const planted = await populate(database)
      await sql`ALTER TABLE ledger_entries DISABLE TRIGGER ledger_entries_stay`
      await sql`ALTER TABLE usage_rows DISABLE TRIGGER usage_rows_stay`
      await plant(sql, planted, database)
      const report = await database.audits.verifyWallets()
      t.equal(report.ok, false)
      t.match(report.differences, expected(planted))
      t.equal(report.differences.length, expected(planted).length)
    })
  }
})

t.test('audit reads what was written since', async (t) => {
  // An incremental audit reads what was written since the last one without a difference; a full one reads everything.
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
})
