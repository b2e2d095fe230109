/** A service that books and works on tasks, and takes no calls: what operators ask of it. */
import t from 'tap'
import { readRunning } from '../../../src/embedded/data-dir.ts'
import { eventually, startService } from '../../support/service.ts'
import { childrenOf } from '../chaos/processes.ts'
import { isHealthy } from './container-health.ts'

const service = await startService(t, {
  env: { TOLLGATE_ROLES: 'settler,tasks', TOLLGATE_ADMIN_PORT: '0' },
})
const adminUrl = readRunning(service.dataDir)?.admin_url ?? ''
const ask = async (path: string, init?: RequestInit): Promise<string> => {
  const answer = await fetch(adminUrl + path, init)
  return `${answer.status} ${await answer.text()}`
}

await t.test('the listener for operators answers, and takes no calls', async (t) => {
  t.match(adminUrl, /^http:\/\/127\.0\.0\.1:\d+$/)
  t.equal(await ask('/healthz'), '200 ok\n')
  t.equal(await ask('/readyz'), '200 ready\n')
  t.equal(await ask('/healthz', { method: 'HEAD' }), '200 ')
  t.match(await ask('/v1/models'), /^404 /)
  t.ok(isHealthy(service.dataDir), 'to a container runtime too')
  t.match(await ask('/healthz', { method: 'POST' }), /^405 /)
})

await t.test('its metrics are those of its processes', async (t) => {
  const answer = await fetch(`${adminUrl}/metrics`)
  t.match(answer.headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
  const text = await answer.text()
  t.match(text, /^tollgate_log_lag_seconds \d/m, 'of its settler')
  t.match(text, /^tollgate_build_info\{/m)
})

await t.test('it is not ready while a process of it is away, and says which', async (t) => {
  process.kill(childrenOf(service.pid(), 'settler')[0]!, 'SIGKILL')
  const answers = (expected: string) => async () => ((await ask('/readyz')) === expected ? true : undefined)
  await eventually('not ready', answers('503 not ready: settler+tasks-0 does not run\n'))
  await eventually('ready again', answers('200 ready\n'))
  t.equal(await ask('/healthz'), '200 ok\n')
})

await t.test('the first operator is left to services with a console', async (t) => {
  t.same(await service.database.users.list(), [])
  t.equal(await service.stop(), 0)
  t.notOk(isHealthy(service.dataDir))
})
