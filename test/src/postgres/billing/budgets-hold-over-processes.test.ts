/** Budgets hold over all processes, at their boundaries and for calls across them. See docs/api-rules.md, "Budgets". */
import t, { type Test } from 'tap'
import type { Budget, BudgetPeriod } from '../../../../schemas/accounts/budget.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import { CAP_RESERVATION_MINUTES } from '../../../../src/postgres/billing/caps.ts'
import { newAccount, settlement, startDatabase } from '../support.ts'
import { created, giveBack, newVideo, settle } from '../tasks/support.ts'

const { database, sql, openAnother } = await startDatabase(t)
const other = await openAnother()
const BERLIN = 'Europe/Berlin'

interface Wanted {
  readonly amount: bigint
  readonly period?: BudgetPeriod
  readonly timezone?: string
  readonly of?: Pick<Budget, 'scope' | 'subjectId'>
}

async function newKey(kind: 'console' | 'employee' = 'console') {
  const accountId = await newAccount(database, 1_000_000n)
  const { key } = await database.keys.create({ accountId, name: 'limited', kind })
  return { accountId, keyId: key.id }
}

const put = (accountId: string, { amount, period = 'day', timezone = 'UTC', of }: Wanted, by = database) =>
  by.budgets.put({
    accountId,
    amount,
    period,
    timezone,
    ...(of ?? { scope: 'account', subjectId: accountId }),
  })

interface Call {
  readonly amount: bigint
  readonly at?: number
  readonly requestId?: string
}

const ask = (keyId: string, { amount, at = Date.now(), requestId = newId('req') }: Call, by = database) =>
  by.reservations.reserveSpend({ keyId, requestId, amount, submittedAt: at })

const isAdmitted = async (...asked: Parameters<typeof ask>) => (await ask(...asked)) === null

const book = (accountId: string, keyId: string, cost: bigint, more: Parameters<typeof settlement>[1] = {}) =>
  database.bookings.book([
    settlement(accountId, { key_id: keyId, cost: String(cost), submitted_at: Date.now(), ...more }),
  ])

const stateOf = async (accountId: string) => (await database.budgets.list(accountId))[0]!

const assertBooksAgree = async (t: Test) => t.same((await database.audits.verifyWallets()).differences, [])

t.test('of many that ask at once in two processes, those get it whom the budget covers', async (t) => {
  const { accountId, keyId } = await newKey()
  const { budget, resetsAt } = await put(accountId, { amount: 50n })
  const asked = Array.from({ length: 40 }, (_, at) => ask(keyId, { amount: 10n }, [database, other][at % 2]!))
  const refusals = (await Promise.all(asked)).filter((refusal) => refusal !== null)
  t.equal(refusals.length, 35)
  t.same(refusals[0], { by: 'budget', budget, resetsAt }, 'the refusal names the budget and when it resets')
  t.match(await stateOf(accountId), { spent: 0n, reserved: 50n })
})

t.test('keys of an account share its budget, and each keeps its own', async (t) => {
  const { accountId, keyId } = await newKey()
  const second = (await database.keys.create({ accountId, name: 'second' })).key.id
  await put(accountId, { amount: 50n })
  await put(accountId, { amount: 20n, of: { scope: 'key', subjectId: keyId } })
  t.match(await ask(keyId, { amount: 21n }), { budget: { scope: 'key' } })
  t.ok(await isAdmitted(keyId, { amount: 20n }))
  t.ok(await isAdmitted(second, { amount: 30n }))
  t.match(await ask(second, { amount: 1n }), { budget: { scope: 'account' } })
  const stranger = await newKey()
  t.ok(await isAdmitted(stranger.keyId, { amount: 1_000n }), 'another account is not limited')
  const [row] = await sql`SELECT FROM cap_reservations WHERE account_id = ${stranger.accountId}`
  t.equal(row, undefined, 'and reserves nothing')
})

t.test('of two budgets that leave too little, the one that resets last is named', async (t) => {
  const { accountId, keyId } = await newKey()
  for (const period of ['month', 'day', 'week'] as const) await put(accountId, { amount: 10n, period })
  const refusal = await ask(keyId, { amount: 11n })
  const budgets = await database.budgets.list(accountId)
  t.equal(refusal?.by === 'budget' && refusal.resetsAt, Math.max(...budgets.map(({ resetsAt }) => resetsAt)))
})

t.test('the cap of a key and its budget are reserved together or not at all', async (t) => {
  const accountId = await newAccount(database)
  const { key } = await database.keys.create({ accountId, name: 'both', kind: 'employee', spendCap: 30n })
  await put(accountId, { amount: 20n })
  t.match(await ask(key.id, { amount: 25n }), { by: 'budget' })
  t.same(await ask(key.id, { amount: 31n }), { by: 'spend_cap' })
  t.ok(await isAdmitted(key.id, { amount: 20n }), 'what was refused reserved nothing in either')
})

t.test('all keys of a member count together, those of others do not', async (t) => {
  const organization = await database.accounts.create({ name: 'Acme', kind: 'organization', credit: 1_000n })
  const accountId = organization.account.id
  const [admin, ann, bob] = await Promise.all(
    ['Adam', 'Ann', 'Bob'].map(
      async (name) => (await database.accounts.create({ name, credit: 0n })).account.id,
    ),
  )
  await database.organizations.putMember(accountId, admin!, 'admin')
  const issue = async (memberId: string) => {
    await database.organizations.putMember(accountId, memberId, 'member')
    const { id } = await database.keyRequests.create({ organizationId: accountId, memberId, name: 'desk' })
    return (await database.keyRequests.approve({ requestId: id, by: admin!, spendCap: 1_000n })).key.id
  }
  const [first, second, foreign] = [await issue(ann!), await issue(ann!), await issue(bob!)]
  await put(accountId, { amount: 50n, of: { scope: 'member', subjectId: ann! } })
  t.ok(await isAdmitted(first, { amount: 30n }))
  t.match(await ask(second, { amount: 30n }), { by: 'budget', budget: { scope: 'member' } })
  t.ok(await isAdmitted(second, { amount: 20n }))
  t.ok(await isAdmitted(foreign, { amount: 100n }))
  await book(accountId, first, 7n)
  await book(accountId, foreign, 9n)
  t.match(await stateOf(accountId), { name: 'Ann', spent: 7n, reserved: 50n })
  await t.rejects(put(accountId, { amount: 1n, of: { scope: 'member', subjectId: newId('acc') } }), {
    code: 'member_not_found',
  })
  await t.rejects(put(accountId, { amount: 1n, of: { scope: 'key', subjectId: (await newKey()).keyId } }), {
    code: 'key_not_found',
  })
  await assertBooksAgree(t)
})

t.test('a call counts in the period of its admission, whenever it ends', async (t) => {
  const { accountId, keyId } = await newKey()
  const { startsAt: midnight } = await put(accountId, { amount: 50n, timezone: BERLIN })
  await sql`UPDATE budgets SET counts_from = 0 WHERE account_id = ${accountId}`
  const yesterday = midnight - 1
  const [late, early] = [newId('req'), newId('req')]
  t.ok(await isAdmitted(keyId, { amount: 40n, at: yesterday, requestId: late }))
  t.match(await ask(keyId, { amount: 20n, at: yesterday }), { resetsAt: midnight })
  t.ok(await isAdmitted(keyId, { amount: 45n, at: midnight, requestId: early }), 'the new day has all of it')
  t.match(await ask(keyId, { amount: 10n, at: midnight }, other), { by: 'budget' })
  await book(accountId, keyId, 40n, {
    request_id: late,
    submitted_at: yesterday,
    created_at: midnight + 5_000,
  })
  t.match(await stateOf(accountId), { spent: 0n, reserved: 45n }, 'booked after midnight, spent before')
  await book(accountId, keyId, 45n, { request_id: early, submitted_at: midnight })
  t.match(await stateOf(accountId), { spent: 45n, reserved: 0n })
  t.notOk(await isAdmitted(keyId, { amount: 11n, at: yesterday }), 'the old day stays as full as it was')
  await assertBooksAgree(t)
})

t.test('a booking spends what was reserved, once, and its notification has what is left', async (t) => {
  const { accountId, keyId } = await newKey()
  const { budget, startsAt } = await put(accountId, { amount: 50n })
  const requestId = newId('req')
  t.ok(await isAdmitted(keyId, { amount: 30n, requestId }))
  t.ok(await isAdmitted(keyId, { amount: 30n, requestId }, other), 'a request reserves once')
  const ended = { request_id: requestId, submitted_at: Date.now() }
  const { wallets } = await book(accountId, keyId, 20n, ended)
  t.match(
    wallets.find(({ accountId: id }) => id === `${budget.id}@${startsAt}`),
    { balance: 30n, used: 20n },
  )
  t.same((await book(accountId, keyId, 20n, ended)).wallets, [], 'a second delivery changes nothing')
  t.match(await stateOf(accountId), { spent: 20n, reserved: 0n })
  const [period] = await database.wallets.read([budget.id])
  t.match(period, { balance: 30n, used: 20n })
  t.match((await database.bookings.readBooked([], [accountId])).wallets.at(-1), {
    accountId: period!.accountId,
    used: 20n,
  })
  const free = newId('req')
  t.ok(await isAdmitted(keyId, { amount: 30n, requestId: free }))
  await book(accountId, keyId, 0n, { request_id: free, status: 'interrupted' })
  t.match(
    await stateOf(accountId),
    { spent: 20n, reserved: 0n },
    'a call at no charge frees what it reserved',
  )
  await assertBooksAgree(t)
})

t.test('a budget made in mid-period counts what was spent in the period before', async (t) => {
  const { accountId, keyId } = await newKey()
  const second = (await database.keys.create({ accountId, name: 'second' })).key.id
  const now = Date.now()
  await book(accountId, keyId, 20n, { submitted_at: now })
  await book(accountId, second, 9n, { submitted_at: now })
  await book(accountId, keyId, 500n, { submitted_at: now - 40 * 86_400_000 })
  t.match(await put(accountId, { amount: 50n, period: 'month' }), { spent: 29n })
  t.match(await put(accountId, { amount: 50n, period: 'month', of: { scope: 'key', subjectId: keyId } }), {
    spent: 20n,
  })
  t.notOk(await isAdmitted(keyId, { amount: 25n }))
  t.ok(await isAdmitted(keyId, { amount: 21n }))
  await book(accountId, keyId, 7n, { submitted_at: now - 40 * 86_400_000 })
  await assertBooksAgree(t)
})

t.test('a budget that is made while calls are booked counts each once', async (t) => {
  const { accountId, keyId } = await newKey()
  const booked = Array.from({ length: 40 }, () => book(accountId, keyId, 1n))
  const made = Array.from({ length: 4 }, (_, at) =>
    put(accountId, { amount: 1_000n, timezone: at % 2 === 0 ? 'UTC' : BERLIN }, [database, other][at % 2]!),
  )
  await Promise.all([...booked, ...made])
  t.match(await stateOf(accountId), { spent: 40n })
  await assertBooksAgree(t)
})

t.test('a budget that is raised, lowered, moved to another zone or deleted holds from then on', async (t) => {
  const { accountId, keyId } = await newKey()
  const { budget } = await put(accountId, { amount: 50n })
  const open = newId('req')
  t.ok(await isAdmitted(keyId, { amount: 40n, requestId: open }))
  t.notOk(await isAdmitted(keyId, { amount: 20n }))
  t.match(await put(accountId, { amount: 60n }), { budget: { id: budget.id, amount: 60n }, reserved: 40n })
  t.ok(await isAdmitted(keyId, { amount: 20n }, other))
  await put(accountId, { amount: 10n })
  t.notOk(await isAdmitted(keyId, { amount: 1n }), 'calls under way fill it')
  await book(accountId, keyId, 35n, { request_id: open })
  t.match(await stateOf(accountId), { spent: 35n, reserved: 20n }, 'what was admitted is not taken back')
  t.match(await put(accountId, { amount: 100n, timezone: 'asia/kolkata' }), {
    budget: { id: budget.id, timezone: 'Asia/Kolkata' },
  })
  await assertBooksAgree(t)
  await database.budgets.delete(budget.id)
  await t.rejects(database.budgets.delete(budget.id), { code: 'budget_not_found' })
  t.ok(await isAdmitted(keyId, { amount: 1_000n }))
  await book(accountId, keyId, 5n)
  t.same(await database.budgets.list(accountId), [])
  await t.rejects(put(accountId, { amount: 1n, timezone: 'Nowhere/City' }), { code: 'timezone_unknown' })
  await assertBooksAgree(t)
})

t.test('a call that is booked while its account has no budget leaves no reservation', async (t) => {
  const { accountId, keyId } = await newKey()
  const open = newId('req')
  const { budget } = await put(accountId, { amount: 100n })
  t.ok(await isAdmitted(keyId, { amount: 40n, requestId: open }))
  await database.budgets.delete(budget.id)
  await database.reservations.shrink(open, 40n)
  await book(accountId, keyId, 40n, { request_id: open })
  t.match(await put(accountId, { amount: 100n }), { spent: 40n, reserved: 0n })
  t.ok(await isAdmitted(keyId, { amount: 60n }))
  await assertBooksAgree(t)
})

t.test('what a process left behind that died is free again in time', async (t) => {
  const { accountId, keyId } = await newKey()
  await put(accountId, { amount: 50n })
  t.ok(await isAdmitted(keyId, { amount: 50n }))
  await sql`
    UPDATE cap_reservations SET expires_at = expires_at - make_interval(mins => ${CAP_RESERVATION_MINUTES})
    WHERE account_id = ${accountId}`
  t.match(await stateOf(accountId), { reserved: 0n })
  t.ok(await isAdmitted(keyId, { amount: 50n }, other))
})

t.test('a task reserves its hold in the period of its order until it ends', async (t) => {
  const { accountId, keyId } = await newKey()
  const { budget, startsAt } = await put(accountId, { amount: 1_000n })
  const order = (hold: bigint) => database.tasks.create(newVideo(accountId, { keyId, hold }))
  const made = (hold: bigint) => created(database, newVideo(accountId, { keyId, hold }))
  const [first, second] = [await made(600n), await made(300n)]
  t.match(await order(200n), { outcome: 'over_limit', refusal: { budget: { id: budget.id } } })
  t.match(await stateOf(accountId), { reserved: 900n })
  await settle(database, first, 450n)
  await giveBack(database, second, 'failed')
  t.match(await stateOf(accountId), { spent: 450n, reserved: 0n, startsAt })
  await assertBooksAgree(t)
})

t.test('each threshold is an event once in a period', async (t) => {
  const { accountId, keyId } = await newKey()
  const { budget, startsAt } = await put(accountId, { amount: 100n })
  await sql`UPDATE budgets SET counts_from = 0 WHERE account_id = ${accountId}`
  const percents = async () =>
    (
      await sql<{ percent: number }[]>`
        SELECT (data ->> 'percent')::integer AS percent FROM events
        WHERE account_id = ${accountId} AND type = 'budget.threshold' ORDER BY created_at, 1`
    ).map(({ percent }) => percent)
  await book(accountId, keyId, 49n)
  t.same(await percents(), [])
  await Promise.all(Array.from({ length: 10 }, () => book(accountId, keyId, 1n)))
  t.same(await percents(), [50])
  await book(accountId, keyId, 60n)
  t.same(await percents(), [50, 80, 100], 'one booking may cross several')
  await put(accountId, { amount: 1_000n })
  await book(accountId, keyId, 900n)
  t.same(await percents(), [50, 80, 100], 'a raised budget repeats none in the same period')
  await book(accountId, keyId, 500n, { submitted_at: startsAt - 1 })
  t.same(await percents(), [50, 80, 100, 50], 'another period has its own')
  const [event] = await sql<[{ subject_id: string; data: object }]>`
    SELECT subject_id, data FROM events WHERE account_id = ${accountId} ORDER BY created_at LIMIT 1`
  t.match(event, {
    subject_id: budget.id,
    data: {
      budget_id: budget.id,
      scope: 'account',
      subject_id: accountId,
      percent: 50,
      amount: '0.000001',
      period: 'day',
      timezone: 'UTC',
      period_start: new Date(startsAt).toISOString(),
    },
  })
  const { accountId: filled, keyId: spender } = await newKey()
  await book(filled, spender, 90n)
  await put(filled, { amount: 100n })
  const [made] = await sql<[{ count: bigint }]>`SELECT count(*) FROM events WHERE account_id = ${filled}`
  t.equal(made.count, 2n, 'a budget that is made nearly spent says so')
})

t.test('changes are in the audit record, with amounts in credits', async (t) => {
  const { accountId } = await newKey()
  await put(accountId, { amount: 150_000_000n })
  await put(accountId, { amount: 250_000_000n })
  await database.budgets.delete((await stateOf(accountId)).budget.id)
  const entries = await database.auditRecord.list({ accountId, action: 'budget.', limit: 10 })
  t.match(entries, [
    { action: 'budget.delete', before: { amount: '2.5', period: 'day' } },
    { action: 'budget.update', before: { amount: '1.5' }, after: { amount: '2.5' } },
    { action: 'budget.create', after: { amount: '1.5', scope: 'account', timezone: 'UTC' } },
  ])
  t.notOk(entries.some(({ after }) => Object.hasOwn(after ?? {}, 'counts_from')))
})

t.test('calls, tasks, bookings and changes of budgets at once end without deadlock', async (t) => {
  const { accountId, keyId } = await newKey('employee')
  await database.keys.update(keyId, { spendCap: 1_000_000n })
  const of = { scope: 'key', subjectId: keyId } as const
  await put(accountId, { amount: 1_000_000n })
  const work = Array.from({ length: 48 }, async (_, at) => {
    const by = [database, other][at % 2]!
    if (at % 4 === 0) {
      const made = await by.tasks.create(newVideo(accountId, { keyId, hold: 100n }))
      if (made.outcome === 'created') await settle(by, made.task, 60n)
    } else if (at % 4 === 1) {
      await put(accountId, { amount: BigInt(1_000_000 + at), period: at % 8 === 1 ? 'week' : 'day', of }, by)
    } else {
      const requestId = newId('req')
      t.ok(await isAdmitted(keyId, { amount: 50n, requestId }, by))
      await by.reservations.shrink(requestId, 40n)
      await book(accountId, keyId, 40n, { request_id: requestId })
    }
  })
  await Promise.all(work)
  for (const { spent, reserved } of await database.budgets.list(accountId))
    t.same([spent, reserved], [12n * 60n + 24n * 40n, 0n])
  await assertBooksAgree(t)
})
