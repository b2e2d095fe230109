/** Tasks outlive faults of upstreams, engines and configuration; thousands are polled in turn. */
import { VirtualTimeScheduler } from 'rxjs'
import t from 'tap'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import { TaskSweep } from '../../../pipelines/tasks/worker/sweep.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { MediaAdapter } from '../../../src/channels/media/adapter.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { openNats } from '../../../src/nats/nats.ts'
import { DeadlineExceeded } from '../../../src/postgres/errors.ts'
import type { NewTask, TaskMove } from '../../../src/postgres/tasks/types.ts'
import { repeatUnlessBusy } from '../../../src/server/gateway/engine-watch.ts'
import { hold } from '../../src/postgres/tasks/support.ts'
import { until } from '../../support/eventually.ts'
import { taskOf } from '../media/support.ts'
import {
  catalogFor,
  findAdapter,
  silent,
  startTasks,
  type TestTasks,
  type TestWorker,
  UNTOUCHED,
  type WorkerChanges,
} from './support.ts'

t.test('a thousand open tasks are polled in turn', async (t) => {
  // A thousand open tasks are each polled in time. See docs/failure-modes.md, "Money", row 23.
  const TASKS = 1_000
  const LOOKS = 4
  /** The upstream answers none before it is asked about so many at a time: one after the other, none would be answered. */
  const AT_ONCE = 50
  const WORKERS = 2

  const tasks = await startTasks(t)
  const { database, engines, sql } = tasks

  /** Tasks that an upstream has, as they would have come to be one by one. */
  async function acceptedTasks(accountId: string): Promise<string[]> {
    const ids = Array.from({ length: TASKS }, () => newId('vid'))
    const like = await hold(database, accountId, 10n)
    await sql.begin(async (transaction) => {
      await transaction`
      INSERT INTO tasks (id, kind, account_id, key_id, request_id, model, protocol, job, price, hold, is_early, is_awaited,
        channel_ids, state, channel_id, upstream_model, upstream_id, submitted_at, accepted_at, deadline_at, touched_at)
      SELECT new.id, kind, account_id, key_id, 'req_' || new.id, 'film', protocol, job, price, hold, is_early, is_awaited,
        channel_ids, 'queued', 'first', 'film-v1', 'up-' || new.id, submitted_at, submitted_at, deadline_at, touched_at
      FROM tasks, unnest(${ids}::text[]) AS new(id) WHERE tasks.id = ${like.id}`
      await transaction`
      INSERT INTO holds (ref, account_id, amount) SELECT new.id, ${accountId}, 10 FROM unnest(${ids}::text[]) AS new(id)`
      await transaction`
      INSERT INTO ledger_entries (account_id, kind, amount, ref)
      SELECT ${accountId}, 'hold', -10, new.id FROM unnest(${ids}::text[]) AS new(id)`
      await transaction`
      UPDATE wallets SET balance = balance - ${TASKS * 10}, held = held + ${TASKS * 10}, version = version + 1
      WHERE account_id = ${accountId}`
    })
    return ids
  }

  t.test('each is polled as often as the others, many at a time', async (t) => {
    const { account } = await tasks.newAccount()
    const ids = await acceptedTasks(account.id)
    const looks = new Map<string, number>(ids.map((id) => [`up-${id}`, 0]))
    const enough = Promise.withResolvers<void>()
    let writes = 0
    let asking = 0
    const calls = {
      send: async ({ url }: { url: string }) => {
        const id = url.split('/').at(-1)!
        if (++asking === AT_ONCE) enough.resolve()
        await enough.promise
        looks.set(id, looks.get(id)! + 1)
        return { status: 200, header: () => null, body: Buffer.from('{"state":"queued"}') }
      },
    }
    const counting = {
      ...database,
      tasks: {
        ...database.tasks,
        applyTransition: (...of: Parameters<typeof database.tasks.applyTransition>) => {
          writes++
          return database.tasks.applyTransition(...of)
        },
      },
    }
    // Two processes share the work.
    const workers = Array.from({ length: WORKERS }, () =>
      tasks.worker(t, {
        calls: { ...calls, makeHeaders: async () => [] },
        database: counting,
        hurry: 1,
      }),
    )
    const nats = openNats({ url: engines.natsUrl, name: 'test', log: silent })
    t.teardown(() => nats.close())
    const messages = taskMessages(nats, silent)
    for (const id of ids) messages.publish({ id, chain: 0 })
    await until('each task was polled', () => Math.min(...looks.values()) >= LOOKS)
    for (const { kill } of workers) kill()
    const most = Math.max(...looks.values())
    t.ok(most <= LOOKS + 3, `all were polled ${LOOKS} times, none more than ${most}`)
    t.equal(writes, 0, 'a look that changes nothing writes nothing')
  })
})

t.test('tasks outlive faults', async (t) => {
  // What tasks survive: polls that fail, lost answers, removed channels, unknown states, repeated submits and crashes.
  // See docs/failure-modes.md, "Money", rows 4 and 18 to 22.
  const HOUR_MS = 3_600_000
  const tasks: TestTasks = await startTasks(t)
  const { database, upstream } = tasks

  const later = (ms: number) => () => Date.now() + ms
  const DAY = later(24 * HOUR_MS + 60_000)

  /** Only sweeps, with the clock of another time: what it finds it works on itself. */
  function laterWorker(now: () => number, more: WorkerChanges = {}): TestWorker {
    const worker = tasks.worker(t, { now, ...more })
    worker.kill()
    return worker
  }

  t.test('a look that fails changes nothing, however often', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('shaky', { states: ['down', 'down', 'running', 'down', 'succeeded'] })
    tasks.worker(t)
    const task = await tasks.submit(tasks.order(account, 'film', 'shaky'))
    t.match(await tasks.reached(task.id, 'succeeded'), { cost: ONE_CREDIT * 10n })
  })

  /** A process that dies in the moment in which it would note what the upstream answered. */
  async function killedBehindSubmit(model: string, prompt: string) {
    const account = await tasks.newAccount()
    let died = () => {}
    const death = new Promise<void>((resolve) => {
      died = resolve
    })
    const never = new Promise<never>(() => {})
    const worker = tasks.worker(t, {
      database: {
        ...database,
        tasks: {
          ...database.tasks,
          applyTransition: (move: TaskMove) => {
            if (move.event === 'claimed') return database.tasks.applyTransition(move)
            died()
            return never
          },
        },
      },
    })
    const order = tasks.order(account, model, prompt)
    void tasks.submit(order).catch(() => undefined)
    await death
    worker.kill()
    const { hold } = await database.calls.find(order.caller.request.requestId)
    return { account, id: hold!.ref }
  }

  for (const [model, channelId] of [
    ['film', 'first'],
    ['reel', 'reels'],
  ] as const)
    t.test(
      `${model}: accepted and the id lost: no task, the hold back, and a record for operators`,
      async (t) => {
        const { account, id } = await killedBehindSubmit(model, 'lost')
        t.match((await database.tasks.read([id]))[0], { state: 'submitting', channelId, upstreamId: null })
        await laterWorker(later(20_000)).swept()
        t.match((await database.tasks.read([id]))[0], { state: 'submitting' }, 'its process may still live')
        await laterWorker(later(HOUR_MS)).swept()
        t.match((await database.tasks.read([id]))[0], { state: 'refused', errorCode: 'upstream_unreachable' })
        t.equal(await database.tasks.find(account.account.id, 'video', id), null)
        t.match(await tasks.walletOf(account), UNTOUCHED)
        const open = await database.lostSubmits.list({ isOpen: true, before: null, limit: 50 })
        t.match(
          open.find(({ taskId }) => taskId === id),
          { state: 'open', channelId, upstreamId: null },
        )
        await laterWorker(later(2 * HOUR_MS)).swept()
        t.equal(upstream.submits.get(id), 1)
      },
    )

  t.test('an answer that got lost with the work in it: failed, and never sent again', async (t) => {
    const { account, id } = await killedBehindSubmit('picture', 'lost picture')
    await laterWorker(later(10 * 60_000)).swept()
    t.match((await database.tasks.read([id]))[0], { state: 'refused', cost: 0n })
    t.equal(upstream.submits.get(id), 1)
    t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
  })

  t.test('a client that waits is answered in time, though a file cannot be copied', async (t) => {
    const account = await tasks.newAccount()
    tasks.worker(t)
    upstream.plans.set('hangs', { hangingFiles: true })
    const order = tasks.order(account, 'film', 'hangs', { until: 'ended', deadlineMs: 2500 })
    const task = await tasks.submit(order)
    t.match(task, { state: 'succeeded', result: { files: [{ key: null, upstream_url: /\/file\/up-/ }] } })
    t.ok(task.endedAt! < task.deadlineAt + 5000)
  })

  t.test('what comes once the time of its client is over is free', async (t) => {
    for (const model of ['film', 'picture']) {
      const account = await tasks.newAccount()
      let aheadMs = 0
      const late = <T>(outcome: T): T => {
        aheadMs = 60_000
        return outcome
      }
      const slow = (protocol: string): MediaAdapter => {
        const { follow, ...adapter } = findAdapter(protocol)!
        if (follow === null)
          return { ...adapter, follow, readSubmit: (...answer) => late(adapter.readSubmit(...answer)) }
        return {
          ...adapter,
          follow: { ...follow, readPoll: (...answer) => late(follow.readPoll(...answer)) },
        }
      }
      const worker = tasks.worker(t, { now: () => Date.now() + aheadMs, findAdapter: slow })
      const order = tasks.order(account, model, 'late', { until: 'ended', deadlineMs: 30_000 })
      const task = await tasks.submit(order)
      t.match(task, { state: 'expired', cost: 0n, result: null }, model)
      t.match(await tasks.walletOf(account), UNTOUCHED)
      t.match((await database.calls.find(task.requestId)).call, { status: 'interrupted', cost: '0' })
      worker.kill()
    }
  })

  /** Copies that wait until `come` is called. */
  function slowCopies() {
    const begun = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    const copy: TestTasks['storage']['copy'] = async (...file) => {
      begun.resolve()
      await released.promise
      return tasks.storage.copy(...file)
    }
    return { begun: begun.promise, come: released.resolve, storage: { ...tasks.storage, copy } }
  }

  t.test('results that are stored too late for the client that waits are free', async (t) => {
    const account = await tasks.newAccount()
    const { begun, come, storage } = slowCopies()
    const worker = tasks.worker(t, { storage })
    const answered = tasks.submit(
      tasks.order(account, 'film', 'stored late', { until: 'ended', deadlineMs: 1_000 }),
    )
    await begun
    const task = await answered
    t.match(task, { state: 'expired', cost: 0n })
    come()
    await until('the worker is done', () => worker.work.held === 0)
    t.match((await database.tasks.read([task.id]))[0], { state: 'expired', cost: 0n })
    t.match(await tasks.walletOf(account), UNTOUCHED)
    t.match((await database.calls.find(task.requestId)).call, {
      status: 'interrupted',
      error_code: 'upstream_timeout',
      cost: '0',
    })
  })

  t.test(
    'a worker dies while storing: another delivers, unless a waiting client has its error',
    async (t) => {
      for (const ends of [
        { until: 'ended', state: 'expired' },
        { until: 'accepted', state: 'succeeded' },
      ] as const) {
        const account = await tasks.newAccount()
        const { begun, storage } = slowCopies()
        const worker = tasks.worker(t, { storage })
        const order = tasks.order(account, 'film', 'dies', { until: ends.until, deadlineMs: 60_000 })
        void tasks.submit(order).catch(() => undefined)
        await begun
        worker.kill()
        const { hold } = await database.calls.find(order.caller.request.requestId)
        await laterWorker(later(HOUR_MS)).swept()
        const [task] = await database.tasks.read([hold!.ref])
        const cost = ends.state === 'succeeded' ? ONE_CREDIT * 10n : 0n
        t.match(task, { state: ends.state, cost }, ends.until)
        t.match(await tasks.walletOf(account), { held: 0n, used: cost })
      }
    },
  )

  t.test('a channel that is removed: its tasks end at their deadline, refunded', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('long', { states: ['running'] })
    const worker = tasks.worker(t)
    const task = await tasks.submit(tasks.order(account, 'reel', 'long'))
    await tasks.reached(task.id, 'running')
    worker.kill()
    const without = () => catalogFor(upstream.url, ['reels'])
    for (const hours of [1, 12]) await laterWorker(later(hours * HOUR_MS), { catalog: without }).swept()
    t.match((await database.tasks.read([task.id]))[0], { state: 'running' })
    await laterWorker(DAY, { catalog: without }).swept()
    t.match((await database.tasks.read([task.id]))[0], { state: 'expired' })
    t.match(await tasks.walletOf(account), { balance: 1000n * ONE_CREDIT, held: 0n })
    t.match((await database.calls.find(task.id)).call, {
      status: 'error',
      error_code: 'task_expired',
      cost: '0',
    })
  })

  t.test('a model that is removed before anything was sent: refused', async (t) => {
    const account = await tasks.newAccount()
    const order = tasks.order(account, 'reel', 'never sent')
    const waiting = tasks.submit(order).catch((error: unknown) => error)
    const worker = tasks.worker(t, { catalog: () => catalogFor(upstream.url, ['reels']) })
    t.match(await waiting, { code: 'no_channel_available' })
    worker.kill()
    t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
  })

  t.test('a state that nobody mapped is logged, polled again, and ends at the deadline', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('odd', { states: ['strange'] })
    const worker = tasks.worker(t)
    const task = await tasks.submit(tasks.order(account, 'film', 'odd'))
    await until('the state is logged twice', () => worker.unmapped.length >= 2)
    t.equal(worker.unmapped[0], `${task.id} strange`)
    t.match((await database.tasks.read([task.id]))[0], { state: 'queued', version: 3 }, 'nothing is written')
    worker.kill()
    await laterWorker(DAY).swept()
    t.match((await database.tasks.read([task.id]))[0], { state: 'expired' })
  })

  t.test('the same intent again finds the task that is under way, and its end', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('twice', { states: ['running', 'succeeded'] })
    tasks.worker(t)
    const order = () => tasks.order(account, 'film', 'twice', { key: 'once-only', until: 'ended' })
    const [one, other] = await Promise.all([tasks.submit(order()), tasks.submit(order())])
    t.equal(one.id, other.id)
    t.equal((await tasks.submit(order())).id, one.id, 'and long behind its end')
    t.match(one, { state: 'succeeded' })
    t.equal(upstream.submits.get(one.id), 1)
    t.match(await tasks.walletOf(account), { used: ONE_CREDIT * 10n, held: 0n })
    const another = tasks.order(account, 'film', 'another', { key: 'once-only' })
    await t.rejects(tasks.submit(another), { code: 'idempotency_key_reuse' })
  })

  t.test(
    'made behind an answer that came too late: nothing is sent, and the hold is given back',
    async (t) => {
      const account = await tasks.newAccount()
      const worker = tasks.worker(t)
      let late: NewTask | null = null
      const create = (task: NewTask) => {
        if (late !== null) return database.tasks.create(task)
        late = task
        return Promise.reject(new DeadlineExceeded(1))
      }
      const order = tasks.order(account, 'film', 'late')
      const changes = {
        database: { ...database, tasks: { ...database.tasks, create } },
        scheduler: new VirtualTimeScheduler(),
      }
      await t.rejects(tasks.submit(order, changes), { code: 'service_unavailable' })
      changes.scheduler.flush()
      const task = late as NewTask | null
      await tasks.reached(task!.id, 'refused')
      t.match(
        await database.tasks.create(task!),
        { outcome: 'created', task: { state: 'refused' } },
        'the late one',
      )
      await worker.swept()
      t.equal(upstream.submits.get(task!.id), undefined)
      t.match(await tasks.walletOf(account), { used: 0n, held: 0n })
    },
  )

  t.test('without NATS the work goes on', async (t) => {
    const account = await tasks.newAccount()
    await tasks.engines.stopEngine('nats')
    const worker = tasks.worker(t)
    const sweeping = repeatUnlessBusy(200, () => worker.sweep.tasks().catch(() => undefined))
    t.teardown(() => clearInterval(sweeping))
    upstream.plans.set('no answer', { submit: 'hang' })
    void tasks.submit(tasks.order(account, 'reel', 'no answer')).catch(() => undefined)
    await until('one submit is not answered', () => worker.work.submitting === 1)
    const submitted = await tasks.submit(tasks.order(account, 'film', 'no messages'))
    t.equal(worker.work.submitting, 1, 'it keeps no other task waiting')
    clearInterval(sweeping)
    await laterWorker(later(HOUR_MS)).swept()
    t.match(await tasks.reached(submitted.id, 'succeeded'), { cost: ONE_CREDIT * 10n })
    worker.kill()
    await tasks.engines.startEngine('nats')
  })

  t.test('a sweep does not wait for the work on what it finds, and takes on only so much', async (t) => {
    const begun: string[] = []
    const limits: number[] = []
    const sweep = new TaskSweep({
      database: {
        ...database,
        tasks: {
          ...database.tasks,
          findOverdue: async () => ['overdue'],
          read: async (ids) => ids.map((id) => taskOf({ id })),
          async claimStale(_before, _now, limit) {
            return [{ id: `stale-${limits.push(limit)}`, chain: 1 }]
          },
        },
      },
      work: {
        async touch() {},
        once({ id }) {
          begun.push(id)
          return new Promise(() => {})
        },
      },
      messages: { publish() {} },
      storage: tasks.storage,
      isOnline: () => false,
      log: silent,
      now: Date.now,
    })
    await sweep.tasks()
    await sweep.tasks()
    t.same(begun, ['overdue', 'stale-1', 'stale-2'])
    t.same(limits, [64, 63])
  })

  t.test('files whose time is up are removed', async (t) => {
    const account = await tasks.newAccount()
    const worker = tasks.worker(t)
    const task = await tasks.submit(tasks.order(account, 'picture', 'for a day'))
    const key = task.result!.files[0]!.key!
    await worker.sweep.objects()
    t.ok(await tasks.storage.read(key, 10_000))
    await laterWorker(DAY).sweep.objects()
    await t.rejects(tasks.storage.read(key, 10_000))
    t.same(await database.tasks.findExpiredObjects(DAY(), 10), [])
  })

  t.test('no hold is left open, and the books agree', async (t) => {
    await laterWorker(DAY).swept()
    t.same(await database.tasks.countOpen(), [])
    t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
    t.equal(findAdapter('none'), null)
  })
})
