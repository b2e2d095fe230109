/** What befalls the service, and what those who ask it afterwards find. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { TASK_SUBJECT } from '../../../../schemas/events/event.ts'
import { printCredits } from '../../../../schemas/money.ts'
import { openNats } from '../../../../src/nats/nats.ts'
import type { Sql } from '../../../../src/postgres/connection.ts'
import { LOCKS } from '../../../../src/postgres/locks.ts'
import { eventually, type TestService, until } from '../../../support/service.ts'
import { childrenOf } from '../../chaos/processes.ts'
import { givenUp, longAgo, type TaskLine, taskLines } from './books.ts'

const SHOWN = 5
const FORGET_EVERY_MS = 100
const SILENT = { info() {}, warn() {}, error() {} }
/** No message of the service's own is of a later one. */
const LATER_CHAIN = 1_000

/** Once there are so many tasks at least, and all are as they are meant to be. */
export async function untilTasks(
  sql: Sql,
  what: string,
  least: number,
  isMeant: (task: TaskLine) => boolean,
): Promise<TaskLine[]> {
  let others: TaskLine[] = []
  return eventually(what, async () => {
    const tasks = await taskLines(sql)
    others = tasks.filter((task) => !isMeant(task))
    return tasks.length >= least && others.length === 0 ? tasks : undefined
  }).catch((error: Error) => {
    const shown = others
      .slice(0, SHOWN)
      .map(({ id, state, model, intent }) => `${id} ${intent} ${model}: ${state}`)
    throw new Error(`${error.message}; ${others.length} are not: ${shown.join(', ')}`)
  })
}

/** Somebody else books, until the answer is called. */
export async function holdBooking(sql: Sql): Promise<() => Promise<void>> {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let isHeld = () => {}
  const held = new Promise<void>((resolve) => {
    isHeld = resolve
  })
  const done = sql.begin(async (transaction) => {
    await transaction`SELECT pg_advisory_xact_lock(${LOCKS.booking})`
    isHeld()
    await released
  })
  await held
  return async () => {
    release()
    await done
  }
}

export const waitingForBooking = async (sql: Sql): Promise<number> =>
  (await sql`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = ${LOCKS.booking} AND NOT granted`)
    .length

/** The messages of all tasks once more, as a process that dies after a commit leaves them. */
export async function tellAgain(service: TestService, tasks: readonly TaskLine[]): Promise<void> {
  const nats = openNats({ url: service.engines.natsUrl, name: 'test', log: SILENT })
  await until('NATS is connected', () => nats.health().isConnected)
  const tell = ({ id }: TaskLine) =>
    new Promise<void>((resolve, reject) => {
      const payload = Buffer.from(JSON.stringify({ task: id, chain: LATER_CHAIN }))
      nats.publish(TASK_SUBJECT, `again.${id}`, payload, (error) =>
        error === null ? resolve() : reject(error),
      )
    })
  await Promise.all(tasks.map(tell)).finally(() => nats.close())
}

/** Epoch milliseconds at which a process of the role was killed last. */
export type Killed = Record<'gateway' | 'tasks', number>

/**
 * From the times on that are set in the answer, nobody waits for what the killed ones had begun. Looked for again and
 * again: PostgreSQL may carry out a statement of theirs when they are gone.
 */
export function forgettingKilled(t: Test, sql: Sql): Killed {
  const killed = { gateway: 0, tasks: 0 }
  const timer = setInterval(() => {
    void longAgo(sql, killed.tasks).execute()
    void givenUp(sql, killed.gateway).execute()
  }, FORGET_EVERY_MS)
  t.teardown(() => clearInterval(timer))
  return killed
}

export async function restart(service: TestService, betweenMs: number): Promise<Killed> {
  await service.kill()
  const killedAt = Date.now()
  await sleep(betweenMs)
  await service.start()
  return { gateway: killedAt, tasks: killedAt }
}

/** The supervisor starts another in its place. */
export async function killChild(service: TestService, role: keyof Killed): Promise<Partial<Killed>> {
  const [pid] = await eventually(`there is a process of the role ${role}`, () => {
    const pids = childrenOf(service.pid(), role)
    return pids.length > 0 ? pids : undefined
  })
  process.kill(pid!, 'SIGKILL')
  const killedAt = Date.now()
  await until('another is in its place', () => {
    const [next] = childrenOf(service.pid(), role)
    return next !== undefined && next !== pid
  })
  return { [role]: killedAt }
}

/** What a wallet must show: the sum of its ledger, and of its open holds. */
export async function expectedBalance(sql: Sql, accountId: string) {
  const [row] = await sql<[{ remaining: bigint; held: bigint }]>`
    SELECT sum(amount)::bigint AS remaining,
      (SELECT coalesce(sum(amount), 0)::bigint FROM holds WHERE account_id = ${accountId} AND state = 'open') AS held
    FROM ledger_entries WHERE account_id = ${accountId}`
  return { remaining: printCredits(row.remaining), held: printCredits(row.held) }
}

/** What runs for ever there comes to its end now; what has ended, or is not there, stays as it is. */
export const endUpstream = (service: TestService, id: string) =>
  fetch(`${service.engines.simulatorUrl}/simulator/tasks/${id}/end`, { method: 'POST' })
