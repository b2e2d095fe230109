import { setTimeout as delay } from 'node:timers/promises'
import { cpuNs, residentBytes } from '../harness/proc.ts'
import { computeQuantiles } from '../harness/statistics.ts'
import type { Options } from './options.ts'
import type { CpuUse, TaskResults } from './results.ts'
import type { Service, Upstream } from './service.ts'
import type { Counted, TaskResult } from './upstream-messages.ts'

/**
 * Many tasks in four phases: the idle service, the submits, all tasks open, and their ends. CPU comes from /proc, for
 * every process of the service and its engines. The upstream knows when each poll was due.
 */

const IDLE_MS = 5_000
const SUBMITS_AT_ONCE = 64
const SUBMIT_LIMIT_MS = 240_000
/** Extra time for ends: the longest poll interval, and some for a busy machine. */
const END_GRACE_MS = 60_000
const LOOK_MS = 250
const STEP_MS = 500
const MEBIBYTE = 2 ** 20
const NS_PER_MS = 1e6
const MS_PER_SECOND = 1_000

interface Measuring {
  readonly options: Options
  readonly service: Service
  readonly upstream: Upstream
  say(line: string): void
  /** Throws to end the work. */
  checkpoint(): void
}

const byRole = (service: Service, of: (pids: readonly number[]) => number): Record<string, number> =>
  Object.fromEntries(Object.entries(service.processes()).map(([role, pids]) => [role, of(pids)]))

/** Measures CPU during the work. */
const sumCost = async <T>(service: Service, work: () => Promise<T>): Promise<CpuUse & { value: T }> => {
  const before = byRole(service, cpuNs)
  const startedAt = performance.now()
  const value = await work()
  const seconds = (performance.now() - startedAt) / MS_PER_SECOND
  const cpuMsByRole = Object.fromEntries(
    Object.entries(byRole(service, cpuNs)).map(([role, ns]) => [
      role,
      Math.max(0, ns - (before[role] ?? 0)) / NS_PER_MS,
    ]),
  )
  return { seconds, cpuMsByRole, value }
}

const pause = async ({ checkpoint }: Measuring, ms: number): Promise<void> => {
  const until = performance.now() + ms
  for (let left = ms; left > 0; left = until - performance.now()) {
    checkpoint()
    await delay(Math.min(left, STEP_MS))
  }
}

const submitAll = async ({ service, options, checkpoint }: Measuring): Promise<void> => {
  const deadline = performance.now() + SUBMIT_LIMIT_MS
  let left = options.tasks
  const submitter = async (): Promise<void> => {
    while (left > 0) {
      checkpoint()
      if (performance.now() > deadline) throw new Error(`${left} tasks were not submitted in time`)
      left -= 1
      await service.submit()
    }
  }
  await Promise.all(Array.from({ length: Math.min(SUBMITS_AT_ONCE, left) }, submitter))
}

const untilBooked = async (of: Measuring): Promise<void> => {
  const { service, options } = of
  const deadline = performance.now() + options.spreadMs + END_GRACE_MS
  for (;;) {
    const [{ count }] = await service.sql<[{ count: bigint }]>`SELECT count(*) FROM usage_rows`
    if (Number(count) >= options.tasks) return
    if (performance.now() > deadline)
      throw new Error(`${count} of ${options.tasks} tasks were settled in time`)
    await pause(of, LOOK_MS)
  }
}

const listFailures = async (
  { service, options }: Measuring,
  taskResults: readonly TaskResult[],
): Promise<string[]> => {
  const { sql, database } = service
  const [{ rows, paid }] = await sql<[{ rows: bigint; paid: bigint }]>`
    SELECT count(*) AS rows, count(*) FILTER (WHERE status = 'success') AS paid FROM usage_rows`
  const [{ open }] = await sql<[{ open: bigint }]>`SELECT count(*) AS open FROM holds WHERE state = 'open'`
  const again = taskResults.filter(({ submits }) => submits !== 1).length
  const { ok } = await database.audits.verifyWallets()
  const failures = [
    Number(rows) === options.tasks ? null : `${rows} rows for ${options.tasks} tasks`,
    Number(paid) === options.tasks ? null : `${paid} of ${options.tasks} tasks were delivered`,
    taskResults.length === options.tasks ? null : `the upstream was given ${taskResults.length} tasks`,
    again === 0 ? null : `${again} tasks were submitted more than once`,
    open === 0n ? null : `${open} holds are open`,
    ok ? null : 'the wallets do not agree with the ledger',
  ]
  return failures.filter((failure) => failure !== null)
}

type Measured = Pick<TaskResults, 'idle' | 'submit' | 'open' | 'end' | 'failures'>

export const measure = async (of: Measuring): Promise<Measured> => {
  const { service, upstream, options, say } = of
  const { value: _, ...idle } = await sumCost(service, () => pause(of, IDLE_MS))
  const tasksMiBBefore = residentBytes(service.processes().settler ?? []) / MEBIBYTE
  say(`submitting ${options.tasks} tasks`)
  const { value: __, ...submit } = await sumCost(service, () => submitAll(of))
  say(
    `submitted in ${Math.round(submit.seconds)} s; waiting until each is ${options.ageMs / MS_PER_SECOND} s old`,
  )
  await pause(of, options.ageMs)
  say(`all tasks are open: counting polls for ${options.windowMs / MS_PER_SECOND} s`)
  const { value: counted, ...open } = await sumCost(service, async () => {
    upstream.send({ type: 'count' })
    await pause(of, options.windowMs)
    return upstream.ask<Counted>({ type: 'counted' })
  })
  const resident = byRole(service, (pids) => residentBytes(pids) / MEBIBYTE)
  say(`the upstream ends them within ${options.spreadMs / MS_PER_SECOND} s`)
  const { value: ___, ...end } = await sumCost(service, async () => {
    upstream.send({ type: 'end', spreadMs: options.spreadMs, seed: options.seed })
    await untilBooked(of)
  })
  const taskResults = await upstream.ask<TaskResult[]>({ type: 'results' })
  const rows = await service.sql<{ task_id: string; booked_at: bigint }[]>`
    SELECT task_id, booked_at FROM usage_rows`
  const bookedAt = new Map(rows.map(({ task_id, booked_at }) => [task_id, Number(booked_at)]))
  const settled = taskResults.filter(({ reference }) => bookedAt.has(reference))
  const since = (from: (one: TaskResult) => number) =>
    computeQuantiles(settled.map((one) => bookedAt.get(one.reference)! - from(one)))
  return {
    idle,
    submit,
    open: {
      ...open,
      ageSeconds: options.ageMs / MS_PER_SECOND,
      polls: counted.polls,
      lateness: computeQuantiles(counted.latenessMs),
      residentMiBByRole: resident,
      tasksMiBBefore,
    },
    end: {
      ...end,
      spreadSeconds: options.spreadMs / MS_PER_SECOND,
      endToRow: since(({ endedAt }) => endedAt),
      seenToRow: since(({ seenAt }) => seenAt),
    },
    failures: await listFailures(of, taskResults),
  }
}
