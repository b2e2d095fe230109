import { statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readRunning } from '../../../src/embedded/data-dir.ts'
import { eventually, startService, type TestService, until } from '../../support/service.ts'
import { balanceOf, callConfig, say, secretsIn, traceOf } from '../support.ts'

/** It stands there a moment after the service runs, once for each start. */
const banners = (service: TestService, starts: number) =>
  until('the banner', () => service.output().split('Stop with Ctrl-C').length > starts)

t.test('with an embedded PostgreSQL, the first key is in run.json and in nothing printed', async (t) => {
  const service = await startService(t, {
    config: callConfig({ fast: { simulate: 'tokens=2' } }, 'trial_credit: "121.32"').replace(
      /1000000"|2000000"/g,
      '10"',
    ),
    env: { DATABASE_URL: '', LOG_LEVEL: 'trace' },
  })
  await banners(service, 1)
  const key = readRunning(service.dataDir)?.first_key
  if (typeof key !== 'string') throw new Error('no key in run.json')
  t.match(key, /^sk-tollgate-[0-9a-f]{64}$/)
  t.equal(statSync(join(service.dataDir, 'run.json')).mode & 0o777, 0o600)
  t.ok(service.output().includes(`first_key in ${join(service.dataDir, 'run.json')}`))
  t.match(service.output(), /Balance +121\.32 credits/)
  t.match(service.output(), new RegExp(`curl -N ${service.baseUrl}/v1/chat/completions`))

  t.match(await balanceOf(service, key), { remaining: '121.32', used: '0' })
  const body = { model: 'fast', messages: say('hi'), stream: true }
  const response = await service.chat(key, body, { headers: { 'x-api-key': key } })
  t.equal(response.status, 200)
  await response.text()
  // The service has its own database, so this test cannot tell whether ClickHouse has the row.
  const row = await eventually('the row of the call', async () => {
    const log = await service.get(key, `/v1/logs?ref=${traceOf(response)}`)
    return ((await log.json()) as { data: unknown[] }).data[0]
  })
  t.match(row, { status: 'success', cost: '0.0001' })
  await (await fetch(`${service.baseUrl}/v1/logs?key=${key}&limit=x`)).text()
  await (await service.chat(key.replace(/.$/, 'x'), body)).text()

  t.notOk(service.output().includes(key))
  t.same(secretsIn(service, []), [])
  t.equal(await service.stop(), 0)

  await service.start()
  await banners(service, 2)
  t.equal(readRunning(service.dataDir)?.first_key, key, 'the next start names the same key again')
  t.equal((await balanceOf(service, key)).used, '0.0001')
})
