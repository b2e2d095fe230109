import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { testDataDir } from '../../support/engines.ts'
import { startService, until } from '../../support/service.ts'
import { childrenOf } from '../chaos/processes.ts'
import { serveProcess } from './serve-process.ts'

t.test('a broken configuration: every problem is printed, and nothing was started', async (t) => {
  const cwd = await testDataDir(t)
  writeFileSync(
    join(cwd, 'tollgate.yaml'),
    'models:\n  - { id: "no price" }\n  - id: 7\nchannels:\n  - { id: c, protocol: none, base_url: no-url }\nsurplus: 1\n',
  )
  const serve = serveProcess(t, { cwd, env: { LOG_LEVEL: 'debug' } })
  t.equal(await serve.ended, 1)
  for (const line of [
    'tollgate.yaml:3',
    'tollgate.yaml:5',
    'tollgate.yaml:6',
    'base_url',
    'protocol',
    'surplus',
  ])
    t.match(serve.stderr(), line)
  t.notMatch(serve.stderr(), 'Engine started')
  t.equal(serve.stdout(), '')
})

t.test('settings that make no sense: every one is named', async (t) => {
  const cwd = await testDataDir(t)
  const env = { TOLLGATE_PORT: 'eighty', TOLLGATE_WORKERS: '0', DATABASE_URL: 'postgres://127.0.0.1:1/none' }
  const serve = serveProcess(t, { cwd, env })
  t.equal(await serve.ended, 1)
  for (const name of ['TOLLGATE_PORT', 'TOLLGATE_WORKERS']) t.match(serve.stderr(), name)
})

t.test('a port that was asked for by name and is taken', async (t) => {
  const cwd = await testDataDir(t)
  const holder = createServer().listen(0, '127.0.0.1')
  t.teardown(() => holder.close())
  await once(holder, 'listening')
  const address = holder.address()
  const port = typeof address === 'object' ? String(address?.port) : ''
  const serve = serveProcess(t, { cwd, env: { TOLLGATE_PORT: port } })
  t.equal(await serve.ended, 1)
  t.match(serve.stderr(), new RegExp(`port ${port}: the port is taken.*TOLLGATE_PORT`))
})

t.test('an engine of the operator that is not there', async (t) => {
  const cwd = await testDataDir(t)
  const url = 'postgres://u:a-secret@127.0.0.1:1/none'
  const env = { DATABASE_URL: url, TOLLGATE_MASTER_KEY: '00'.repeat(32), TOLLGATE_PORT: '0' }
  const serve = serveProcess(t, {
    cwd,
    env: { ...env, NATS_URL: 'nats://127.0.0.1:1', CLICKHOUSE_URL: 'http://127.0.0.1:1' },
  })
  t.equal(await serve.ended, 1)
  t.match(serve.stderr(), /PostgreSQL at 127\.0\.0\.1:1\/none .*ECONNREFUSED.*DATABASE_URL/)
  t.notMatch(serve.stderr(), 'a-secret')
})

t.test('a data directory that another service holds, and the address for the command line', async (t) => {
  const service = await startService(t, { env: { TOLLGATE_PUBLIC_URL: 'https://gateway.example' } })
  const second = serveProcess(t, { cwd: service.dataDir, env: { TOLLGATE_DATA_DIR: service.dataDir } })
  t.equal(await second.ended, 1)
  t.match(second.stderr(), `process ${service.pid()}`, 'says who')
  t.match(second.stderr(), service.baseUrl, 'and where')
  t.match(service.baseUrl, /^http:\/\/127\.0\.0\.1:\d+$/, 'run.json has the address on this machine')
  await until('the banner', () => service.output().includes('Stop with Ctrl-C'))
  t.match(service.output(), 'https://gateway.example/v1', 'people see the public one')
  t.match(service.output(), service.baseUrl, 'and the local one')
  t.equal((await fetch(`${service.baseUrl}/healthz`)).status, 200, 'the first one serves on')
  t.equal(childrenOf(service.pid(), 'gateway').length, 1)
})
