/** Lists of tasks, and ends by operators. */
import t from 'tap'
import type { Caller } from '../../../pipelines/calls/authenticate.ts'
import { listTasks } from '../../../pipelines/media/task-records.ts'
import { endTask, NotEndable } from '../../../pipelines/tasks/end/end-task.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { NewTask, Task } from '../../../src/postgres/tasks/types.ts'
import { command, noEngines } from '../../src/cli/support.ts'
import { startDatabase } from '../../src/postgres/support.ts'
import { created, move, newVideo, RESULT } from '../../src/postgres/tasks/support.ts'
import { reader, request } from '../call-log/support.ts'

t.test('lists by cursor and ends by operators', async (t) => {
  // Task lists page by cursor; operators list the tasks of all accounts, and end one with a full refund.
  const { database } = await startDatabase(t)
  const announced: string[] = []
  const messages = {
    publish: ({ id }: { id: string }) => void announced.push(id),
    announce: (tasks: readonly { id: string }[]) => void announced.push(...tasks.map(({ id }) => id)),
    announceWallets: (wallets: readonly { accountId: string }[]) =>
      void announced.push(...wallets.map(({ accountId }) => accountId)),
  }
  let refusal: Error | null = null
  const asked: string[] = []
  const cancelUpstream = async ({ id }: Task) => {
    asked.push(id)
    if (refusal !== null) throw refusal
  }
  const deps = { database, messages, cancelUpstream, now: Date.now }
  const tollgate = async (...words: string[]) => {
    const wiring = {
      ...noEngines,
      actor: () => 'operator:test',
      database: async () => database,
      tasks: async () => ({ messages, cancelUpstream }),
    }
    return command(words, wiring)
  }

  async function newAccount() {
    const { account } = await database.accounts.create({ name: 'test', credit: 1000n * ONE_CREDIT })
    const { key } = await database.keys.create({ accountId: account.id, name: 'test' })
    return { id: account.id, keyId: key.id }
  }

  const newTask = ({ id, keyId }: { id: string; keyId: string }, more: Partial<NewTask> = {}) =>
    created(database, newVideo(id, { hold: 5n * ONE_CREDIT, keyId, ...more }))

  const callerOf = ({ id, keyId }: { id: string; keyId: string }, query: string): Caller => {
    // A list reads no wallet.
    const known = { ...reader(id, keyId), agent: null, cap: null, budgets: [] } as unknown as Caller['known']
    return { request: request(query), known }
  }

  const walletOf = async (accountId: string) => (await database.wallets.read([accountId]))[0]!

  t.test('a list holds every task once over its pages', async (t) => {
    const account = await newAccount()
    const made: string[] = []
    for (let i = 0; i < 5; i++) made.unshift((await newTask(account)).id)
    const page = (query: string) => listTasks(database.tasks, callerOf(account, query), 'video')
    const walked: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const found = await page(`limit=2&cursor=${cursor}`)
      walked.push(...found.tasks.map(({ id }) => id))
      t.equal(found.page.has_more, found.page.next_cursor !== null)
      cursor = found.page.next_cursor
    }
    t.same(walked, made)
    for (const cursor of ['2', `mus_${'0'.repeat(26)}`, `${made[0]}x`])
      await t.rejects(page(`cursor=${cursor}`), { code: 'invalid_request', message: /cursor/ })
  })

  t.test('operators list the tasks of all accounts, page by page', async (t) => {
    const [one, other] = [await newAccount(), await newAccount()]
    const submittedAt = Date.now() + 60_000
    const first = await newTask(one, { submittedAt })
    const second = await newTask(other, { submittedAt: submittedAt + 1 })
    const listed = async (...words: string[]) =>
      JSON.parse((await tollgate('task', 'list', '--json', ...words)).stdout).map(
        ({ id }: { id: string }) => id,
      )
    t.same(await listed('--limit', '2'), [second.id, first.id])
    t.same(await listed('--limit', '1', '--before', second.id), [first.id])
    t.same(await listed('--account', one.id), [first.id])
    t.same(await listed('--account', one.id, '--kind', 'music'), [])
    t.same(await listed('--account', one.id, '--state', 'running,queued'), [])
    t.same(await listed('--account', one.id, '--state', 'open'), [first.id])
    t.match(await tollgate('task', 'list', '--state', 'done'), { code: 2, stderr: /waiting, submitting/ })
    t.match(await tollgate('task', 'list', '--before', 'vid_none'), {
      code: 1,
      stderr: /no task is vid_none/,
    })
  })

  t.test('an operator ends a task: full refund, one row, one audit entry, processes notified', async (t) => {
    for (const [verb, words, state, reason] of [
      ['cancel', [], 'cancelled', 'The task was cancelled.'],
      ['fail', ['--reason', 'The provider lost it.'], 'failed', 'The provider lost it.'],
    ] as const) {
      const account = await newAccount()
      const task = await newTask(account)
      const claimed = await database.tasks.applyTransition(move(task, 'claimed'))
      await database.tasks.applyTransition(move(claimed.task, 'accepted'))
      announced.length = 0
      const { code, stdout } = await tollgate('task', verb, task.id, ...words, '--yes', '--json')
      t.equal(code, 0)
      t.match(JSON.parse(stdout), { id: task.id, state, cost: '0', error_message: reason })
      t.match(await walletOf(account.id), { held: 0n, used: 0n, balance: 1000n * ONE_CREDIT })
      const { call } = await database.calls.find(task.id)
      t.match(call, { status: 'error', cost: '0', error_code: `task_${state}`, error_message: reason })
      const audit = await database.auditRecord.list({ subjectId: task.id, limit: 10 })
      t.match(audit, [
        { action: `task.${state}`, accountId: account.id, before: { state: 'queued' }, after: { state } },
      ])
      t.same(announced, [task.id, account.id])
      t.match(await tollgate('task', verb, task.id, ...words, '--yes'), {
        code: 1,
        stderr: /has ended already/,
      })
      t.match(await walletOf(account.id), { balance: 1000n * ONE_CREDIT })
    }
  })

  t.test('the provider is asked to cancel what it has, and what it answers is shown', async (t) => {
    const account = await newAccount()
    const end = async (events: readonly ('claimed' | 'accepted')[], changes: object = {}) => {
      let task = await newTask(account)
      for (const event of events)
        task = (await database.tasks.applyTransition(move(task, event, event === 'accepted' ? changes : {})))
          .task
      asked.length = 0
      const { stdout } = await tollgate('task', 'cancel', task.id, '--yes', '--json')
      const { state, provider } = JSON.parse(stdout)
      t.equal(state, 'cancelled', 'whatever the provider says')
      return { provider, wasAsked: asked.includes(task.id) }
    }
    t.same(await end([]), { provider: 'never had it', wasAsked: false })
    const accepted = { upstreamId: 'up-1' }
    t.same(await end(['claimed', 'accepted'], accepted), { provider: 'cancelled it', wasAsked: true })
    refusal = new Error('Busy.')
    t.same(await end(['claimed', 'accepted'], accepted), {
      provider: 'did not cancel it: Busy.',
      wasAsked: true,
    })
    refusal = null
  })

  t.test('a task whose results are being stored can only be delivered', async (t) => {
    const account = await newAccount()
    let task = await newTask(account)
    for (const event of ['claimed', 'accepted'] as const)
      task = (await database.tasks.applyTransition(move(task, event))).task
    await database.tasks.applyTransition(move(task, 'produced', { result: RESULT }))
    t.match(await tollgate('task', 'cancel', task.id, '--yes'), { code: 1, stderr: /while it is storing/ })
    t.match(await walletOf(account.id), { held: 5n * ONE_CREDIT })
  })

  t.test('a task that moves meanwhile is read again', async (t) => {
    const account = await newAccount()
    const { task } = await database.tasks.applyTransition(move(await newTask(account), 'claimed'))
    const { task: accepted } = await database.tasks.applyTransition(move(task, 'accepted'))
    let isFirst = true
    const racing = {
      ...database,
      tasks: {
        ...database.tasks,
        async read(ids: readonly string[]) {
          const read = await database.tasks.read(ids)
          if (isFirst) await database.tasks.applyTransition(move(accepted, 'started'))
          isFirst = false
          return read
        },
      },
    }
    const ended = await endTask({ ...deps, database: racing }, task.id, { event: 'cancelled', reason: null })
    t.equal(ended.task.state, 'cancelled')
    await t.rejects(endTask(deps, 'vid_none', { event: 'failed', reason: null }), NotEndable)
  })
})
