/**
 * Events reach every receiver although the processes that deliver them are killed: each at least once, under one id.
 * `TEST_EVENTS` sets how many.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { until } from '../../support/eventually.ts'
import { startNotifications, startReceiver } from './support.ts'

const USUAL_EVENTS = 1_000
const EVENTS = Number(process.env.TEST_EVENTS ?? USUAL_EVENTS)
const RECEIVERS = 4
const KILLS = 2
const BOUND_MS = 900_000 * Math.max(1, EVENTS / USUAL_EVENTS)
const CHILD = fileURLToPath(new URL('./delivery-child.ts', import.meta.url))

const bench = await startNotifications(t)
const settings = join(t.testdir({}), 'settings.json')
await writeFile(
  settings,
  JSON.stringify({
    databaseUrl: bench.serviceUrl,
    natsUrl: bench.engines.natsUrl,
    masterKey: bench.masterKey.toString('base64'),
  }),
)
const children = new Set<ChildProcess>()
t.teardown(() => {
  for (const child of children) child.kill('SIGKILL')
})
function startChild(): ChildProcess {
  const child = spawn(process.execPath, [CHILD, settings], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  children.add(child)
  return child
}

t.setTimeout(BOUND_MS + 10_000)
t.test(`${EVENTS} events, ${KILLS} kills`, async (t) => {
  const receivers = await Promise.all(Array.from({ length: RECEIVERS }, () => startReceiver(t)))
  const accountId = await bench.newAccount()
  for (const { url } of receivers) await bench.newEndpoint(accountId, url)
  const startedAt = Date.now()
  const ids = await bench.record(accountId, EVENTS)
  const received = () => receivers.reduce((sum, one) => sum + one.received.length, 0)
  let child = startChild()
  for (let kill = 1; kill <= KILLS; kill++) {
    const share = (EVENTS * RECEIVERS * kill) / (KILLS + 1)
    await until(`${share} webhooks`, () => received() >= share, BOUND_MS)
    child.kill('SIGKILL')
    await once(child, 'exit')
    child = startChild()
  }
  const seen = () => receivers.map((one) => new Set(one.received.map(({ headers }) => headers['webhook-id'])))
  await until('each event at each receiver', () => seen().every(({ size }) => size >= EVENTS), BOUND_MS)
  for (const set of seen()) t.same([...set].sort(), [...ids].sort(), 'every id, and no other')
  for (const { received: hooks } of receivers) {
    const bodies = new Map(hooks.map(({ headers, body }) => [headers['webhook-id'], body]))
    t.ok(
      hooks.every(({ headers, body }) => bodies.get(headers['webhook-id']) === body),
      'what comes twice is the same',
    )
  }
  await until(
    'nothing waits',
    async () => (await bench.sql`SELECT FROM deliveries WHERE state <> 'delivered' LIMIT 1`).length === 0,
    BOUND_MS,
  )
  t.comment(`${received()} webhooks for ${EVENTS * RECEIVERS}, in ${Date.now() - startedAt} ms`)
})
