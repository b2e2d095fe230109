/** A machine that has no room for another process: no process begins, and none exits. */
import t from 'tap'
import type { Boot } from '../../../src/server/messages.ts'
import { ServiceChild } from '../../../src/server/supervisor/children.ts'

t.test('it is an error of the start, and there is nothing to wait for at the end', async (t) => {
  t.intercept(process, 'execPath', { value: '/nowhere/node' })
  const child = new ServiceChild({
    boot: { role: 'settler', index: 0 } as Boot,
    log: { debug() {}, info() {}, error() {} },
    onMessage() {},
    onReady() {},
  })
  await t.rejects(child.start(), { message: 'settler-0 could not be started: spawn /nowhere/node ENOENT' })
  t.equal(child.pid, null)
  await child.drain(0)
})
