/**
 * Budgets of keys, members and an account agree with a model that shares no code with them: one call after the other, and
 * many at once in three processes, around the boundaries of periods. fast-check prints the seed of a failure.
 */
import fc from 'fast-check'
import t from 'tap'
import { BUDGET_PERIODS, type BudgetPeriod } from '../../../../schemas/accounts/budget.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import { settlement, startDatabase } from '../support.ts'
import { periodStart, ZONES } from './local-periods.ts'

const { database, sql, openAnother } = await startDatabase(t)
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

async function end(by: typeof database, call: ModelCall, { accountId, keyId, requestId, submittedAt }: Sent) {
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
