import { firstValueFrom, Observable, of } from 'rxjs'
import t from 'tap'
import { admitWithinLimits, assertBalance } from '../../../pipelines/calls/balance.ts'
import type { Answered } from '../../../pipelines/calls/pipeline.ts'
import type { AdmittedCall } from '../../../pipelines/chat/precharge.ts'
import { type CallReservations, endReservation, reserve } from '../../../pipelines/chat/precharge.ts'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { BudgetView } from '../../../src/core/pricing/budget.ts'
import { tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { capTotals, WalletView } from '../../../src/core/pricing/wallet.ts'
import { isAway } from '../../../src/postgres/errors.ts'
import { readChatCall } from '../../../src/protocols/chat-completions/dialect.ts'
import { newAccount, openFresh, reserveCap, startDatabase } from '../../src/postgres/support.ts'
import { until } from '../../support/eventually.ts'

const { engines, database, sql } = await startDatabase(t)
const CAP = 100n
const REFUSED = { code: 'quota_exceeded', message: /spend cap/ }

const entry = modelEntry.parse({ id: 'fast', pricing: { unit: '1M_tokens', input: '1', output: '1' } })
const body = Buffer.from(JSON.stringify({ model: 'fast', messages: [{ role: 'user', content: 'hi' }] }))
const CALLED = {
  model: { id: 'fast', entry, price: tokenPrice(entry.pricing) },
  fallbacks: [],
  protocol: 'chat-completions',
  call: readChatCall(body),
  estimateMode: 'specified',
}

/** What a gateway process knows of a key with a cap, and a call of it that is admitted there. */
async function newCaller(by = database, isShared = false) {
  const accountId = await newAccount(by)
  const { key } = await by.keys.create({ accountId, name: 'capped', kind: 'employee', spendCap: CAP })
  const { wallet } = await by.accounts.show(accountId)
  const known = {
    account: { id: accountId },
    key,
    view: new WalletView(wallet),
    cap: new WalletView(capTotals(key.grant)!),
    budgets: [],
  }
  const admitted = (estimate: bigint): AdmittedCall => {
    if (!known.view.admit(estimate, true) || !known.cap.admit(estimate, true)) throw new Error('not admitted')
    const request = { requestId: newId('req'), submittedAt: Date.now(), header: () => '' }
    return { ...CALLED, request, known, estimate, isShared } as unknown as AdmittedCall
  }
  return { known, admitted }
}

const reservedFor = async (call: AdmittedCall): Promise<bigint | null> => {
  const [row] = await sql<{ amount: bigint }[]>`
    SELECT amount FROM cap_reservations WHERE ref = ${call.request.requestId}`
  return row?.amount ?? null
}

const refusals: string[] = []
const onReservationRefused = (reason: string) => void refusals.push(reason)
const faults: unknown[] = []
const deps = {
  ...{ caps: database.reservations, journalId: 'journal', onReservationRefused },
  isAway,
  onReservationFault: (error: unknown) => void faults.push(error),
}
t.beforeEach(() => {
  refusals.splice(0)
  faults.splice(0)
})

function reserved(deps: CallReservations, call: AdmittedCall): Observable<AdmittedCall | Answered> {
  const next = reserve<AdmittedCall>(deps)(call)
  return next instanceof Observable ? next : of(next)
}

t.test('a call goes on once its estimate is reserved, and its end leaves its cost reserved', async (t) => {
  const { known, admitted } = await newCaller()
  const call = admitted(60n)
  t.equal(await firstValueFrom(reserved(deps, call)), call)
  t.equal(await reservedFor(call), 60n)
  t.same([known.view.inFlight, known.cap.inFlight], [60n, 60n], 'from here on it is the call that ends it')
  endReservation(deps, call, 25n)
  t.same([known.cap.inFlight, known.cap.balance], [0n, CAP - 25n])
  await until('the rest is free', async () => (await reservedFor(call)) === 25n)
})

t.test('what other processes have reserved is not free here', async (t) => {
  const { known, admitted } = await newCaller()
  await reserveCap(database, { keyId: known.key.id, requestId: newId('req'), amount: 50n })
  const call = admitted(60n)
  await t.rejects(firstValueFrom(reserved(deps, call)), REFUSED)
  t.same([known.view.inFlight, known.cap.inFlight], [0n, 0n], 'nothing stays reserved here either')
  t.same(refusals, ['spend_cap'])
  t.equal(await reservedFor(call), null)
})

t.test('a client that leaves before the answer leaves nothing reserved', async (t) => {
  const { known, admitted } = await newCaller()
  const call = admitted(60n)
  const { promise: answered, resolve } = Promise.withResolvers<void>()
  const slow = {
    ...database,
    reservations: {
      ...database.reservations,
      reserveSpend: async (wanted: Parameters<typeof database.reservations.reserveSpend>[0]) => {
        const refusal = await database.reservations.reserveSpend(wanted)
        await answered
        return refusal
      },
    },
  }
  const subscription = reserved({ ...deps, caps: slow.reservations }, call).subscribe(() =>
    t.fail('nobody waits for it'),
  )
  await until('it is reserved', async () => (await reservedFor(call)) === 60n)
  subscription.unsubscribe()
  t.same([known.view.inFlight, known.cap.inFlight], [0n, 0n])
  resolve()
  await until('it is released', async () => (await reservedFor(call)) === null)
})

t.test('a call of a low balance is reserved in the wallet, beside what others have reserved', async (t) => {
  const { known, admitted } = await newCaller(database, true)
  const accountId = known.account.id
  const reserve = (amount: bigint) =>
    database.reservations.reserveWallet({ accountId, requestId: newId('req'), amount })
  const free = known.view.balance
  t.ok(await reserve(free - 60n))
  const call = admitted(60n)
  t.equal(await firstValueFrom(reserved(deps, call)), call)
  const over = admitted(1n)
  await t.rejects(firstValueFrom(reserved(deps, over)), {
    code: 'quota_exceeded',
    message: /balance/,
  })
  t.same(refusals, ['wallet'])
  t.same([known.view.inFlight, known.cap.inFlight], [60n, 60n], 'nothing of the refused call stays reserved')
  endReservation(deps, call, 25n)
  await until('its cost stays reserved, the rest is free', async () => await reserve(35n))
  t.notOk(await reserve(1n))
})

t.test('a call that its spend cap refuses leaves nothing reserved in the wallet', async (t) => {
  const { known, admitted } = await newCaller(database, true)
  await reserveCap(database, { keyId: known.key.id, requestId: newId('req'), amount: 50n })
  await t.rejects(firstValueFrom(reserved(deps, admitted(60n))), REFUSED)
  await until('it is released', async () => {
    const [row] = await sql<[{ reserved: bigint }]>`SELECT reserved_in(${known.account.id}) AS reserved`
    return row.reserved === 0n
  })
})

t.test('while PostgreSQL is away what is known here decides alone', async (t) => {
  const { database: doomed } = await openFresh(t, engines)
  const { known, admitted } = await newCaller(doomed, true)
  await doomed.close()
  const call = admitted(60n)
  t.equal(await firstValueFrom(reserved({ ...deps, caps: doomed.reservations }, call)), call)
  t.notOk(known.cap.admit(60n, true))
  endReservation({ ...deps, caps: doomed.reservations }, call, 10n)
  t.equal(known.cap.balance, CAP - 10n)
})

t.test('a statement that fails is no absence of PostgreSQL: the call fails', async (t) => {
  const { database: broken, sql: hands } = await openFresh(t, engines)
  const { known, admitted } = await newCaller(broken, true)
  await hands`ALTER FUNCTION reserve_spend RENAME TO reserve_nothing`
  const capped = admitted(60n)
  await t.rejects(firstValueFrom(reserved({ ...deps, caps: broken.reservations }, capped)), { code: '42883' })
  t.same([known.view.inFlight, known.cap.inFlight], [0n, 0n])
  await until('nothing stays reserved in the wallet', async () => {
    const [row] = await hands<[{ reserved: bigint }]>`SELECT reserved_in(${known.account.id}) AS reserved`
    return row.reserved === 0n
  })
  await hands`ALTER FUNCTION reserve_wallet RENAME TO reserve_no_wallet`
  await t.rejects(firstValueFrom(reserved({ ...deps, caps: broken.reservations }, admitted(60n))), {
    code: '42883',
  })
  t.same(faults, [])
  await hands`ALTER TABLE cap_reservations RENAME TO no_reservations`
  endReservation({ ...deps, caps: broken.reservations }, admitted(60n), 10n)
  await until('what cannot be shrunk is reported', async () => faults.length > 0)
  t.match(faults, [{ code: '42P01' }])
})

t.test('a cap that is spent refuses before anything is read', async (t) => {
  const { known, admitted } = await newCaller()
  const call = admitted(CAP)
  assertBalance(call)
  known.cap.end(CAP, CAP)
  t.throws(() => assertBalance(call), REFUSED)
})

/** What a gateway process knows of a key with a budget alone, and a call of it that is admitted there. */
async function newBudgetedCaller(by = database) {
  const accountId = await newAccount(by)
  const { key, raw } = await by.keys.create({ accountId, name: 'budgeted' })
  const of = { scope: 'key', subjectId: key.id } as const
  await by.budgets.put({ accountId, amount: CAP, period: 'day', timezone: 'UTC', ...of })
  const credential = (await by.keys.findCredential(by.keys.lookupHash(raw)))!
  const [periods] = credential.budgets
  const budget = new BudgetView(periods!)
  const known = {
    ...credential,
    view: new WalletView(credential.wallet),
    cap: null,
    addresses: null,
    budgets: [budget],
  }
  const call = (estimate: bigint) => {
    const request = { requestId: newId('req'), submittedAt: Date.now(), header: () => '' }
    return { ...CALLED, request, known, estimate, isShared: false } as unknown as AdmittedCall
  }
  const admitted = (estimate: bigint) => {
    const made = call(estimate)
    const refusal = admitWithinLimits(known, estimate, made.request.submittedAt, () => '')
    if (refusal !== null || !known.view.admit(estimate, true)) throw refusal ?? new Error('not admitted')
    return made
  }
  return { known, budget: budget.at(Date.now()), admitted }
}

t.test('a budget is reserved over all processes, and a refusal names it', async (t) => {
  const { known, budget, admitted } = await newBudgetedCaller()
  const call = admitted(60n)
  t.equal(await firstValueFrom(reserved(deps, call)), call)
  t.equal(await reservedFor(call), 60n)
  t.throws(() => admitted(41n), {
    code: 'quota_exceeded',
    message: /daily budget of this API key .*resets at/,
  })
  t.equal(known.view.inFlight, 60n)
  endReservation(deps, call, 25n)
  t.same([budget.inFlight, budget.balance], [0n, CAP - 25n])
  await until('the rest is free', async () => (await reservedFor(call)) === 25n)
  await reserveCap(database, { keyId: known.key.id, requestId: newId('req'), amount: 50n })
  await t.rejects(firstValueFrom(reserved(deps, admitted(60n))), { message: /daily budget/ })
  t.same(refusals, ['budget'])
  t.same([known.view.inFlight, budget.inFlight], [0n, 0n], 'nothing stays reserved here either')
})

t.test('while PostgreSQL is away a budget is what this process knows of it', async (t) => {
  const { database: doomed } = await openFresh(t, engines)
  const { budget, known, admitted } = await newBudgetedCaller(doomed)
  await doomed.close()
  const call = admitted(60n)
  t.equal(await firstValueFrom(reserved({ ...deps, caps: doomed.reservations }, call)), call)
  t.throws(() => admitted(41n), { message: /daily budget/ })
  endReservation({ ...deps, caps: doomed.reservations }, call, CAP)
  t.equal(budget.balance, 0n)
  t.throws(() => assertBalance({ known, request: call.request }), { message: /daily budget/ })
})
