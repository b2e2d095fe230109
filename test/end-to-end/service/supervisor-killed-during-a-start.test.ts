/** A process whose supervisor is killed while it starts ends by itself. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { startEngines } from '../../support/engines.ts'
import { eventually, startService, until } from '../../support/service.ts'
import { childrenOf, isRunning } from '../chaos/processes.ts'

/** A process names itself once it has its settings. */
const hasBegun = (pid: number): boolean =>
  readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('tollgate:')

t.test('a gateway that starts ends with its supervisor, and the next start works', async (t) => {
  const engines = await startEngines(t)
  const service = await startService(t, { engines })
  const { key } = await service.newKey('1000')
  // A start waits for NATS: long enough to be hit.
  await engines.stopEngine('nats')
  const [former = 0] = childrenOf(service.pid(), 'gateway')
  process.kill(former, 'SIGKILL')
  const starting = await eventually('another starts', () =>
    childrenOf(service.pid(), 'gateway').find((pid) => pid !== former && hasBegun(pid)),
  )
  t.teardown(() => isRunning(starting) && process.kill(starting, 'SIGKILL'))
  process.kill(service.pid(), 'SIGKILL')
  await until('it has ended', () => !isRunning(starting))
  await engines.startEngine('nats')
  await service.start()
  t.match(await service.get(key, '/v1/key/balance'), { status: 200 })
})
