import t from 'tap'
import { chooseCores, endAll, startChild } from '../../bench/harness/children.ts'
import { placeOf, startCoreDistance } from '../../bench/harness/core-latency.ts'
import { nextMessage } from '../../bench/harness/wait.ts'

const cores = chooseCores()

t.teardown(endAll)

t.test('a word comes back from the other core, each time it is asked for', { skip: !cores }, async (t) => {
  const distance = await startCoreDistance(cores!)
  for (let asked = 0; asked < 3; asked++) {
    let nanoseconds = await distance()
    // Other tests may have one of the cores.
    while (nanoseconds === null) nanoseconds = await distance()
    t.ok(nanoseconds > 0)
  }
})

t.test('cores that share a cache are near', async (t) => {
  t.same([60, 100, 500].map(placeOf), ['near', 'near', 'far'])
})

t.test('a child that ends in place of an answer fails who waits', async (t) => {
  const child = await startChild('the talker', process.execPath, ['-e', 'console.log("no more")'], {
    core: null,
    messages: true,
  })
  await t.rejects(nextMessage(child), { message: /the talker ended without an answer/ })
})
