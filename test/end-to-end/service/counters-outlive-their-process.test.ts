/** Counters of `/metrics` never fall while a service runs: Prometheus would count all the rest again. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { SETTLEMENT_SUBJECT } from '../../../schemas/events/event.ts'
import { openNats } from '../../../src/nats/nats.ts'
import { startService, testConfig, until } from '../../support/service.ts'
import { gauge } from '../chaos/gauge.ts'
import { childrenOf, isRunning, type Role } from '../chaos/processes.ts'

const service = await startService(t, {
  config: testConfig({ slow: { simulate: 'tokens=20,tps=20' }, fast: { simulate: 'tokens=3' } })
    .replace(
      'models:\n',
      `$&  - { id: film, endpoint_type: videos_generations, pricing: { unit: second, per_unit: "5" } }\n`,
    )
    .concat(
      '  - { id: studio, protocol: task, base_url: "${TEST_SIMULATOR_URL}/task", api_key: test, models: { film: sim-film } }\n',
    ),
  env: { NODE_OPTIONS: `--import ${new URL('./stray-error.ts', import.meta.url).href}` },
})
const { key } = await service.newKey('1000')
const only = (role: Role): number => childrenOf(service.pid(), role)[0] ?? 0
const call = async (model: string): Promise<Response> => {
  const messages = [{ role: 'user', content: 'Hello.' }]
  return service.chat(key, { model, stream: true, messages, max_tokens: 50 })
}
const calls = (model: string) => gauge(service, `tollgate_calls_total{model="${model}",status="success"}`)
const measured = () => gauge(service, 'tollgate_call_duration_seconds_count{model="fast"}')

const replaced = (former: number) =>
  until('another gateway serves', async () => {
    if (isRunning(former)) return false
    const answer = await fetch(`${service.baseUrl}/healthz`).catch(() => null)
    return answer?.status === 200
  })

await t.test('a gateway that is killed leaves what the last scrape read', async (t) => {
  for (let at = 0; at < 3; at++) await (await call('fast')).text()
  await until('three calls', async () => (await calls('fast')) === 3)
  for (const times of [1, 2]) {
    const killed = only('gateway')
    process.kill(killed, 'SIGKILL')
    await replaced(killed)
    t.equal(await calls('fast'), 3, `killed ${times} times`)
    t.equal(await measured(), 3, 'of histograms too')
  }
  t.equal(await gauge(service, 'tollgate_draining'), 0, 'gauges are those of now')
  t.equal(await gauge(service, 'tollgate_calls_in_flight'), 0)
  await (await call('fast')).text()
  await until('one more', async () => (await calls('fast')) === 4)
})

await t.test('a gateway that drains leaves what nobody has read', async (t) => {
  const drained = only('gateway')
  const response = await call('slow')
  process.kill(drained, 'SIGUSR2')
  t.match(await response.text(), /\[DONE\]/)
  await replaced(drained)
  t.equal(await calls('slow'), 1)
  t.equal(await calls('fast'), 4)
})

await t.test('a process that ends after an error leaves what it counted', async (t) => {
  const counts = () =>
    Promise.all([
      gauge(service, 'tollgate_calls_total{model="film",status="success"}'),
      gauge(service, 'tollgate_settlements_unbooked_total{reason="malformed"}'),
    ])
  await counts()
  const body = JSON.stringify({ model: 'film', prompt: 'A door opens.', duration: 1 })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const submitted = await fetch(`${service.baseUrl}/v1/videos/generations`, { method: 'POST', headers, body })
  t.match(submitted.status, 200)
  const nats = openNats({ url: service.engines.natsUrl, name: 'test', log: console as never })
  t.teardown(() => nats.close())
  const isStored = () =>
    new Promise<boolean>((resolve) => {
      const subject = `${SETTLEMENT_SUBJECT}.test`
      nats.publish(subject, 'test.1', Buffer.from('no settlement'), (error) => resolve(error === null))
    })
  await until('the message is stored', async () => await isStored())
  await service.logs(key, (rows) => rows.some(({ model }) => model === 'film'))
  const malformed = join(service.dataDir, 'malformed-settlements.ndjson')
  await until('it is kept', () => existsSync(malformed))
  for (const role of ['tasks', 'settler'] as const) {
    const former = only(role)
    process.kill(former, 'SIGUSR2')
    await until('another one runs', () => !isRunning(former) && only(role) !== 0)
  }
  await until('it has begun', async () => (await gauge(service, 'tollgate_log_lag_seconds')) >= 0)
  t.same(await counts(), [1, 1])
})

await t.test('a process that does not answer in time is in the sum with what it said last', async (t) => {
  const settler = only('settler')
  const seconds = () => gauge(service, 'process_cpu_seconds_total')
  const before = await seconds()
  t.ok((await gauge(service, 'tollgate_log_lag_seconds')) >= 0)
  process.kill(settler, 'SIGSTOP')
  t.teardown(() => process.kill(settler, 'SIGCONT'))
  t.ok((await seconds()) >= before)
  t.same(await gauge(service, 'tollgate_log_lag_seconds'), Number.NaN, 'but its gauges are not')
})
