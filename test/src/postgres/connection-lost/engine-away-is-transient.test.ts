import t from 'tap'
import { isAway, isBadData, isTransient } from '../../../../src/postgres/errors.ts'
import { newAccount, settlement, startDatabase } from '../support.ts'
import { newVideo } from '../tasks/support.ts'

const { database, engines, sql } = await startDatabase(t)

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => t.fail('it must fail'),
    (error: unknown) => error,
  )

t.test('every call says that another try may do, and does once the engine is back', async (t) => {
  const account = await newAccount(database)
  const batch = [settlement(account, { cost: '7' })]
  const hash = database.keys.lookupHash('any')
  const task = newVideo(account, { hold: 1n })
  await engines.stopEngine('postgres')
  const attempts: Record<string, () => Promise<unknown>> = {
    ping: () => database.ping(),
    findCredential: () => database.keys.findCredential(hash),
    readWallets: () => database.wallets.read([account]),
    bookSettlements: () => database.bookings.book(batch),
    readBooked: () => database.bookings.readBooked([], [account]),
    claimCopyRange: () => database.callCopy.claimRange(),
    createTask: () => database.tasks.create(task),
    reserveWallet: () =>
      database.reservations.reserveWallet({ accountId: account, requestId: 'req_1', amount: 1n }),
  }
  for (const [name, attempt] of Object.entries(attempts)) {
    const error = await failureOf(attempt())
    t.ok(isTransient(error) && isAway(error), name)
  }
  await engines.startEngine('postgres')
  for (const [name, attempt] of Object.entries(attempts)) {
    let failures = 0
    // A connection that broke meanwhile may fail once more; a lasting failure fails here.
    for (; failures < 50; failures++) {
      const error = await attempt().then(
        () => null,
        (reason: unknown) => reason,
      )
      if (error === null) break
      t.ok(isTransient(error), name)
    }
    t.ok(failures < 50, name)
  }
  t.match((await database.wallets.read([account]))[0], { used: 7n, held: 1n })
  t.match(await database.audits.verifyWallets(), { ok: true })
})

t.test('a killed engine loses nothing that it answered for', async (t) => {
  const account = await newAccount(database)
  const batches = Array.from({ length: 40 }, () => [
    settlement(account, { cost: '1' }),
    settlement(account, { cost: '2' }),
  ])
  let isKilled = false
  for (const [index, batch] of batches.entries()) {
    if (index === 20) {
      engines.killEngine('postgres')
      isKilled = true
    }
    for (let tries = 0; ; tries++) {
      try {
        await database.bookings.book(batch)
        break
      } catch (error) {
        t.ok(isTransient(error), String(error))
        if (tries === 200) throw error
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  }
  t.ok(isKilled)
  t.match((await database.wallets.read([account]))[0], { used: 120n })
  t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
})

t.test('what will fail the same way next time is not transient', async (t) => {
  const bad = await failureOf(sql`SELECT 'x'::text::int`)
  t.same([isTransient(bad), isBadData(bad)], [false, true])
  const wrong = await failureOf(sql`SELECT FROM no_such_table`)
  t.same([isTransient(wrong), isBadData(wrong)], [false, false])
  t.same([isAway(bad), isAway(wrong), isAway(new Error('any'))], [false, false, false])
  t.same([isTransient(new Error('any')), isTransient(null), isBadData(undefined)], [false, false, false])
})

t.test('a deadlock and a statement cut short are transient', async (t) => {
  const [one = '', two = ''] = [await newAccount(database), await newAccount(database)]
  const touch = (first: string, second: string, met: () => Promise<void>) =>
    sql.begin(async (transaction) => {
      await transaction`UPDATE wallets SET balance = balance WHERE account_id = ${first}`
      await met()
      await transaction`UPDATE wallets SET balance = balance WHERE account_id = ${second}`
    })
  let waiting: (() => void) | null = null
  const met = () =>
    new Promise<void>((resolve) => {
      if (waiting === null) {
        waiting = resolve
        return
      }
      waiting()
      resolve()
    })
  const outcomes = await Promise.allSettled([touch(one, two, met), touch(two, one, met)])
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  t.match(failed?.reason, { code: '40P01' })
  t.ok(isTransient(failed?.reason))
  t.notOk(isAway(failed?.reason), 'it answers')
  const cut = await failureOf(
    sql.begin(async (transaction) => {
      await transaction`SET LOCAL statement_timeout = 20`
      await transaction`SELECT pg_sleep(5)`
    }),
  )
  t.ok(isTransient(cut))
})
