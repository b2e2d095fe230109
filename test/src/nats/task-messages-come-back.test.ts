import t, { type Test } from 'tap'
import { SETTLEMENT_SUBJECT, TASK_SUBJECT } from '../../../schemas/events/event.ts'
import { type Delivery, type Nats, openNats } from '../../../src/nats/nats.ts'
import { startEngines } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'

const engines = await startEngines(t, { only: ['nats'] })
const silent = { info() {}, warn() {}, error() {} }
const MANY = 2_000

function open(t: Test): Nats {
  const nats = openNats({ url: engines.natsUrl, name: 'test', log: silent })
  t.teardown(() => nats.close())
  return nats
}

async function store(nats: Nats, id: string, subject: string = TASK_SUBJECT): Promise<void> {
  const tryOnce = () =>
    new Promise<boolean>((resolve) => {
      nats.publish(subject, id, Buffer.from(id), (error) => resolve(error === null))
    })
  await until('it is stored', tryOnce)
}

t.test('a task handed back with a delay comes behind what came meanwhile, and no settlement', async (t) => {
  const nats = open(t)
  await store(nats, 'a-settlement', `${SETTLEMENT_SUBJECT}.test`)
  const seen: string[] = []
  const stop = nats.consumeTasks((delivery) => {
    const id = delivery.messageId!
    seen.push(id)
    if (id === 'slow' && seen.filter((other) => other === id).length === 1) delivery.release(1_500)
    else delivery.acknowledge()
  })
  await store(nats, 'slow')
  await until('the first has come', () => seen.length === 1)
  await store(nats, 'quick')
  await until('all three have come', () => seen.length === 3)
  t.same(seen, ['slow', 'quick', 'slow'])
  stop()
})

t.test('long work on some keeps no others waiting, and what a process leaves goes to the next', async (t) => {
  const nats = open(t)
  const kept: Delivery[] = []
  let done = 0
  const stop = nats.consumeTasks((delivery) => {
    // Half of what one process may have.
    if (kept.length < 256) kept.push(delivery)
    else {
      done++
      delivery.acknowledge()
    }
  })
  await Promise.all(Array.from({ length: MANY }, (_, i) => store(nats, `task-${i}`)))
  await until('all but those that are held are done', () => done === MANY - 256)
  t.equal(kept.length, 256)
  stop()
  const heirs = new Set<string | null>()
  const other = open(t)
  const stopOther = other.consumeTasks((delivery) => {
    heirs.add(delivery.messageId)
    delivery.acknowledge()
  })
  for (const delivery of kept) delivery.release()
  // Some may go to requests that the first left open: they come again when their time to be acknowledged is over.
  await until('others have what was held', () => heirs.size >= 250)
  const left = new Set(kept.map(({ messageId }) => messageId))
  t.ok([...heirs].every((id) => left.has(id)))
  stopOther()
})
