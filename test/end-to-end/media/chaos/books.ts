/** What PostgreSQL and the upstream say of every task, and whether they say the same. */
import type { Test } from 'tap'
import type { TaskState } from '../../../../schemas/tasks/task.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import type { Sql } from '../../../../src/postgres/connection.ts'
import { untilCopied, verifyWallets } from '../../../support/connections.ts'
import { eventually, type TestService } from '../../../support/service.ts'

export interface TaskLine {
  readonly id: string
  readonly state: TaskState
  readonly model: string
  readonly intent: string
  readonly requestId: string
  readonly upstreamId: string | null
  readonly hold: bigint
  readonly cost: bigint | null
  readonly keys: readonly (string | null)[]
}

/** Every task, the oldest first. */
export async function taskLines(sql: Sql): Promise<TaskLine[]> {
  const rows = await sql<
    (Omit<TaskLine, 'keys' | 'intent'> & {
      words: string
      files: { key: string | null }[] | null
    })[]
  >`
    SELECT id, state, model, request_id AS "requestId", upstream_id AS "upstreamId", hold, cost, job::text AS words,
      result->'files' AS files FROM tasks ORDER BY id`
  return rows.map(({ words, files, ...row }) => ({
    ...row,
    intent: /intent-[a-z0-9]+/.exec(words)?.[0] ?? '',
    keys: (files ?? []).map(({ key }) => key),
  }))
}

/** What takes minutes in life takes none here: processes that worked on tasks until then have been silent for long. */
export const longAgo = (sql: Sql, until: number) =>
  sql`UPDATE tasks SET touched_at = touched_at - 600000 WHERE ended_at IS NULL AND touched_at <= ${until}`

/** Behind its prefix and its time. */
const TIME_IN_ID_END = 'req_'.length + 10

/** The same for a gateway: what it claimed for requests that came until then is given up. */
export const givenUp = (sql: Sql, until: number) => sql`
  UPDATE idempotency_records SET frees_at = now()
  WHERE state = 'running' AND request_id COLLATE "C" < ${newId('req', until + 1).slice(0, TIME_IN_ID_END)}`

interface Lost {
  readonly task_id: string
  readonly state: string
  readonly upstream_id: string | null
}

/** Records of lost submits, once the provider of this model has been asked about each of its own. */
export const lostSubmits = (sql: Sql, canBeAsked: string): Promise<Lost[]> =>
  eventually('lost submits are looked up', async () => {
    // A process that was killed had claimed some.
    await sql`UPDATE lost_submits SET next_check_at = 1 WHERE state = 'open' AND next_check_at IS NOT NULL`
    const lost = await sql<(Lost & { model: string })[]>`
      SELECT task_id, state, upstream_id, model FROM lost_submits`
    return lost.every(({ state, model }) => state !== 'open' || model !== canBeAsked) ? lost : undefined
  })

interface Submit {
  readonly dialect: string
  readonly reference: string | null
  readonly task_id: string | null
}
interface UpstreamTask {
  readonly id: string
  readonly dialect: string
  readonly reference: string | null
  readonly state: string
}

async function upstream(service: TestService): Promise<{ submits: Submit[]; made: UpstreamTask[] }> {
  const read = async (path: string) => (await fetch(service.engines.simulatorUrl + path)).json()
  return {
    submits: (await read('/simulator/submits')) as Submit[],
    made: (await read('/simulator/tasks')) as UpstreamTask[],
  }
}

const countBy = <T>(all: readonly T[], nameOf: (one: T) => string | null): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const one of all) {
    const name = nameOf(one)
    if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}

const SHOWN = 10
const some = <T>(all: readonly T[]): T[] => all.slice(0, SHOWN)

/**
 * Nothing is open any more: each task has one row and at most one charge, and no upstream was asked twice. `linked` are
 * tasks whose files could not be stored. `lost` are the records of submits of which nobody knew what became.
 */
export async function checkBooks(
  t: Test,
  service: TestService,
  sql: Sql,
  { linked = new Set(), lost = [] }: { linked?: ReadonlySet<string>; lost?: readonly Lost[] } = {},
): Promise<TaskLine[]> {
  const tasks = await taskLines(sql)
  await checkMoney(t, sql, tasks)
  const unkept = tasks.filter(
    ({ id, state, keys }) => state === 'succeeded' && !linked.has(id) && (!keys[0] || keys.includes(null)),
  )
  t.same(some(unkept), [], 'what was delivered is in the store')
  await checkUpstream(t, service, tasks, lost)
  await untilCopied(sql)
  t.same(some((await verifyWallets(service)).differences), [], 'the audit of the wallets finds no difference')
  return tasks
}

async function checkMoney(t: Test, sql: Sql, tasks: readonly TaskLine[]): Promise<void> {
  const [{ open }] = await sql<[{ open: bigint }]>`SELECT count(*) AS open FROM holds WHERE state = 'open'`
  t.equal(open, 0n, 'no hold is open')
  const [{ held }] = await sql<[{ held: bigint }]>`SELECT coalesce(sum(held), 0)::bigint AS held FROM wallets`
  t.equal(held, 0n, 'no wallet holds anything')
  const booked = await sql<{ task_id: string | null; request_id: string; cost: bigint; status: string }[]>`
    SELECT task_id, request_id, cost, status FROM usage_rows
    WHERE task_id IS NOT NULL OR request_id = ANY(${tasks.map(({ requestId }) => requestId)})`
  const row = new Map(booked.map((one) => [one.request_id, one]))
  t.equal(row.size, booked.length, 'no task has two rows')
  const entries = await sql<{ ref: string; kind: string; amount: bigint }[]>`
    SELECT ref, kind, amount FROM ledger_entries WHERE ref = ANY(${tasks.map(({ id }) => id)})`
  const wrong = tasks.filter((task) => {
    const own = entries.filter(({ ref }) => ref === task.id)
    const charges = own.filter(({ kind }) => kind === 'charge').length
    const sum = own.reduce((total, { amount }) => total + amount, 0n)
    const hasSucceeded = task.state === 'succeeded'
    // What was ordered is what the simulated provider delivers.
    const cost = hasSucceeded ? task.hold : 0n
    const { status, cost: bookedCost, task_id } = row.get(task.requestId) ?? {}
    // A request may be refused before it is known whether its task was created: the row of the request is then the only one.
    const isOwn = task_id === task.id || (task_id === null && task.state === 'refused')
    return !(
      sum === -cost &&
      charges === (cost > 0n ? 1 : 0) &&
      bookedCost === cost &&
      isOwn &&
      (status === 'success') === hasSucceeded
    )
  })
  t.same(some(wrong), [], 'each has one row, and is charged once what it delivered, or nothing')
}

async function checkUpstream(
  t: Test,
  service: TestService,
  tasks: readonly TaskLine[],
  records: readonly Lost[],
): Promise<void> {
  const { submits, made } = await upstream(service)
  const twice = [...countBy(submits, ({ reference }) => reference)].filter(([, count]) => count > 1)
  t.same(some(twice), [], 'no reference was submitted twice')
  // Where an upstream takes no reference the intent is the name of its task: one for each of ours at most.
  const ours = countBy(tasks, ({ intent }) => intent)
  const theirs = countBy(made, ({ id }) => /intent-[a-z0-9]+/.exec(id)?.[0] ?? null)
  t.same(
    some([...theirs].filter(([intent, count]) => count > (ours.get(intent) ?? 0))),
    [],
    'no upstream has more tasks of an intent than there are here',
  )
  const byUpstreamId = new Map(tasks.map((task) => [task.upstreamId, task]))
  const byId = new Map(tasks.map((task) => [task.id, task]))
  const recorded = new Set(records.map(({ task_id }) => task_id))
  const unknown = made.filter(({ id, reference, state }) => {
    const task = reference === null ? byUpstreamId.get(id) : byId.get(reference)
    // One that was cut off at an upstream that cannot be asked: the record has no id of it.
    if (task === undefined) return reference !== null
    if (task.state === 'refused') return !recorded.has(task.id)
    return (state === 'succeeded') !== (task.state === 'succeeded')
  })
  t.same(some(unknown), [], 'what an upstream has done is delivered, or on a record for operators')
  const denied = records.filter(
    ({ task_id, state }) => state === 'absent' && made.some(({ reference }) => reference === task_id),
  )
  t.same(some(denied), [], 'no record says of work that is there that it is not')
  const intents = countBy(
    tasks.filter(({ state }) => state === 'succeeded'),
    ({ intent }) => intent,
  )
  t.same(some([...intents].filter(([, count]) => count > 1)), [], 'no intent was carried out twice')
}
