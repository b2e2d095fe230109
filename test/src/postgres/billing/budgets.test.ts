/** Budgets of accounts, members and keys: their periods, and that they hold. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { BUDGET_PERIODS, type Budget, type BudgetPeriod } from '../../../../schemas/accounts/budget.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import { CAP_RESERVATION_MINUTES } from '../../../../src/postgres/billing/caps.ts'
import { newAccount, openFresh, settlement, sharePostgres } from '../support.ts'
import { created, giveBack, newVideo, settle } from '../tasks/support.ts'
import { periodStart, ZONES } from './local-periods.ts'

const engines = await sharePostgres()

t.test('budget periods begin at local midnight', async (t) => {
  // PostgreSQL finds the same beginnings of periods as ICU, where clocks are changed too, and periods leave no gap.
  const { sql } = await openFresh(t, engines)
  const HOUR_MS = 3_600_000
  const FROM = Date.UTC(2024, 0, 1)
  const TO = Date.UTC(2026, 0, 1)
  const SEED = 20261124

  async function startsOf(period: string, zone: string, instants: readonly number[]): Promise<number[]> {
    const rows = await sql<{ start: bigint; next: bigint; again: bigint; last: bigint }[]>`
    SELECT start, next, period_start(${period}, ${zone}, start) AS again, period_start(${period}, ${zone}, next - 1) AS last
    FROM unnest(${instants as number[]}::bigint[]) WITH ORDINALITY AS i(at, position),
      period_start(${period}, ${zone}, at) AS start, period_start(${period}, ${zone}, at, 1) AS next
    ORDER BY position`
    for (const [index, { start, next, again, last }] of rows.entries()) {
      const at = BigInt(instants[index]!)
      if (!(start <= at && at < next && again === start && last === start))
        throw new Error(
          `The ${period} of ${at} in ${zone} is from ${start} to ${next}, but begins at ${again} and ${last}`,
        )
    }
    return rows.map(({ start }) => Number(start))
  }

  t.test('any instant, in every zone and period', async () => {
    const instants = fc.array(fc.integer({ min: FROM, max: TO }), { minLength: 20, maxLength: 20 })
    const property = fc.asyncProperty(
      fc.constantFrom(...BUDGET_PERIODS),
      fc.constantFrom(...ZONES),
      instants,
      async (period, zone, all) => {
        const expected = all.map((at) => periodStart(period, zone, at))
        const found = await startsOf(period, zone, all)
        for (const [index, start] of found.entries())
          if (start !== expected[index])
            throw new Error(
              `${new Date(all[index]!).toISOString()} began at ${start}, not ${expected[index]}`,
            )
      },
    )
    await fc.assert(property, { seed: SEED, numRuns: 60 })
  })

  t.test('each hour around every change of clocks', async (t) => {
    const DAY_MS = 24 * HOUR_MS
    const noons = Array.from({ length: 366 }, (_, day) => Date.UTC(2025, 0, day, 12))
    for (const zone of ZONES) {
      const starts = noons.map((noon) => periodStart('day', zone, noon))
      const changes = starts.filter((start, day) => day > 0 && start - starts[day - 1]! !== DAY_MS)
      const instants: number[] = []
      for (const around of [Date.UTC(2025, 0, 1), ...changes])
        for (let at = around - 3 * DAY_MS; at < around + 2 * DAY_MS; at += HOUR_MS) instants.push(at - 1, at)
      const days = instants.map((at) => periodStart('day', zone, at))
      t.same(await startsOf('day', zone, instants), days, zone)
    }
  })

  t.test('an unknown zone is an error, not another zone', async (t) => {
    await t.rejects(sql`SELECT period_start('day', 'Nowhere/City', 0)`, /time zone/)
  })
})

t.test('budgets agree with a model', async (t) => {
  // Budgets of keys, members and an account agree with a model that shares no code with them: one call after the other, and
  // many at once in three processes, around the boundaries of periods. fast-check prints the seed of a failure.
  const { database, sql, openAnother } = await openFresh(t, engines)
  const processes = [database, await openAnother(), await openAnother()]
  const SEED = 20261125
  const HOUR_MS = 3_600_000

  /** Midnights around which calls are made: of days on which clocks change, a month and a week begin, and a usual one. */
  const MIDNIGHTS = [
    '2025-03-30T00:00:00+01:00',
    '2025-10-26T00:00:00+02:00',
    '2025-11-02T00:00:00-04:00',
    '2025-04-24T22:00:00Z',
    '2025-10-30T21:00:00Z',
    '2025-09-01T00:00:00+05:30',
    '2025-06-11T00:00:00+13:00',
  ].map((text) => Date.parse(text))

  const KEYS = ['ann-1', 'ann-2', 'bob', 'machine'] as const
  type KeyName = (typeof KEYS)[number]
  const MEMBER_OF = { 'ann-1': 'ann', 'ann-2': 'ann', bob: 'bob', machine: null } as const
  const SUBJECTS = ['account', 'ann', ...KEYS] as const
  type Subject = (typeof SUBJECTS)[number]

  interface ModelBudget {
    readonly subject: Subject
    readonly period: BudgetPeriod
    readonly zone: string
    readonly amount: bigint
  }

  const budgets = fc.uniqueArray(
    fc.record({
      subject: fc.constantFrom(...SUBJECTS),
      period: fc.constantFrom(...BUDGET_PERIODS),
      zone: fc.constantFrom(...ZONES),
      amount: fc.bigInt({ min: 20n, max: 150n }),
    }),
    { minLength: 1, maxLength: 5, selector: ({ subject, period }) => `${subject} ${period}` },
  )
  const calls = fc.array(
    fc.record({
      key: fc.constantFrom(...KEYS),
      offset: fc.integer({ min: -30 * HOUR_MS, max: 30 * HOUR_MS }),
      estimate: fc.bigInt({ min: 1n, max: 30n }),
      /** Of the estimate; null: never sent. */
      costPercent: fc.option(fc.bigInt({ min: 0n, max: 130n }), { freq: 5, nil: null }),
      /** How many later calls begin before it is booked. */
      length: fc.integer({ min: 0, max: 6 }),
    }),
    { minLength: 10, maxLength: 30 },
  )
  const world = fc.record({ midnight: fc.constantFrom(...MIDNIGHTS), budgets, calls })

  type World = typeof world extends fc.Arbitrary<infer Value> ? Value : never
  type ModelCall = World['calls'][number]

  /** An organization with the members, keys and budgets of a world. */
  async function build({ budgets: wanted }: World) {
    const organization = await database.accounts.create({
      name: 'Acme',
      kind: 'organization',
      credit: 1_000_000n,
    })
    const accountId = organization.account.id
    const [ann, bob] = await Promise.all(
      ['Ann', 'Bob'].map(async (name) => (await database.accounts.create({ name, credit: 0n })).account.id),
    )
    const ids: Record<string, string> = { account: accountId, ann: ann!, bob: bob! }
    for (const member of [ann!, bob!]) await database.organizations.putMember(accountId, member, 'admin')
    const keys = {} as Record<KeyName, string>
    for (const name of KEYS) {
      const member = MEMBER_OF[name]
      const { key } = await database.keys.create({
        accountId,
        name,
        kind: member === null ? 'console' : 'employee',
      })
      keys[name] = key.id
      if (member !== null) await sql`UPDATE grants SET member_id = ${ids[member]!} WHERE key_id = ${key.id}`
    }
    const subjectId = (subject: Subject) =>
      subject === 'account' || subject === 'ann' ? ids[subject]! : keys[subject as KeyName]
    const made = new Map<ModelBudget, string>()
    for (const budget of wanted) {
      const { subject, amount, period, zone } = budget
      const scope = subject === 'account' ? 'account' : subject === 'ann' ? 'member' : 'key'
      const id = newId('bud')
      await sql`
      INSERT INTO budgets (id, account_id, scope, subject_id, amount, period, timezone, counts_from)
      VALUES (${id}, ${accountId}, ${scope}, ${subjectId(subject)}, ${amount}, ${period}, ${zone}, 0)`
      made.set(budget, id)
    }
    return { accountId, keys, made }
  }

  const covers = ({ subject }: ModelBudget, key: KeyName): boolean =>
    subject === 'account' || subject === key || subject === MEMBER_OF[key]
  const startOf = ({ period, zone }: ModelBudget, at: number): number => periodStart(period, zone, at)
  const costOf = ({ estimate, costPercent }: ModelCall): bigint => (estimate * (costPercent ?? 0n)) / 100n

  /** What a budget counts of the calls, in the period of an instant. */
  const counted = (
    budget: ModelBudget,
    at: number,
    all: Iterable<readonly [ModelCall, number, bigint]>,
  ): bigint => {
    let sum = 0n
    for (const [call, submittedAt, amount] of all)
      if (covers(budget, call.key) && startOf(budget, submittedAt) === startOf(budget, at)) sum += amount
    return sum
  }

  interface Sent {
    readonly accountId: string
    readonly keyId: string
    readonly requestId: string
    readonly submittedAt: number
  }

  async function end(
    by: typeof database,
    call: ModelCall,
    { accountId, keyId, requestId, submittedAt }: Sent,
  ) {
    if (call.costPercent === null) return by.reservations.release(requestId)
    const cost = costOf(call)
    await by.reservations.shrink(requestId, cost)
    await by.bookings.book([
      settlement(accountId, {
        request_id: requestId,
        key_id: keyId,
        submitted_at: submittedAt,
        cost: String(cost),
      }),
    ])
  }

  async function checkBooks(
    accountId: string,
    made: ReadonlyMap<ModelBudget, string>,
    expected: Map<string, bigint>,
  ) {
    for (const id of made.values()) {
      const periods = await sql<{ starts_at: bigint; spent: bigint }[]>`
      SELECT starts_at, spent FROM budget_periods WHERE budget_id = ${id} AND spent > 0`
      for (const { starts_at, spent } of periods) {
        const name = `${id} ${starts_at}`
        if (expected.get(name) !== spent)
          throw new Error(`${name}: ${spent} is spent, not ${expected.get(name)}`)
        expected.delete(name)
      }
    }
    if (expected.size > 0) throw new Error(`nothing is spent of ${[...expected.keys()].join(', ')}`)
    const [left] = await sql<[{ count: bigint }]>`
    SELECT count(*) FROM cap_reservations WHERE account_id = ${accountId}`
    if (left.count !== 0n) throw new Error(`${left.count} reservations are left`)
  }

  const sums = (
    made: ReadonlyMap<ModelBudget, string>,
    booked: readonly (readonly [ModelCall, number, bigint])[],
  ) => {
    const all = new Map<string, bigint>()
    for (const [call, at, cost] of booked)
      for (const [budget, id] of made) {
        if (!covers(budget, call.key) || cost === 0n) continue
        const name = `${id} ${startOf(budget, at)}`
        all.set(name, (all.get(name) ?? 0n) + cost)
      }
    return all
  }

  t.test('one call after the other is admitted exactly where every budget covers it', async () => {
    const property = fc.asyncProperty(world, async (given) => {
      const { accountId, keys, made } = await build(given)
      const booked: (readonly [ModelCall, number, bigint])[] = []
      const open = new Map<ModelCall, Sent & { readonly endsAt: number }>()
      const finish = async (call: ModelCall, sent: Sent) => {
        open.delete(call)
        await end(processes[0]!, call, sent)
        if (call.costPercent !== null) booked.push([call, sent.submittedAt, costOf(call)])
      }
      for (const [index, call] of given.calls.entries()) {
        for (const [earlier, sent] of open) if (sent.endsAt <= index) await finish(earlier, sent)
        const submittedAt = given.midnight + call.offset
        const sent = { accountId, keyId: keys[call.key], requestId: newId('req'), submittedAt }
        const reserved = [...open].map(([other, { submittedAt: at }]) => [other, at, other.estimate] as const)
        const refusing = [...made].filter(
          ([budget]) =>
            covers(budget, call.key) &&
            call.estimate >
              budget.amount - counted(budget, submittedAt, booked) - counted(budget, submittedAt, reserved),
        )
        const { keyId, requestId } = sent
        const refusal = await processes[index % 3]!.reservations.reserveSpend({
          keyId,
          requestId,
          submittedAt,
          amount: call.estimate,
        })
        if ((refusal !== null) !== refusing.length > 0)
          throw new Error(
            `call ${index} was ${refusal === null ? 'admitted' : 'refused'}, against ${refusing.length} budgets`,
          )
        if (refusal === null) open.set(call, { ...sent, endsAt: index + 1 + call.length })
        else if (refusal.by !== 'budget' || !refusing.some(([, id]) => id === refusal.budget.id))
          throw new Error(`call ${index} was refused by ${JSON.stringify(refusal.by)}`)
      }
      for (const [call, sent] of open) await finish(call, sent)
      await checkBooks(accountId, made, sums(made, booked))
    })
    await fc.assert(property, { seed: SEED, numRuns: 8 })
  })

  t.test('of calls at once, none is admitted that a budget does not cover', async () => {
    const property = fc.asyncProperty(world, async (given) => {
      const { accountId, keys, made } = await build(given)
      const booked: (readonly [ModelCall, number, bigint])[] = []
      await Promise.all(
        given.calls.map(async (call, index) => {
          const by = processes[index % 3]!
          const submittedAt = given.midnight + call.offset
          const sent = { accountId, keyId: keys[call.key], requestId: newId('req'), submittedAt }
          const { keyId, requestId } = sent
          if (
            (await by.reservations.reserveSpend({ keyId, requestId, submittedAt, amount: call.estimate })) !==
            null
          )
            return
          await end(by, call, sent)
          if (call.costPercent !== null) booked.push([call, submittedAt, costOf(call)])
        }),
      )
      for (const [budget, id] of made)
        for (const [, at] of booked) {
          const over = booked.map(
            ([call, when, cost]) => [call, when, cost > call.estimate ? cost - call.estimate : 0n] as const,
          )
          const most = budget.amount + counted(budget, at, over)
          if (counted(budget, at, booked) > most) throw new Error(`${id} is passed`)
        }
      await checkBooks(accountId, made, sums(made, booked))
    })
    await fc.assert(property, { seed: SEED, numRuns: 8 })
  })

  t.test('the books agree after all of it', async (t) => {
    const { differences } = await database.audits.verifyWallets()
    t.same(
      differences.filter(({ kind }) => kind !== 'grant_missing'),
      [],
    )
  })
})

t.test('budgets hold over processes', async (t) => {
  // Budgets hold over all processes, at their boundaries and for calls across them. See docs/api-rules.md, "Budgets".
  const { database, sql, openAnother } = await openFresh(t, engines)
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

  const book = (
    accountId: string,
    keyId: string,
    cost: bigint,
    more: Parameters<typeof settlement>[1] = {},
  ) =>
    database.bookings.book([
      settlement(accountId, { key_id: keyId, cost: String(cost), submitted_at: Date.now(), ...more }),
    ])

  const stateOf = async (accountId: string) => (await database.budgets.list(accountId))[0]!

  const assertBooksAgree = async (t: Test) => t.same((await database.audits.verifyWallets()).differences, [])

  t.test('of many that ask at once in two processes, those get it whom the budget covers', async (t) => {
    const { accountId, keyId } = await newKey()
    const { budget, resetsAt } = await put(accountId, { amount: 50n })
    const asked = Array.from({ length: 40 }, (_, at) =>
      ask(keyId, { amount: 10n }, [database, other][at % 2]!),
    )
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
    t.equal(
      refusal?.by === 'budget' && refusal.resetsAt,
      Math.max(...budgets.map(({ resetsAt }) => resetsAt)),
    )
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
    const organization = await database.accounts.create({
      name: 'Acme',
      kind: 'organization',
      credit: 1_000n,
    })
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
    t.ok(
      await isAdmitted(keyId, { amount: 45n, at: midnight, requestId: early }),
      'the new day has all of it',
    )
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

  t.test(
    'a budget that is raised, lowered, moved to another zone or deleted holds from then on',
    async (t) => {
      const { accountId, keyId } = await newKey()
      const { budget } = await put(accountId, { amount: 50n })
      const open = newId('req')
      t.ok(await isAdmitted(keyId, { amount: 40n, requestId: open }))
      t.notOk(await isAdmitted(keyId, { amount: 20n }))
      t.match(await put(accountId, { amount: 60n }), {
        budget: { id: budget.id, amount: 60n },
        reserved: 40n,
      })
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
    },
  )

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
        await put(
          accountId,
          { amount: BigInt(1_000_000 + at), period: at % 8 === 1 ? 'week' : 'day', of },
          by,
        )
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
})
