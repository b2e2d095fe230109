/**
 * Every call has one row, and ledger, rows and price x usage have the same sum.
 * See docs/failure-modes.md, "Money", rows 9, 10 and 11.
 */
import t from 'tap'
import type { LogSummary } from '../../../schemas/call-log/summary.ts'
import { Random } from '../../simulation/random.ts'
import { verifyWallets } from '../../support/connections.ts'
import { type LogJson, startService, type TestService } from '../../support/service.ts'
import { balanceOf, callConfig, readUntil, say, traceOf, UPSTREAM_KEY, upstreamCalls } from '../support.ts'

const CREDIT = 1_000_000
const CALLS = 120
const SEED = 20_261_120

/** Served by two channels, of which the first fails, each in its way. */
const FAILING: Readonly<Record<string, string>> = {
  broken: 'fault=status:500',
  busy: 'fault=status:429',
  gone: 'fault=reset:head',
  erring: 'fault=stream_error',
}
const MODELS = {
  plain: { simulate: 'tokens=20' },
  // Slow enough that a client that leaves does so in the middle, however busy the machine is.
  slow: { simulate: 'tokens=300,tps=40' },
  unmetered: { simulate: 'tokens=20,usage=none' },
  reset: { simulate: 'tokens=60,fault=reset:3000' },
  truncated: { simulate: 'tokens=60,fault=truncate:3000' },
  refusing: { simulate: 'fault=status:400' },
  failing: { simulate: 'fault=status:503' },
  ...Object.fromEntries(Object.entries(FAILING).map(([id, simulate]) => [id, { simulate }])),
  dead: { simulate: 'fault=status:500' },
  unserved: { served: false },
}
const SECOND_CHANNEL = [
  '  - id: second',
  '    protocol: chat-completions',
  '    base_url: ${TEST_SIMULATOR_URL}/v1',
  `    api_key: ${UPSTREAM_KEY}`,
  '    priority: 1',
  '    models:',
  ...Object.keys(FAILING).map((id) => `      ${id}: sim-second`),
  '      dead: sim-dead@fault=reset:head',
  '',
].join('\n')

interface Plan {
  readonly model: string
  readonly stream: boolean
  /** Bytes after which the client leaves; null: it stays. */
  readonly leavesAfter: number | null
}

function drawPlans(): Plan[] {
  const random = new Random(SEED)
  const names = [...Object.keys(MODELS), 'unknown']
  return Array.from({ length: CALLS }, () => {
    const model = random.pick(names)
    const leaves = random.chance(model === 'slow' ? 3 / 4 : 1 / 4)
    return { model, stream: random.chance(3 / 4), leavesAfter: leaves ? random.int(0, 4000) : null }
  })
}

/** Carries one plan out; the request id, as the client learnt it. */
async function execute(service: TestService, key: string, plan: Plan): Promise<string> {
  const { model, stream, leavesAfter } = plan
  const client = new AbortController()
  const response = await service.chat(
    key,
    { model, stream, messages: say(`a ${model} call`), max_tokens: 100 },
    { signal: client.signal },
  )
  await readUntil(response, (bytes) => leavesAfter !== null && bytes.length >= leavesAfter)
  client.abort()
  return traceOf(response)
}

const creditsOf = (rows: readonly LogJson[]): number => rows.reduce((sum, { cost }) => sum + Number(cost), 0)

t.test('a mixed workload', async (t) => {
  const service = await startService(t, { config: callConfig(MODELS) + SECOND_CHANNEL })
  const { key, accountId } = await service.newKey(String(CREDIT))
  const plans = drawPlans()
  const traces = await Promise.all(plans.map((plan) => execute(service, key, plan)))
  const rows = await service.logs(key, (found) => found.length >= CALLS)

  await t.test('every call has exactly one row', async (t) => {
    t.same(rows.map(({ request_id }) => request_id).sort(), [...traces].sort())
    const seen = (status: string) => rows.filter((row) => row.status === status).length
    for (const status of ['success', 'error', 'interrupted', 'rejected']) t.ok(seen(status) > 0, status)
  })

  await t.test('every row costs its usage by the price, and nothing where nothing was said', async (t) => {
    for (const { cost, input_tokens, output_tokens, model, status } of rows) {
      if (Number(cost) !== input_tokens + 2 * output_tokens) t.fail(`${model} ${status}: ${cost}`)
      if (status === 'rejected' && cost !== '0') t.fail('a refused call was charged')
    }
    const failed = rows.filter(({ model }) => model === 'refusing' || model === 'failing')
    t.ok(failed.length > 0)
    t.equal(creditsOf(failed), 0)
  })

  await t.test('attempts stand apart: told as they were made, charged once', async (t) => {
    const tried = rows.filter(({ model, status }) => model in FAILING && status === 'success')
    t.ok(tried.some(({ attempts_count }) => attempts_count === 2))
    for (const row of tried) {
      const calls = await upstreamCalls(service, row.request_id)
      // One where the first channel had an open breaker by then; three where a kept connection was replaced first.
      const count = row.attempts_count!
      t.ok(count <= (row.model === 'gone' ? 3 : 2), `${count} attempts`)
      const attempts = Array.from({ length: count }, (_, at) => ({
        seq: at + 1,
        error_code: at + 1 === count ? null : String,
      }))
      t.match(row.attempts, attempts)
      t.equal(row.attempts_count, calls.length)
      t.equal(row.output_tokens, calls.at(-1)?.output_tokens)
    }
  })

  await t.test('a call that no channel answered is one row with its attempts, at no charge', async (t) => {
    const dead = rows.filter(({ model }) => model === 'dead')
    t.ok(dead.length > 0)
    for (const row of dead) {
      t.match(row, { status: 'error', cost: '0' })
      const attempts = row.attempts as { seq: number; error_code: string }[]
      t.equal(attempts.length, row.attempts_count)
      t.equal(attempts.at(-1)?.error_code, row.error_code)
      t.equal((await upstreamCalls(service, row.request_id)).length, row.attempts_count)
    }
  })

  await t.test('the summary and the CSV say what the rows say, attempts apart', async (t) => {
    const count = (status: string) => rows.filter((row) => row.status === status).length
    const summary = (await (await service.get(key, '/v1/logs/summary')).json()) as LogSummary
    t.match(summary.total, { requests: CALLS, cost: String(creditsOf(rows)) })
    t.same(summary.status_counts, {
      success: count('success'),
      error: count('error'),
      interrupted: count('interrupted'),
      rejected: count('rejected'),
    })
    for (const { model, requests, cost } of summary.by_model) {
      const ofModel = rows.filter((row) => row.model === model)
      t.same([requests, cost], [ofModel.length, String(creditsOf(ofModel))], model)
    }
    const lines = (await (await service.get(key, '/v1/logs?format=csv')).text()).trimEnd().split('\r\n')
    const [header = '', ...records] = lines
    t.match(header, /cost_usd/)
    t.same(
      records.map((record) => Number(record.split(',', 1)[0])),
      rows.map(({ id }) => id),
      'a line for each row',
    )
  })

  await t.test('ledger, rows, wallet and call log add up to the same', async (t) => {
    const entries = await service.database.wallets.readLedger(accountId, { before: null, limit: 1000 })
    const charges = entries.filter(({ kind }) => kind === 'charge')
    const used = creditsOf(rows)
    t.equal(charges.length, rows.filter(({ cost }) => cost !== '0').length, 'one charge a paid call')
    t.equal(-charges.reduce((sum, { amount }) => sum + amount, 0n), BigInt(used) * 10n ** 8n)
    t.match(await balanceOf(service, key), {
      remaining: String(CREDIT - used),
      used: String(used),
      held: '0',
    })
    t.match(await verifyWallets(service), { ok: true, differences: { length: 0 } })
  })
})
