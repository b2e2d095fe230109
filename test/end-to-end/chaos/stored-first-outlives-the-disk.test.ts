/**
 * With `settlement.durability: cluster` a call whose answer has ended is booked, although its gateway is killed and its
 * disk is gone at that moment; without NATS calls are refused. See docs/cluster.md, "Durability".
 */
import { rmSync } from 'node:fs'
import t from 'tap'
import { Random } from '../../simulation/random.ts'
import { connectTo, verifyWallets } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { eventually, startService, testConfig, until } from '../../support/service.ts'
import { say, traceOf } from '../support.ts'
import { keepCalling } from './load.ts'
import { seedNote, seeds, TIMEOUT_MS } from './plan.ts'

const MODELS = { steady: {}, cheap: { input: '31.1', output: '0.7' }, free: { input: '0', output: '0' } }
const CONFIG = testConfig(MODELS, 'settlement: { durability: cluster }')
const SHAPE = { calls: 5_000, keys: 4, rampMs: 40, streamMs: [10, 100], atOnce: 16 } as const
const ENOUGH = 80

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const engines = await startEngines(t)
    const lost = await startService(t, { engines, config: CONFIG, env: { TOLLGATE_ROLES: 'gateway' } })
    const left = await startService(t, { engines, config: CONFIG })
    const sql = connectTo(t, engines.databaseUrl)
    const keys: string[] = []
    for (let i = 0; i < SHAPE.keys; i++) keys.push((await left.newKey('1000000')).key)
    const load = keepCalling(lost, keys, new Random(seed), SHAPE)
    t.teardown(() => load.stop())
    const acknowledged = () => load.seen.filter(({ status, end }) => status === 200 && end === 'complete')
    await until('enough calls', () => acknowledged().length >= ENOUGH)
    await lost.kill()
    rmSync(lost.dataDir, { recursive: true })
    load.stop()
    await load.done

    const ids = acknowledged().map(({ requestId }) => requestId!)
    t.ok(ids.length >= ENOUGH)
    let missing = ids
    await until('every acknowledged call is booked', async () => {
      const rows = await sql<{ request_id: string }[]>`
        SELECT request_id FROM usage_rows WHERE request_id = ANY (${ids}) AND status <> 'interrupted'`
      const found = new Set(rows.map(({ request_id }) => request_id))
      missing = ids.filter((id) => !found.has(id))
      return missing.length === 0
    }).catch(() => t.same(missing, []))
    t.same((await verifyWallets(left)).differences, [])

    await t.test('without NATS calls are refused, and no answer ends', async (t) => {
      const body = { model: 'cheap', max_tokens: 10, messages: say('hello') }
      const call = () => left.chat(keys[0]!, body)
      t.equal((await call()).status, 200)
      await engines.stopEngine('nats')
      const refused = await eventually('calls are refused', async () => {
        const response = await call()
        return response.status === 503 ? response : undefined
      })
      t.match(await refused.json(), { error: { code: 'service_unavailable' } })
      await engines.startEngine('nats')
      const response = await eventually('calls are taken again', async () => {
        const response = await call()
        return response.status === 200 ? response : undefined
      })
      await response.text()
      const [row] = await eventually('the call is booked', async () => {
        const rows = await sql`SELECT status FROM usage_rows WHERE request_id = ${traceOf(response)}`
        return rows.length > 0 ? rows : undefined
      })
      t.same(row, { status: 'success' })
    })
  })
