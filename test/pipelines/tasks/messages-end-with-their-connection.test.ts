import { setImmediate as turn } from 'node:timers/promises'
import { VirtualTimeScheduler } from 'rxjs'
import t from 'tap'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import { openNats } from '../../../src/nats/nats.ts'
import { silent } from '../settlement/support.ts'

const NOBODY_LISTENS = 'nats://127.0.0.1:1'

t.test('a message is tried again while NATS is away, no more once this process has left it', async (t) => {
  const nats = openNats({ url: NOBODY_LISTENS, name: 'test', log: silent })
  const scheduler = new VirtualTimeScheduler()
  const messages = taskMessages(nats, silent, scheduler)
  messages.publish({ id: 'task_01', chain: 1 })
  await turn()
  t.equal(scheduler.actions.length, 1, 'NATS is away')
  await nats.close()
  scheduler.flush()
  await turn()
  t.equal(scheduler.actions.length, 0, 'NATS was left')
})
