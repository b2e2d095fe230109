import t from 'tap'
import { chooseCores, endAll, startChild } from '../../bench/harness/children.ts'
import { placementOf, startCoreLatency } from '../../bench/harness/core-latency.ts'
import { nextMessage } from '../../bench/harness/wait.ts'

const cores = chooseCores()

t.teardown(endAll)

t.test('the round trip between two cores is measured on each request', { skip: !cores }, async (t) => {
  const roundTrip = await startCoreLatency(cores!)
  for (let asked = 0; asked < 3; asked++) {
    let nanoseconds = await roundTrip()
    // Other tests may have one of the cores.
    while (nanoseconds === null) nanoseconds = await roundTrip()
    t.ok(nanoseconds > 0)
  }
})

t.test('a short round trip means a shared cache', async (t) => {
  t.same([60, 100, 500].map(placementOf), ['shared cache', 'shared cache', 'separate caches'])
})

t.test('waiting for a child that ends without an answer fails', async (t) => {
  const child = await startChild('the talker', process.execPath, ['-e', 'console.log("no more")'], {
    core: null,
    messages: true,
  })
  await t.rejects(nextMessage(child), { message: /the talker ended without an answer/ })
})
