/**
 * A task ends once and is made once, however many ask; and a refund leaves used what was charged.
 * See docs/failure-modes.md, "Money", rows 16, 17 and 20.
 */
import t from 'tap'
import { ONE_CREDIT } from '../../../../schemas/money.ts'
import type { TaskState } from '../../../../schemas/tasks/task.ts'
import { parseExactJson } from '../../../../src/core/json/exact.ts'
import type { NewTask, Task } from '../../../../src/postgres/tasks/types.ts'
import { newAccount, settlement, startDatabase } from '../support.ts'
import { created, move, newVideo, RESULT } from './support.ts'

const POLLERS = 20
const { database, sql } = await startDatabase(t)

const made = (accountId: string, more = {}) => created(database, newVideo(accountId, more))

async function moved(
  task: Task,
  ...steps: Parameters<typeof move> extends [Task, ...infer Rest] ? [Rest[0]][] : never
) {
  let current = task
  for (const [event] of steps) current = (await database.tasks.applyTransition(move(current, event))).task
  return current
}

const intentOf = (accountId: string, key: string) => ({
  scope: `account:${accountId}` as const,
  key,
  requestId: 'req_first',
  requestHash: Buffer.alloc(32, 1),
})

const walletOf = async (accountId: string) => (await database.wallets.read([accountId]))[0]!

t.test('a task and its hold come to be together, or neither does', async (t) => {
  const accountId = await newAccount(database, 1n)
  const task = newVideo(accountId, { hold: ONE_CREDIT - 1n })
  const outcome = await database.tasks.create(task)
  t.match(outcome, {
    outcome: 'created',
    task: { id: task.id, state: 'waiting', version: 1, chain: 0, attempts: { length: 0 } },
  })
  t.match(await walletOf(accountId), { balance: 1n, held: ONE_CREDIT - 1n, used: 0n })
  const second = await database.tasks.create(newVideo(accountId, { hold: 2n }))
  t.match(second, { outcome: 'insufficient', wallet: { balance: 1n } })
  t.equal((await sql`SELECT 1 FROM tasks WHERE account_id = ${accountId}`).count, 1)
  const again = await database.tasks.create(task)
  t.match(again, { outcome: 'created', task: { id: task.id } }, 'an answer that was lost is given again')
  t.match(await walletOf(accountId), { balance: 1n, held: ONE_CREDIT - 1n })
  t.ok((await database.audits.verifyWallets()).ok)
})

t.test('a task keeps the digits of the numbers that its client sent', async (t) => {
  const extra = parseExactJson(
    '{"guidance":9007199254740993,"deep":[1e400,0.12345678901234567891,0.1]}',
  ) as object
  const task = newVideo(await newAccount(database))
  await database.tasks.create({ ...task, job: { ...task.job, extra } as NewTask['job'] })
  const found = (await database.tasks.find(task.accountId, 'video', task.id))!
  t.equal(JSON.stringify((found.job as { extra?: unknown }).extra), JSON.stringify(extra))
})

t.test('twenty that end one task at once: one does, and it is charged once', async (t) => {
  const accountId = await newAccount(database)
  const before = await walletOf(accountId)
  const storing = await moved(await made(accountId), ['claimed'], ['accepted'], ['produced'])
  const outcomes = await Promise.all(
    Array.from({ length: POLLERS }, () =>
      database.tasks.applyTransition(move(storing, 'stored', { result: RESULT }, 320n)),
    ),
  )
  t.equal(outcomes.filter(({ outcome }) => outcome === 'moved').length, 1)
  for (const { task } of outcomes)
    t.match(task, { state: 'succeeded', cost: 320n, version: storing.version + 1 })
  const entries = await sql`SELECT kind, amount FROM ledger_entries WHERE ref = ${storing.id} ORDER BY id`
  t.same(
    entries.map(({ kind, amount }) => [kind, amount]),
    [
      ['hold', -500n],
      ['release', 500n],
      ['charge', -320n],
    ],
  )
  t.match(await walletOf(accountId), { balance: before.balance - 320n, held: 0n, used: 320n })
  const rows = await sql`SELECT cost, task_id FROM usage_rows WHERE task_id = ${storing.id}`
  t.same([...rows], [{ cost: 320n, task_id: storing.id }])
  t.match(await database.calls.find(storing.id), {
    call: { request_id: storing.requestId, task_id: storing.id },
    hold: { state: 'settled', charged: 320n },
    entries: { length: 3 },
  })
  t.ok((await database.audits.verifyWallets()).ok)
})

t.test('twenty that refund, expire and settle at once: one does, and nothing else is left', async (t) => {
  const accountId = await newAccount(database)
  const running = await moved(await made(accountId), ['claimed'], ['started'])
  const outcomes = await Promise.all(
    Array.from({ length: POLLERS }, (_, i) =>
      database.tasks.applyTransition(move(running, (['failed', 'deadline', 'cancelled'] as const)[i % 3]!)),
    ),
  )
  const [winner, ...others] = outcomes.filter(({ outcome }) => outcome === 'moved')
  t.same(others, [])
  for (const { task } of outcomes) t.equal(task.state, winner!.task.state)
  t.match(await walletOf(accountId), { held: 0n, used: 0n, balance: 1000n * ONE_CREDIT })
  const entries = await sql`SELECT kind, amount FROM ledger_entries WHERE ref = ${running.id} ORDER BY id`
  t.same(
    entries.map(({ kind, amount }) => [kind, amount]),
    [
      ['hold', -500n],
      ['refund', 500n],
    ],
  )
  t.ok((await database.audits.verifyWallets()).ok)
})

t.test('one intent makes one task, however many ask at once; another of its key is an error', async (t) => {
  const accountId = await newAccount(database)
  const idempotency = intentOf(accountId, 'retry-1')
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, () => database.tasks.create(newVideo(accountId, { idempotency }))),
  )
  t.equal(outcomes.filter(({ outcome }) => outcome === 'created').length, 1)
  t.equal(outcomes.filter(({ outcome }) => outcome === 'existing').length, 9)
  t.equal(new Set(outcomes.map((outcome) => 'task' in outcome && outcome.task.id)).size, 1)
  const other = { ...idempotency, requestHash: Buffer.alloc(32, 2) }
  t.same(await database.tasks.create(newVideo(accountId, { idempotency: other })), { outcome: 'reused_key' })
  t.match(await walletOf(accountId), { held: 500n })
  const elsewhere = await newAccount(database)
  const same = { ...idempotency, scope: `account:${elsewhere}` as const }
  t.equal((await database.tasks.create(newVideo(elsewhere, { idempotency: same }))).outcome, 'created')
})

t.test(
  'a task that was made keeps its key though its request was freed; another request cannot have it',
  async (t) => {
    const accountId = await newAccount(database)
    const idempotency = intentOf(accountId, 'cut')
    const { idempotency: records } = database
    t.match(await records.claim(idempotency), { outcome: 'claimed' })
    t.notOk(await records.isAnswered(idempotency.scope, 'cut'))
    const task = await made(accountId, { idempotency })
    await records.free(idempotency)
    t.ok(await records.isAnswered(idempotency.scope, 'cut'))
    const other = { ...idempotency, requestHash: Buffer.alloc(32, 2), requestId: 'req_other' }
    t.match(await records.claim(other), { requestHash: idempotency.requestHash })
    const again = { ...idempotency, requestId: 'req_again' }
    t.match(await records.claim(again), { outcome: 'claimed' })
    t.match(await database.tasks.create(newVideo(accountId, { idempotency: again })), {
      outcome: 'existing',
      task: { id: task.id },
    })
    await database.tasks.applyTransition(move(task, 'cancelled'))
    t.match(await database.tasks.create(newVideo(accountId, { id: task.id, idempotency })), {
      outcome: 'created',
    })
    t.notOk(await records.isAnswered(idempotency.scope, 'cut'), 'an ended task does not have it again')
    await records.free(again)
    t.match(await records.claim(other), { outcome: 'claimed' })
  },
)

const FAILED: readonly TaskState[] = ['failed', 'expired', 'cancelled', 'refused']

t.test('a task that came to nothing gives its key up; one that succeeded keeps it seven days', async (t) => {
  const accountId = await newAccount(database)
  const ways = {
    failed: 'failed',
    expired: 'deadline',
    cancelled: 'cancelled',
    refused: 'refused',
  } as const
  const idempotency = intentOf(accountId, 'again')
  for (const state of FAILED) {
    const task = await made(accountId, { idempotency })
    const claimed = state === 'cancelled' ? task : await moved(task, ['claimed'])
    t.equal(
      (await database.tasks.applyTransition(move(claimed, ways[state as keyof typeof ways]))).task.state,
      state,
    )
  }
  const storing = await moved(await made(accountId, { idempotency }), ['claimed'], ['produced'])
  await database.tasks.applyTransition(move(storing, 'stored', {}, 1n))
  t.match(await database.tasks.create(newVideo(accountId, { idempotency })), {
    outcome: 'existing',
    task: { id: storing.id, state: 'succeeded' },
  })
  const [kept] = await sql`
    SELECT extract(epoch FROM expires_at - now()) BETWEEN 6.9 * 86400 AND 7 * 86400 AS is_for_a_week
    FROM idempotency_records WHERE scope = ${idempotency.scope}`
  t.same(kept, { is_for_a_week: true })
  await sql`UPDATE idempotency_records SET expires_at = now() WHERE scope = ${idempotency.scope}`
  t.notOk(await database.idempotency.isAnswered(idempotency.scope, idempotency.key))
  const outcome = await database.tasks.create(newVideo(accountId, { idempotency }))
  t.equal(outcome.outcome, 'created')
  t.ok((await database.audits.verifyWallets()).ok)
})

t.test('what came from elsewhere is kept as far as it can be', async (t) => {
  const task = await moved(await made(await newAccount(database)), ['claimed'])
  const strange = 'no \0 such \ud800 thing'
  const changes = { upstreamId: strange, upstreamState: strange, errorMessage: strange }
  const result = { ...RESULT, made_id: strange }
  const after = await database.tasks.applyTransition(move(task, 'produced', { ...changes, result }))
  t.match(after.task, { upstreamId: 'no  such \ufffd thing', result: { made_id: 'no  such \ufffd thing' } })
})

/** Of the request that made a task, which was answered as failed. */
const rowOf = ({ requestId, submittedAt }: Task) => ({
  request_id: requestId,
  submitted_at: submittedAt,
  cost: '0',
})

t.test('a row without cost stands; a charge has its row all the same, and the hold is back', async (t) => {
  const accountId = await newAccount(database)
  const refused = await moved(await made(accountId), ['claimed'])
  await database.bookings.book([settlement(accountId, rowOf(refused))])
  t.equal((await database.tasks.applyTransition(move(refused, 'refused'))).outcome, 'moved')
  const storing = await moved(await made(accountId), ['claimed'], ['produced'])
  await database.bookings.book([settlement(accountId, rowOf(storing))])
  const ended = await database.tasks.applyTransition(move(storing, 'stored', {}, 5n))
  t.match(ended, { outcome: 'moved', task: { state: 'succeeded' }, wallet: { held: 0n, used: 5n } })
  const rows = await sql`
      SELECT request_id, cost FROM usage_rows
      WHERE request_id IN (${storing.requestId}, ${storing.id}) ORDER BY cost`
  t.match(rows, [
    { request_id: storing.requestId, cost: 0n },
    { request_id: storing.id, cost: 5n },
  ])
  t.match((await database.calls.find(storing.id)).call, { cost: '5' })
  t.ok((await database.audits.verifyWallets()).ok)
})

t.test('a submit that was refused is no task for its account, unless it has the id already', async (t) => {
  const accountId = await newAccount(database)
  const tasks = [await made(accountId), await made(accountId, { isEarly: true })]
  const [refused, early] = [await moved(tasks[0]!, ['refused']), await moved(tasks[1]!, ['refused'])]
  t.equal(await database.tasks.find(accountId, 'video', refused.id), null)
  t.match(await database.tasks.find(accountId, 'video', early.id), { id: early.id, state: 'refused' })
  const listed = await database.tasks.list({ accountId, kind: 'video', states: null, limit: 10 })
  t.same(
    listed.tasks.map(({ id }) => id),
    [early.id],
  )
  t.notOk(await database.tasks.deleteRecord(accountId, 'video', refused.id, Date.now()))
  t.match(await database.tasks.read([refused.id]), [{ deletedAt: null }], 'it stays in the books')
  t.ok(await database.tasks.deleteRecord(accountId, 'video', early.id, Date.now()))
})
