// What the simulation takes for PostgreSQL answers as PostgreSQL does: the same steps, drawn from seeds, on both.
import t from 'tap'
import { isFinal, TASK_EVENTS, TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Tasks } from '../../../src/postgres/tasks/repository.ts'
import type { NewTask, Task } from '../../../src/postgres/tasks/types.ts'
import { newAccount, startDatabase } from '../../src/postgres/support.ts'
import { move, newVideo } from '../../src/postgres/tasks/support.ts'
import { Random } from '../random.ts'
import { MemoryTasks } from './memory-tasks.ts'

const SEEDS = 6
const STEPS = 60
const { database } = await startDatabase(t)

/** What a step answered, without what only the two clocks make different. */
function comparable(answer: unknown): unknown {
  return JSON.parse(
    JSON.stringify(answer, (key, value) => {
      if (key === 'wallet' && value !== null) return { ...value, version: undefined }
      return typeof value === 'bigint' ? String(value) : value
    }),
  )
}

t.test('whatever is asked in whatever order, both answer the same', async (t) => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = new Random(seed)
    const accountId = await newAccount(database, 1n)
    const memory = new MemoryTasks()
    memory.openWallet(accountId, (await database.wallets.read([accountId]))[0]!.balance)
    const made: NewTask[] = []
    const seen = new Map<string, Task>()
    const own = (ids: readonly string[]) => ids.filter((id) => made.some((task) => task.id === id))
    const both = async (what: string, ask: (tasks: Tasks) => Promise<unknown>) => {
      const [real, model] = [comparable(await ask(database.tasks)), comparable(await ask(memory))]
      t.same(model, real, `seed ${seed}: ${what}`)
    }
    const begin = Date.now()
    for (let step = 0; step < STEPS; step++) {
      const now = begin + step * 1_000
      const some = made.length === 0 ? null : random.pick(made)
      switch (random.int(0, 7)) {
        case 0:
        case 1: {
          const key = random.chance(0.5) ? null : `key-${random.int(1, 3)}`
          const requestHash = Buffer.alloc(32, random.int(1, 2))
          const scope = `account:${accountId}` as const
          const task = newVideo(accountId, {
            hold: BigInt(random.int(0, 40_000_000)),
            submittedAt: now,
            deadlineAt: now + random.int(1, 100) * 1_000,
            idempotency: key === null ? null : { scope, key, requestHash, requestId: 'req_1' },
          })
          if (key !== null)
            t.equal(memory.isAnswered(scope, key), await database.idempotency.isAnswered(scope, key))
          await both('create', (tasks) => tasks.create(task))
          const [stored] = await database.tasks.read([task.id])
          if (stored !== undefined) {
            made.push(task)
            seen.set(task.id, stored)
          }
          break
        }
        case 2:
          if (some !== null) await both('create again', (tasks) => tasks.create(some))
          break
        case 3:
        case 4: {
          if (some === null) break
          // Now and then a version that is old.
          const task = random.chance(0.2) ? seen.get(some.id)! : (await database.tasks.read([some.id]))[0]!
          const table = TASK_RULES.video.transitions[task.state]
          const event = random.pick(TASK_EVENTS)
          if (isFinal(task.state) || table[event] === null) break
          const cost = table[event]?.money === 'charge' ? BigInt(random.int(0, 1_000)) : 0n
          const step = { ...move(task, event, { upstreamState: `at ${now}` }, cost), at: now }
          await both(event, (tasks) => tasks.applyTransition(step))
          break
        }
        case 5: {
          const ids = made.map(({ id }) => id).filter(() => random.chance(0.3))
          await database.tasks.touch(ids, now)
          await memory.touch(ids, now)
          await both('overdue', async (tasks) => own(await tasks.findOverdue(now, 1_000)).sort())
          break
        }
        case 6: {
          const newBefore = now - random.pick([0, 500, 5_000])
          await both('neglected', async (tasks) =>
            (await tasks.claimStale(now - 5_000, now, 1_000, newBefore))
              .filter(({ id }) => made.some((task) => task.id === id))
              .sort((a, b) => (a.id < b.id ? -1 : 1)),
          )
          break
        }
        default: {
          const before = some?.id ?? null
          const query = { accountId, kind: 'video', states: null, before, limit: random.int(1, 5) } as const
          await both('list', (tasks) => tasks.list(query))
          if (some !== null) {
            await both('delete', (tasks) => tasks.deleteRecord(accountId, 'video', some.id, now))
            await both('find', (tasks) => tasks.find(accountId, 'video', some.id))
          }
        }
      }
      const ids = made.map(({ id }) => id)
      await both('read', async (tasks) => (await tasks.read(ids)).sort((a, b) => (a.id < b.id ? -1 : 1)))
    }
    const [wallet] = await database.wallets.read([accountId])
    const { balance, held, used } = memory.walletOf(accountId)
    t.match(wallet, { balance, held, used })
    // So that the next seed meets none of them.
    for (const { id } of made) {
      const [task] = await database.tasks.read([id])
      if (task !== undefined && !isFinal(task.state))
        await database.tasks.applyTransition(move(task, task.state === 'storing' ? 'stored' : 'failed'))
    }
  }
  t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
})
