/** A budget is in force on every gateway process and in every protocol. See docs/api-rules.md, "Budgets". */
import t from 'tap'
import { parseCredits } from '../../../schemas/money.ts'
import { connect } from '../../../src/postgres/connection.ts'
import { eventually, startService } from '../../support/service.ts'
import { ask, CHAT_PROTOCOLS, checkRefused, ERRORS } from '../protocols/support.ts'
import { callConfig, say } from '../support.ts'

const PARALLEL_CALLS = 60
const AFFORDABLE_CALLS = 5
const MESSAGES = say('hi')
const OUTPUT_TOKENS = 5
const COST = Math.ceil(JSON.stringify(MESSAGES).length / 4) + 2 * OUTPUT_TOKENS
const BODY = { model: 'brisk', messages: MESSAGES, max_tokens: OUTPUT_TOKENS }
/** Of each connection that is new the kernel chooses who takes it. */
const FRESH = { headers: { connection: 'close' } }

const service = await startService(t, {
  config: callConfig({ brisk: { simulate: 'ttft=20,tokens=5' }, endless: { simulate: 'ttft=60000' } }),
  env: { TOLLGATE_WORKERS: '3' },
})
const { database } = service
const sql = connect(service.engines.databaseUrl, { max: 1, name: 'test' })
t.teardown(() => sql.end())

const credits = (calls: number) => parseCredits(String(COST * calls))

const rush = (key: string, count: number, body: object = BODY): Promise<number[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const response = await service.chat(key, body, FRESH)
      await response.arrayBuffer()
      return response.status
    }),
  )
const countOf = (statuses: readonly number[], status: number) => statuses.filter((s) => s === status).length

async function newCaller(calls: number) {
  const { key, keyId } = await service.newKey('100000')
  const { accountId } = await database.showKey(keyId)
  const put = (amount: bigint) =>
    database.putBudget({
      accountId,
      scope: 'account',
      subjectId: accountId,
      amount,
      period: 'day',
      timezone: 'UTC',
    })
  await put(credits(calls))
  const spent = (expected: bigint) =>
    eventually('all of it is booked', async () => {
      const [state] = await database.listBudgets(accountId)
      return (state?.spent === expected && state.reserved === 0n) || undefined
    })
  return { key, accountId, put, spent }
}

t.test('60 parallel calls against a budget for 5, over three processes', async (t) => {
  const { key, accountId, put, spent } = await newCaller(AFFORDABLE_CALLS)
  const statuses = await rush(key, PARALLEL_CALLS)
  t.equal(countOf(statuses, 200), AFFORDABLE_CALLS)
  t.equal(countOf(statuses, 402), PARALLEL_CALLS - AFFORDABLE_CALLS)
  await spent(credits(AFFORDABLE_CALLS))
  const [state] = await database.listBudgets(accountId)
  const resets = new Date(state!.resetsAt).toISOString()
  const message = new RegExp(`daily budget of the account .*${state!.budget.id}.* resets at ${resets}`)

  for (const protocol of CHAT_PROTOCOLS)
    await checkRefused(t, await ask(service, key, protocol, 'brisk'), protocol, ERRORS.quotaExceeded, message)

  t.match(await (await service.get(key, '/v1/key/balance')).json(), {
    budgets: [{ scope: 'account', period: 'day', spent: String(COST * AFFORDABLE_CALLS), resets_at: resets }],
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
  await put(credits(AFFORDABLE_CALLS + 1))
  await eventually('a raised budget is in force', async () =>
    (await service.chat(key, BODY)).status === 200 ? true : undefined,
  )
  await spent(credits(AFFORDABLE_CALLS + 1))
  t.same((await database.verifyWallets()).differences, [])
})

t.test(
  'calls one after the other use a budget up to its last call, whichever process takes them',
  async (t) => {
    const { key, spent } = await newCaller(AFFORDABLE_CALLS)
    for (let call = 0; call < AFFORDABLE_CALLS; call++) t.same(await rush(key, 1), [200])
    t.same(await rush(key, 1), [402])
    await spent(credits(AFFORDABLE_CALLS))
  },
)

t.test('a killed service frees what its calls had reserved', async (t) => {
  const { key, accountId, spent } = await newCaller(3)
  const body = { ...BODY, model: 'endless', stream: true }
  const open = [1, 2, 3].map(() => service.chat(key, body, FRESH).catch(() => null))
  await eventually('they are reserved', async () => {
    const [state] = await database.listBudgets(accountId)
    return state!.reserved === credits(3) || undefined
  })
  t.same(await rush(key, 1), [402], 'nothing is left for another one')
  await service.kill()
  await Promise.all(open)
  await service.start()
  await spent(0n)
  t.same(await rush(key, 3), [200, 200, 200], 'and all of the budget is there again')
})
