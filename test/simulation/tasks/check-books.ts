/** The sums of a run once it is quiet: money, results, and what upstreams have begun. */
import { isFinal } from '../../../schemas/tasks/task.ts'
import { chargeMedia } from '../../../src/core/media/pricing.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { Upstream } from './upstream.ts'
import { ACCOUNT, type World } from './world.ts'

export function check(world: World, opened: bigint): void {
  const { tasks, upstream, objects, problems } = world
  let [used, held] = [0n, 0n]
  for (const task of tasks.all) {
    const rows = tasks.settlements.filter(({ task_id }) => task_id === task.id)
    const entries = tasks.entries.filter(({ ref }) => ref === task.id)
    const sum = entries.reduce((total, { amount }) => total + amount, 0n)
    if (!isFinal(task.state)) {
      problems.push(`a task is still ${task.state}`)
      held += task.hold
      continue
    }
    if (rows.length !== 1) problems.push(`a task that ended has ${rows.length} rows`)
    const owed = task.state === 'succeeded' ? owedFor(task, upstream) : 0n
    if (owed === null) problems.push('a task succeeded that no upstream finished')
    else if (-sum !== owed || BigInt(rows[0]?.cost ?? 0) !== owed)
      problems.push(`a task that ${task.state} cost ${-sum}, not ${owed}`)
    if (entries.length !== (owed === 0n ? 2 : 3)) problems.push(`a task left ${entries.length} entries`)
    used += owed ?? 0n
    for (const { key, upstream_url } of task.state === 'succeeded' ? (task.result?.files ?? []) : [])
      if (key === null ? upstream_url === null : !objects.has(key)) problems.push('a result is nowhere')
  }
  checkLost(world)
  const wallet = tasks.walletOf(ACCOUNT)
  if (wallet.held !== held || wallet.used !== used || wallet.balance !== opened - used - held)
    problems.push(
      `the wallet has ${wallet.balance} and ${wallet.held} held, ${wallet.used} used; ${used} is owed`,
    )
}

/** Nothing that an upstream has begun is forgotten, and nobody has the id of a task that there is not. */
function checkLost({ tasks, upstream, promised, findAdapter, problems }: World): void {
  const { follow } = findAdapter('')!
  for (const task of tasks.all)
    if (task.state === 'refused' && !task.isEarly && promised.has(task.id))
      problems.push('a client has the id of no task')
  if (follow === null) return
  for (const { id, reference } of upstream.works.values()) {
    const task = tasks.all.find((one) => one.id === reference)
    const isFollowed = task?.upstreamId === id && task.acceptedAt !== null
    const lost = tasks.lost.get(reference)
    if (!isFollowed && lost === undefined) problems.push('an upstream has work that nobody knows of')
    if (lost?.state === 'absent') problems.push('an upstream has work that it was said not to have')
    if (follow.find !== undefined && lost !== undefined && lost.upstreamId !== id)
      problems.push('a lost submit was not found at an upstream that can be asked')
  }
}

/** What was delivered, at the price that was agreed; null: nothing was. */
function owedFor(task: Task, { works }: Upstream): bigint | null {
  const own = [...works.values()].filter(({ reference }) => reference === task.id)
  const isPicture = task.job.work === 'image'
  const pictures = task.result?.files.length ?? 0
  const work = isPicture
    ? own.find(({ amount }) => amount === pictures)
    : own.find(({ id, end }) => id === task.upstreamId && end === 'succeeded')
  if (work === undefined || task.result === null || task.price.unit === '1M_tokens') return null
  return chargeMedia(task.price, task.job, { ...task.result, seconds: isPicture ? null : work.amount }).cost
}
