/** The partitions of months: rows find theirs, and totals stay exact when old ones go. */
import t from 'tap'
import { mediaJob } from '../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { connect, type Sql } from '../../../src/postgres/connection.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { LOCKS } from '../../../src/postgres/locks.ts'
import { makePartitions } from '../../../src/postgres/partitions/make.ts'
import type { Retention } from '../../../src/postgres/partitions/retire.ts'
import { eventually, until } from '../../support/eventually.ts'
import { makeOld, unguarded } from './partition-support.ts'
import { newAccount, openFresh, settlement, sharePostgres } from './support.ts'
import { created, giveBack, hold, newVideo, settle } from './tasks/support.ts'

const engines = await sharePostgres()

t.test('rows find the partition of their month', async (t) => {
  // Partitions are made ahead of time; a row of a month that has none is booked all the same, once.
  const { database, openAnother, sql, serviceUrl } = await openFresh(t, engines)
  const service = connect(serviceUrl, { max: 1, name: 'test of the role' })
  t.teardown(() => service.end({ timeout: 1 }))
  const MONTHS_AHEAD = 3

  const monthsFrom = (later: number): number => {
    const now = new Date()
    return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + later, 15)
  }
  const partitionOf = async (requestId: string): Promise<string[]> => {
    const rows = await sql<{ name: string }[]>`
    SELECT tableoid::regclass::text AS name FROM usage_rows WHERE request_id = ${requestId}`
    return rows.map(({ name }) => name)
  }
  const nameOf = (epochMs: number): string =>
    `usage_rows_${new Date(epochMs).toISOString().slice(0, 7).replace('-', '_')}`

  t.test('this month and the next three have partitions', async (t) => {
    const account = await newAccount(database)
    for (let later = 0; later <= MONTHS_AHEAD; later++) {
      const call = settlement(account, { submitted_at: monthsFrom(later) })
      await database.bookings.book([call])
      t.same(await partitionOf(call.request_id), [nameOf(monthsFrom(later))])
    }
    t.same(await makePartitions(sql), [], 'none is missing')
  })

  t.test('a row of a month without a partition is booked, and moves to it later', async (t) => {
    const account = await newAccount(database)
    const at = monthsFrom(MONTHS_AHEAD + 2)
    const call = settlement(account, { submitted_at: at })
    t.same((await database.bookings.book([call])).booked, [call.request_id])
    t.same(await partitionOf(call.request_id), ['usage_rows_default'])
    const made: string[] = []
    const makers = [sql, service].map(async (on) => {
      for (;;) {
        const [row] = await on<
          [{ name: string | null }]
        >`SELECT make_next_partition(${MONTHS_AHEAD + 2}) AS name`.catch((error: { code?: string }) => {
          if (error.code === '55P03') return [{ name: '' }] as const
          throw error
        })
        if (row.name === null) return
        if (row.name !== '') made.push(row.name)
      }
    })
    await Promise.all(makers)
    t.equal(new Set(made).size, made.length, 'two makers make each once')
    t.equal(made.length, 8, 'two months of four tables')
    t.same(await partitionOf(call.request_id), [nameOf(at)])
    t.same((await database.bookings.book([call])).booked, [], 'it stays booked once')
    t.match(await database.audits.verifyWallets(), { ok: true })
  })

  t.test('the service reads and writes partitions through their table alone', async (t) => {
    const DENIED = { code: '42501' }
    const partition = nameOf(Date.now())
    await t.rejects(service`INSERT INTO ${service(partition)} SELECT * FROM ${service(partition)}`, DENIED)
    await t.rejects(service`DELETE FROM ${service(partition)}`, DENIED)
    await t.rejects(sql`DELETE FROM ${sql(partition)}`, /only ever added/, 'nor does the owner by mistake')
  })

  t.test('bookers of many processes book a call of any month once', async (t) => {
    const account = await newAccount(database)
    const calls = [-30, 0, MONTHS_AHEAD, 40].map((later) =>
      settlement(account, { submitted_at: monthsFrom(later) }),
    )
    const others = await Promise.all([openAnother(), openAnother()])
    const bookings = await Promise.all([database, ...others].map((booker) => booker.bookings.book(calls)))
    t.same(bookings.flatMap(({ booked }) => booked).sort(), calls.map(({ request_id }) => request_id).sort())
  })
})

t.test('retired months leave totals exact', async (t) => {
  // Retention takes months away, and what replaces them keeps every total and every finding of the audit.
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
    await database.bookings.book(old)
    await settle(database, await hold(database, one, 50_000_000n, 'vid_settled'), 20_000_000n)
    await giveBack(database, await hold(database, other, 50_000_000n, 'vid_refunded'), 'failed')
    await database.wallets.topUp(one, 500n * ONE_CREDIT, { reference: 'invoice 1' })
    await database.wallets.refund(one, old[0]!.request_id, { amount: null, reason: 'empty' })
    await makeOld(sql)
    await database.bookings.book([recent(one), recent(other, { cost: '0', status: 'rejected' })])
    return { one, other, old: old[0]! }
  }

  t.test('what months are gone changes no total, and no finding', async (t) => {
    const { database, sql } = await openFresh(t, engines)
    const { one, old } = await populate(database, sql)
    t.match(await database.audits.verifyWallets(), { ok: true })
    const before = await totalsOf(sql)
    const { retired, waiting } = await database.partitions.retire(DROP)
    t.same(waiting, [])
    t.same(retired.map(({ name }) => name).sort(), PAST)
    t.match(await database.audits.verifyWallets(), { ok: true }, 'exact without the old months')
    t.same(await totalsOf(sql), before)
    t.same(await database.partitions.retire(DROP), { retired: [], waiting: [] }, 'once')
    const [closing] = await sql`SELECT balance, used, held FROM closing_balances WHERE account_id = ${one}`
    t.match(closing, { held: 0n, used: 24_900_700n })
    const [calls] = await sql`SELECT sum(row_count) AS rows, sum(cost) AS cost FROM closing_usage`
    t.match({ ...calls }, { rows: '5', cost: '29800700' })

    await t.test('credits stay, and a reference counts once for ever', async (t) => {
      const kinds = (await database.wallets.readLedger(one, { before: null, limit: 50 })).map(
        ({ kind }) => kind,
      )
      t.same(kinds, ['charge', 'adjustment', 'topup', 'trial'])
      t.ok((await database.wallets.topUp(one, 500n * ONE_CREDIT, { reference: 'invoice 1' })).isRepeated)
      t.ok((await database.wallets.refund(one, old.request_id, { amount: null, reason: 'again' })).isRepeated)
      await t.rejects(
        database.wallets.refund(one, oldId(), { amount: null, reason: 'late' }),
        /taken away by retention/,
      )
      t.match(await database.audits.verifyWallets(), { ok: true })
    })

    await t.test('a changed balance is found, and a changed closing balance', async (t) => {
      for (const table of ['wallets', 'closing_balances']) {
        await sql`UPDATE ${sql(table)} SET balance = balance + 1 WHERE account_id = ${one}`
        const { differences } = await database.audits.verifyWallets()
        t.match(differences, [{ kind: 'balance', account_id: one }], table)
        await sql`UPDATE ${sql(table)} SET balance = balance - 1 WHERE account_id = ${one}`
      }
      t.match(await database.audits.verifyWallets(), { ok: true })
    })

    await t.test('a call of such a month is refused, and kept for a person to decide', async (t) => {
      const late = { ...old, submitted_at: old.submitted_at - 8 * 31 * 86_400_000 }
      const wallets = await totalsOf(sql)
      const { booked, refused } = await database.bookings.book([late])
      t.same({ booked: booked.length, refused }, { booked: 0, refused: [late.request_id] })
      t.match(
        (await database.calls.find(late.request_id)).refused?.reason,
        /retention has taken away the calls/,
      )
      t.same(await totalsOf(sql), wallets)
    })
  })

  t.test('voices and avatars that are ready stay with their customer', async (t) => {
    const { database, sql } = await openFresh(t, engines)
    const { one: accountId } = await populate(database, sql)
    const make = async (kind: 'voice' | 'avatar') => {
      const job =
        kind === 'voice'
          ? { work: kind, name: 'Ann', audio: { from: 'url', url: 'https://example.com/ann.wav' } }
          : {
              work: kind,
              name: 'Bob',
              source: { from: 'url', url: 'https://example.com/bob.png' },
              source_kind: 'image',
            }
      const id = newId(kind === 'voice' ? 'voi' : 'ava', Date.now() - 8 * 31 * 86_400_000)
      return created(database, newVideo(accountId, { id, kind, job: mediaJob.parse(job) }))
    }
    const ready = async (kind: 'voice' | 'avatar') => {
      const task = await make(kind)
      await settle(database, task, 100n)
      return task.id
    }
    const voice = await ready('voice')
    const avatar = await ready('avatar')
    const [deleted, leaving] = [await ready('voice'), await ready('voice')]
    await giveBack(database, await make('avatar'), 'failed')
    await database.tasks.deleteRecord(accountId, 'voice', deleted, Date.now())
    await makeOld(sql)
    const [before] = await sql`SELECT * FROM tasks WHERE id = ${voice}`
    const idsOf = async () => (await sql`SELECT id FROM tasks ORDER BY id`).map(({ id }) => id)
    const retire = () => database.partitions.retire({ ...DROP, months: { ...NONE, tasks: 2 } })

    // A booking makes the retirement wait when it has chosen what stays.
    const booking = await sql.reserve()
    await booking`SELECT pg_advisory_lock(${LOCKS.booking})`
    const retirement = retire()
    await eventually('the retirement waits', async () => {
      const [row] = await sql`
      SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = ${LOCKS.booking} AND NOT granted`
      return row
    })
    let isDeleted = false
    const deletion = database.tasks.deleteRecord(accountId, 'voice', leaving, Date.now()).finally(() => {
      isDeleted = true
    })
    await until('the deletion is over, or waits', async () => {
      const [row] = await sql`
        SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event <> 'advisory'
          AND datname = current_database()`
      return isDeleted || row !== undefined
    })
    await booking`SELECT pg_advisory_unlock(${LOCKS.booking})`
    booking.release()
    t.match(await retirement, { retired: [{ name: 'tasks_past', rows: 7n }], waiting: { length: 0 } })
    t.ok(await deletion)
    t.same(await idsOf(), [avatar, voice].sort(), 'one that was deleted meanwhile is gone')
    t.match((await sql`SELECT * FROM tasks WHERE id = ${voice}`)[0], before)
    t.equal((await database.tasks.find(accountId, 'avatar', avatar))?.id, avatar)
    t.equal((await database.tasks.list({ accountId, kind: 'voice', states: null, limit: 5 })).tasks.length, 1)
    t.match(await database.audits.verifyWallets(undefined, { isIncremental: false }), { ok: true })

    t.same(await retire(), { retired: [], waiting: [] }, 'what stays is not retired again')
    const later = await ready('voice')
    const [bounds] = await sql<[{ from: string; to: string }]>`
    WITH made AS (
      INSERT INTO partitions (name, table_name, starts_at, ends_at)
      SELECT 'tasks_later', 'tasks', months_later(month, -4), months_later(month, -3)
      FROM date_trunc('month', now(), 'UTC') AS month RETURNING *)
    SELECT partition_bound('tasks', starts_at) AS from, partition_bound('tasks', ends_at) AS to,
      make_partition_table('tasks', name) FROM made`
    await sql.unsafe(
      `ALTER TABLE tasks ATTACH PARTITION tasks_later FOR VALUES FROM (${bounds.from}) TO (${bounds.to})`,
    )
    await sql`UPDATE tasks SET submitted_at = ${bounds.from}::bigint WHERE id = ${later}`
    t.match(await retire(), { retired: [{ name: 'tasks_later', rows: 1n }] }, 'the next month')
    t.same(await idsOf(), [avatar, voice, later].sort())
    t.ok(await database.tasks.deleteRecord(accountId, 'voice', voice, Date.now()))
    t.equal(await database.tasks.find(accountId, 'voice', voice), null)
    await database.partitions.retire(DROP)
    t.match(await database.audits.verifyWallets(undefined, { isIncremental: false }), { ok: true })
  })

  t.test('nothing is taken away while the books differ', async (t) => {
    const { database, sql } = await openFresh(t, engines)
    const { one } = await populate(database, sql)
    await sql`UPDATE wallets SET balance = balance + 1 WHERE account_id = ${one}`
    const { retired, waiting } = await database.partitions.retire(DROP)
    t.equal(retired.length, 0)
    t.same(waiting.map(({ name }) => name).sort(), PAST)
    t.ok(waiting.every(({ reason }) => reason.includes('the books differ')))
  })

  t.test('everything is read before, unless an audit of everything has on the day before', async (t) => {
    const { database, sql } = await openFresh(t, engines)
    const { old } = await populate(database, sql)
    t.match(await database.audits.verifyWallets(), { ok: true })
    await unguarded(
      sql,
      () => sql`UPDATE usage_rows SET cost = cost + 1 WHERE request_id = ${old.request_id}`,
    )
    await sql`UPDATE verified SET full_at = now() - interval '25 hours'`
    const { waiting } = await database.partitions.retire(DROP)
    t.match(waiting[0], { reason: /the books differ/ }, 'a changed row of before is found')
    await sql`UPDATE verified SET full_at = now()`
    const { retired } = await database.partitions.retire(DROP)
    t.same(retired.map(({ name }) => name).sort(), PAST, 'what was audited is not read again')
  })

  t.test('a month waits for its open tasks and the call log; a detached one stays as a table', async (t) => {
    const { database, sql } = await openFresh(t, engines)
    const { one } = await populate(database, sql)
    const open = await hold(database, one, 30_000_000n, 'vid_open')
    await unguarded(sql, () => sql`UPDATE tasks SET submitted_at = 0 WHERE id = 'vid_open'`)
    await sql`UPDATE usage_copy SET copied_upto = 0`
    const detach = (only: Partial<typeof months>) =>
      database.partitions.retire({ months: { ...NONE, ...only }, detaches: true })
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
    t.match(
      await database.audits.verifyWallets(),
      { ok: true },
      'the ledger is kept for longer than the calls',
    )
    t.match(
      (await database.partitions.list()).filter(({ state }) => state !== 'attached'),
      [{ name: 'usage_rows_past', state: 'detached', rows: 5n }],
    )
  })
})
