/**
 * A low balance, a spend cap, a budget, the allowlist of an account and a revocation are in force on every gateway
 * process, whichever takes the call. See docs/api-rules.md, "Agents" and "Budgets".
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseCredits } from '../../../schemas/money.ts'
import { connectTo } from '../../support/connections.ts'
import { eventually, startService, type TestService, until } from '../../support/service.ts'
import { ask, CHAT_PROTOCOLS, checkRefused, ERRORS } from '../protocols/support.ts'
import { callConfig, errorOf, say } from '../support.ts'

const PARALLEL_CALLS = 100
const AFFORDABLE_CALLS = 5
const MESSAGES = say('hi')
const OUTPUT_TOKENS = 5
const COST = Math.ceil(JSON.stringify(MESSAGES).length / 4) + 2 * OUTPUT_TOKENS
const BODY = { model: 'brisk', messages: MESSAGES, max_tokens: OUTPUT_TOKENS }
/** Of each connection that is new the kernel chooses who takes it. */
const FRESH = { headers: { connection: 'close' } }
/** That none of so many goes to one of three processes is as good as impossible. */
const ENOUGH_FOR_BOTH = 24

const service = await startService(t, {
  config: callConfig({ brisk: { simulate: 'ttft=20,tokens=5' }, endless: { simulate: 'ttft=60000' } }),
  env: { TOLLGATE_WORKERS: '3' },
})
const { database } = service
const sql = connectTo(t, service.engines.databaseUrl)

const cap = (calls: number) => parseCredits(String(COST * calls))
const employee = (calls: number) => service.newKey('100000', { kind: 'employee', spendCap: cap(calls) })
const openReservations = async (keyId: string): Promise<number> => {
  const [row] = await sql<[{ count: bigint }]>`
    SELECT count(*) FROM cap_reservations WHERE key_id = ${keyId}`
  return Number(row.count)
}

/** Statuses of calls that all go out at once, each on a connection of its own. */
const rush = (key: string, count: number, body: object = BODY): Promise<number[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const response = await service.chat(key, body, FRESH)
      await response.arrayBuffer()
      return response.status
    }),
  )
const countOf = (statuses: readonly number[], status: number) => statuses.filter((s) => s === status).length

/** Gateways whose journal has written of the key. */
const processesThatServed = ({ dataDir }: TestService, keyId: string): number => {
  const root = join(dataDir, 'journal')
  return readdirSync(root).filter((gateway) =>
    readdirSync(join(root, gateway)).some((file) => readFileSync(join(root, gateway, file)).includes(keyId)),
  ).length
}

async function assertBooksAgree(test: Test, keyId: string, spent: bigint): Promise<void> {
  const grant = await eventually('all of it is spent', async () => {
    const found = (await database.keys.show(keyId)).grant
    return found?.spent === spent ? found : undefined
  })
  const [rows] = await sql<[{ sum: string }]>`
    SELECT coalesce(sum(cost), 0)::text AS sum FROM usage_rows WHERE key_id = ${keyId}`
  test.equal(grant.spent, BigInt(rows.sum), 'what is spent is the sum of the rows')
  test.same((await database.audits.verifyWallets()).differences, [], 'the books agree')
}

t.test('100 parallel calls against a cap for 5, over three processes', async (t) => {
  const { key, keyId } = await employee(AFFORDABLE_CALLS)
  const statuses = await rush(key, PARALLEL_CALLS)
  t.equal(countOf(statuses, 200), AFFORDABLE_CALLS)
  t.equal(countOf(statuses, 402), PARALLEL_CALLS - AFFORDABLE_CALLS)
  t.equal(processesThatServed(service, keyId), 3)
  await assertBooksAgree(t, keyId, cap(AFFORDABLE_CALLS))
  t.equal(await openReservations(keyId), 0)
  const refusedRows = async () => {
    const [row] = await sql<[{ count: bigint }]>`
      SELECT count(*) FROM usage_rows WHERE key_id = ${keyId} AND status = 'rejected'`
    return Number(row.count)
  }
  // They may be booked behind the charges.
  await until(
    'each refusal has its row',
    async () => (await refusedRows()) >= PARALLEL_CALLS - AFFORDABLE_CALLS,
  )
  t.equal(await refusedRows(), PARALLEL_CALLS - AFFORDABLE_CALLS, 'and no more than one')

  const refused = await service.chat(key, BODY)
  t.equal(refused.status, 402)
  t.match(await errorOf(refused), {
    code: 'quota_exceeded',
    type: 'insufficient_quota',
    message: /spend cap/,
  })
  for (const path of ['/v1/key/balance', '/v1/usage'])
    t.match(await (await service.get(key, path)).json(), {
      spend_cap: String(COST * AFFORDABLE_CALLS),
      spent: String(COST * AFFORDABLE_CALLS),
    })
  await database.keys.update(keyId, { spendCap: cap(AFFORDABLE_CALLS + 1) })
  await until('a raised cap is in force', async () => (await service.chat(key, BODY)).status === 200)
  await assertBooksAgree(t, keyId, cap(AFFORDABLE_CALLS + 1))
})

t.test('a balance for 5 of 100 parallel calls, and for one of three, over three processes', async (t) => {
  const { key, keyId } = await service.newKey(String(COST * AFFORDABLE_CALLS))
  const statuses = await rush(key, PARALLEL_CALLS)
  t.equal(countOf(statuses, 200), AFFORDABLE_CALLS)
  t.equal(countOf(statuses, 402), PARALLEL_CALLS - AFFORDABLE_CALLS)
  t.equal(processesThatServed(service, keyId), 3)

  const { key: poor } = await service.newKey(String(COST * 1.25))
  t.same((await rush(poor, 3)).sort(), [200, 402, 402], 'each is 0.8 of the balance')
  for (const [each, left] of [
    [key, '0'],
    [poor, String(COST / 4)],
  ] as const)
    await until('all is charged', async () => {
      const { remaining } = (await (await service.get(each, '/v1/key/balance')).json()) as {
        remaining: string
      }
      return remaining === left
    })
  t.same((await database.audits.verifyWallets()).differences, [])
})

t.test('a balance is used up to its last call by calls that cost less than their estimate', async (t) => {
  const { key } = await service.newKey(String(COST * 3))
  const body = { ...BODY, max_tokens: OUTPUT_TOKENS + Math.floor(COST / 4) }
  for (let call = 0; call < 3; call++) t.same(await rush(key, 1, call < 2 ? body : BODY), [200])
  t.same(await rush(key, 1), [402])
})

t.test('calls one after the other use a cap up to its last call, whichever process takes them', async (t) => {
  const { key, keyId } = await employee(AFFORDABLE_CALLS)
  for (let call = 0; call < AFFORDABLE_CALLS; call++) {
    const response = await service.chat(key, BODY, FRESH)
    await response.arrayBuffer()
    t.equal(response.status, 200)
  }
  t.equal((await service.chat(key, BODY, FRESH)).status, 402)
  await assertBooksAgree(t, keyId, cap(AFFORDABLE_CALLS))
})

t.test('an Idempotency-Key that is replayed neither reserves nor spends', async (t) => {
  const { key, keyId } = await employee(1)
  const send = () => service.chat(key, BODY, { headers: { 'idempotency-key': 'once', connection: 'close' } })
  const first = await send()
  const body = await first.text()
  t.equal(first.status, 200)
  await assertBooksAgree(t, keyId, cap(1))
  await database.keys.update(keyId, { spendCap: cap(2) })
  const again = await eventually('the raised cap lets it in', async () => {
    const response = await send()
    return response.status === 200 ? response : undefined
  })
  t.equal(again.headers.get('idempotency-replayed'), 'true')
  t.equal(await again.text(), body)
  t.equal(await openReservations(keyId), 0)
  await assertBooksAgree(t, keyId, cap(1))
})

t.test('a killed service frees what its calls had reserved', async (t) => {
  const { key, keyId } = await employee(3)
  const body = { ...BODY, model: 'endless', stream: true }
  const { key: poor } = await service.newKey(String(COST))
  const open = [key, key, key, poor].map((each) => service.chat(each, body, FRESH).catch(() => null))
  await until('they are reserved', async () => {
    const [row] = await sql<[{ count: bigint }]>`SELECT count(*) FROM wallet_reservations`
    return (await openReservations(keyId)) === 3 && row.count === 1n
  })
  t.equal((await service.chat(poor, BODY, FRESH)).status, 402, 'nothing is left of the balance')
  t.equal((await service.chat(key, BODY, FRESH)).status, 402, 'nothing is left for another one')
  await service.kill()
  await Promise.all(open)
  t.equal(await openReservations(keyId), 3)
  await service.start()
  await until('they are free', async () => (await openReservations(keyId)) === 0)
  t.same(await rush(key, 3), [200, 200, 200], 'and all of the cap is there again')
  t.same(await rush(poor, 1), [200], 'and all of the balance')
  await assertBooksAgree(t, keyId, cap(3))
})

t.test('a member who is removed, and a key that is revoked, open nothing on any process', async (t) => {
  const organization = await database.accounts.create({
    name: 'Acme',
    kind: 'organization',
    credit: cap(1000),
  })
  const { id: organizationId } = organization.account
  const [admin, member] = await Promise.all(
    ['Ann', 'Bob'].map(async (name) => (await database.accounts.create({ name, credit: 0n })).account.id),
  )
  await database.organizations.putMember(organizationId, admin!, 'admin')
  await database.organizations.putMember(organizationId, member!, 'member')
  const issue = async () => {
    const asked = await database.keyRequests.create({ organizationId, memberId: member!, name: 'desk' })
    return database.keyRequests.approve({ requestId: asked.id, by: admin!, spendCap: cap(1000) })
  }
  const [revoked, removed] = [await issue(), await issue()]
  const all = async (key: string, status: number) =>
    countOf(await rush(key, ENOUGH_FOR_BOTH), status) === ENOUGH_FOR_BOTH
  for (const { raw } of [revoked, removed]) t.ok(await all(raw, 200))
  await database.keys.revoke(revoked.key.id)
  await until('a revoked key is refused everywhere', () => all(revoked.raw, 401))
  t.ok(await all(removed.raw, 200), 'the other one is not')
  await database.accounts.setModels(organizationId, ['endless'])
  await until('what the account may not call is refused everywhere', () => all(removed.raw, 400))
  t.match(await errorOf(await service.chat(removed.raw, BODY)), { code: 'model_not_allowed' })
  await database.organizations.removeMember(organizationId, member!)
  await until('the key of a removed member is refused everywhere', () => all(removed.raw, 401))
})

/** A caller whose account has a daily budget for so many calls. */
async function newCaller(calls: number) {
  const { key, keyId } = await service.newKey('100000')
  const { accountId } = await database.keys.show(keyId)
  const put = (amount: bigint) =>
    database.budgets.put({
      accountId,
      scope: 'account',
      subjectId: accountId,
      amount,
      period: 'day',
      timezone: 'UTC',
    })
  await put(cap(calls))
  const spent = (expected: bigint) =>
    until('all of it is booked', async () => {
      const [state] = await database.budgets.list(accountId)
      return state?.spent === expected && state.reserved === 0n
    })
  return { key, accountId, put, spent }
}

t.test('100 parallel calls against a budget for 5, over three processes', async (t) => {
  const { key, accountId, put, spent } = await newCaller(AFFORDABLE_CALLS)
  const statuses = await rush(key, PARALLEL_CALLS)
  t.equal(countOf(statuses, 200), AFFORDABLE_CALLS)
  t.equal(countOf(statuses, 402), PARALLEL_CALLS - AFFORDABLE_CALLS)
  await spent(cap(AFFORDABLE_CALLS))
  const [state] = await database.budgets.list(accountId)
  const resets = new Date(state!.resetsAt).toISOString()
  const message = new RegExp(`daily budget of the account .*${state!.budget.id}.* resets at ${resets}`)

  for (const protocol of CHAT_PROTOCOLS)
    await checkRefused(t, await ask(service, key, protocol, 'brisk'), protocol, ERRORS.quotaExceeded, message)

  for (const path of ['/v1/key/balance', '/v1/usage'])
    t.match(await (await service.get(key, path)).json(), {
      budgets: [
        { scope: 'account', period: 'day', spent: String(COST * AFFORDABLE_CALLS), resets_at: resets },
      ],
    })
  const rows = await service.logs(key, (found) => found.some(({ status }) => status === 'rejected'))
  t.match(
    rows.find(({ status }) => status === 'rejected'),
    { error_code: 'quota_exceeded', error_message: message, cost: '0' },
    'the row of a refusal names the budget',
  )
  const events = await sql<{ percent: number }[]>`
    SELECT (data ->> 'percent')::integer AS percent FROM events WHERE account_id = ${accountId} ORDER BY 1`
  t.same(
    events.map(({ percent }) => percent),
    [50, 80, 100],
  )
  await put(cap(AFFORDABLE_CALLS + 1))
  await until('a raised budget is in force', async () => (await service.chat(key, BODY)).status === 200)
  await spent(cap(AFFORDABLE_CALLS + 1))
  t.same((await database.audits.verifyWallets()).differences, [])
})

t.test('calls in a row use a budget up to its last call, whichever process takes them', async (t) => {
  const { key, spent } = await newCaller(AFFORDABLE_CALLS)
  for (let call = 0; call < AFFORDABLE_CALLS; call++) t.same(await rush(key, 1), [200])
  t.same(await rush(key, 1), [402])
  await spent(cap(AFFORDABLE_CALLS))
})

t.test('a killed service frees what its calls had reserved of a budget', async (t) => {
  const { key, accountId, spent } = await newCaller(3)
  const body = { ...BODY, model: 'endless', stream: true }
  const open = [1, 2, 3].map(() => service.chat(key, body, FRESH).catch(() => null))
  await until('they are reserved', async () => {
    const [state] = await database.budgets.list(accountId)
    return state!.reserved === cap(3)
  })
  t.same(await rush(key, 1), [402], 'nothing is left for another one')
  await service.kill()
  await Promise.all(open)
  await service.start()
  await spent(0n)
  t.same(await rush(key, 3), [200, 200, 200], 'and all of the budget is there again')
})
