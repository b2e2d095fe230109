/** A process that is ready the moment at which its supervisor gives it up. */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Boot } from '../../../src/server/messages.ts'
import { ServiceChild } from '../../../src/server/supervisor/children.ts'
import { until } from '../../support/eventually.ts'

const READY_BOUND_MS = 30_000
/** Long enough for a child to see that it may be ready, and for another to be started. */
const A_WHILE_MS = 2_000

t.test('is replaced by one process, not by two', async (t) => {
  const folder = t.testdir({})
  process.env.LATE_CHILD_FOLDER = folder
  const program = process.argv[1]!
  process.argv[1] = fileURLToPath(new URL('./late-child.ts', import.meta.url))
  t.teardown(() => {
    process.argv[1] = program
  })
  let giveUp = () => {}
  const later = setTimeout
  t.intercept(globalThis, 'setTimeout', {
    value: (work: () => void, ms: number) => {
      if (ms === READY_BOUND_MS) giveUp = work
      return later(work, ms)
    },
  })
  const child = new ServiceChild({
    boot: { role: 'settler', index: 0 } as Boot,
    log: { debug() {}, info() {}, error() {} },
    onMessage() {},
    onReady() {},
  })
  t.teardown(() => child.drain(0))
  const started = () => readdirSync(folder).filter((name) => name.startsWith('process-')).length
  await child.start()
  process.kill(child.pid!, 'SIGKILL')
  await until('another process is on its way', () => started() === 2)

  writeFileSync(join(folder, 'go'), '')
  const blockedUntil = performance.now() + A_WHILE_MS
  while (performance.now() < blockedUntil);
  giveUp()
  await until('a third one is ready', () => started() >= 3 && child.isReady)
  await sleep(A_WHILE_MS)
  t.equal(started(), 3)
})
