/** Orders of tasks: what a submit makes, what it refuses, and the files it brings. */
import type { ServerResponse } from 'node:http'
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { VirtualTimeScheduler } from 'rxjs'
import t, { type Test } from 'tap'
import type { TaskEngine } from '../../../pipelines/tasks/engine.ts'
import { followLostSubmits } from '../../../pipelines/tasks/lost/follow-lost.ts'
import type { TaskOrder } from '../../../pipelines/tasks/order/order.ts'
import { watchTasks } from '../../../pipelines/tasks/order/watch-tasks.ts'
import { StoreFailure } from '../../../pipelines/tasks/ports.ts'
import { makeKey } from '../../../pipelines/tasks/store/result-files.ts'
import {
  findReferenceProblem,
  listFiles,
  prepareFiles,
  UnusableFile,
  withFiles,
} from '../../../pipelines/tasks/submit/prepare-files.ts'
import { planTransition } from '../../../pipelines/tasks/transition.ts'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { type FileRef, mediaJob, resultFile } from '../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { TASK_RULES, type TaskKind } from '../../../schemas/tasks/task.ts'
import { soundMp3 } from '../../../simulator/media/samples.ts'
import type { MediaAdapter } from '../../../src/channels/media/adapter.ts'
import { fileLinks } from '../../../src/core/media/file-link.ts'
import { computeHold, findMediaPrice } from '../../../src/core/media/pricing.ts'
import { isOfRole } from '../../../src/core/media/type.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { openNats } from '../../../src/nats/nats.ts'
import type { Task, TaskMove } from '../../../src/postgres/tasks/types.ts'
import { openMediaCalls } from '../../../src/server/channels/media-calls.ts'
import { findTaskAdapter } from '../../../src/server/tasks/adapters.ts'
import { openTaskStorage } from '../../../src/server/tasks/storage.ts'
import { FolderStore } from '../../../src/storage/folder-store.ts'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { folderStore } from '../../src/storage/support.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { eventually, until } from '../../support/eventually.ts'
import { sendJson, serveHttp, textOf } from '../../support/http-server.ts'
import { silent as noLog } from '../settlement/support.ts'
import { silent, startTasks, type TestAccount, UNTOUCHED } from './support.ts'
import { FILM, PICTURE, pictureAdapter } from './upstream.ts'

t.test('a submit without an answer makes no task', async (t) => {
  // A submit without a clear acceptance makes no task, whatever is made: its client gets the error and the money, and
  // operators a record of it. Task workers ask the provider about it, cancel it where they can, and note its cost.
  // See docs/failure-modes.md, "Money", row 19; docs/operating.md, "Lost submits".
  const MODEL = 'made'
  const MINUTE_MS = 60_000
  const tasks = await startTasks(t)
  const { database, storage } = tasks
  const client = new UpstreamClient()
  t.teardown(() => client.close())
  const calls = openMediaCalls(client, storage, authorizerOf)
  /** The clock of the client, which is ahead once a submit was met with silence: that has a minute and more. */
  let aheadMs = 0
  const elapsed = performance.now.bind(performance)
  t.intercept(performance, 'now', { value: () => elapsed() + aheadMs })

  /** What the provider does with a submit, and what its customer then gets. */
  const FATES: Readonly<
    Record<string, { answer: (response: ServerResponse) => void; error: object; row: string }>
  > = {
    'a 502 of a proxy': {
      answer: (response) => void response.writeHead(502).end('<html>Bad Gateway</html>'),
      error: { status: 502, code: 'upstream_error' },
      row: 'error',
    },
    'a 504 of a proxy': {
      answer: (response) => void response.writeHead(504).end('<html>Gateway Timeout</html>'),
      error: { status: 504, code: 'upstream_error' },
      row: 'error',
    },
    'a 200 that is no answer': {
      answer: (response) => void response.writeHead(200).end('<html>Welcome</html>'),
      error: { status: 502, code: 'upstream_error' },
      row: 'error',
    },
    silence: {
      answer: () => {
        aheadMs += 60 * MINUTE_MS
      },
      error: { status: 504, code: 'upstream_timeout' },
      row: 'interrupted',
    },
    'a closed connection': {
      answer: (response) => void response.destroy(),
      error: { status: 502, code: 'upstream_unreachable' },
      row: 'error',
    },
  }

  let fate: (response: ServerResponse) => void = (response) => void response.destroy()
  /** How the provider answers questions about its tasks. */
  let ask = (_: string, __: string): { status: number; body: object } => ({ status: 503, body: {} })
  let submits = 0
  const url = await serveHttp(t, async (request, response) => {
    await textOf(request)
    const { method = '', url: path = '' } = request
    if (method === 'POST' && !path.endsWith('/cancel')) {
      submits++
      return fate(response)
    }
    const { status, body } = ask(method, path)
    return sendJson(response, status, body)
  })

  const file = { from: 'url', url: 'https://example.com/a.mp4' }
  const TEXT = [{ type: 'text', text: 'the dough rises' }]
  const response = {
    work: 'response',
    body: { from: 'store', key: 'inputs/asked.json', media_type: 'application/json', bytes: 23, name: 'r' },
    call: {
      ...{ model: 'made', outputLimit: 10, choices: 1, promptBytes: 8, laterBytes: 0, settings: '' },
      ...{ links: { image: 0, file: 0, audio: 0 }, builtInTools: [], toolCallLimit: null },
    },
    conversation: null,
    kept_days: 30,
  }
  await storage.put('inputs/asked.json', Buffer.from('{"model":"a","input":1}'), 'application/json')

  /** Every kind of task, at an upstream that takes it as a submit. */
  const WORKS: readonly { kind: TaskKind; protocol: string; job: object; until?: 'ended' }[] = [
    { kind: 'video', protocol: 'task', job: { work: 'video', content: TEXT, duration: 5 } },
    { kind: 'video', protocol: 'ark-video', job: { work: 'video', content: TEXT, duration: 5 } },
    { kind: 'music', protocol: 'suno', job: { work: 'music', prompt: 'a song', instrumental: false } },
    { kind: 'music', protocol: 'task', job: { work: 'music', prompt: 'a song', instrumental: false } },
    { kind: 'speech', protocol: 'task', job: { work: 'speech', input: 'words', voice: null, speed: 1 } },
    {
      kind: 'speech',
      protocol: 'task',
      job: { work: 'speech', input: 'words', voice: null, speed: 1 },
      until: 'ended',
    },
    {
      kind: 'avatar',
      protocol: 'task',
      job: { work: 'avatar', name: 'Ada', source: file, source_kind: 'image' },
    },
    { kind: 'voice', protocol: 'task', job: { work: 'voice', name: 'Ada', audio: file } },
    { kind: 'image', protocol: 'task', job: { work: 'image', prompt: 'a fox', n: 1 } },
    { kind: 'image', protocol: 'fal', job: { work: 'image', prompt: 'a fox', n: 1 }, until: 'ended' },
    { kind: 'subtitle', protocol: 'task', job: { work: 'subtitle', video: file }, until: 'ended' },
    {
      kind: 'transcript',
      protocol: 'task',
      job: { work: 'transcript', url: 'https://e.test/v' },
      until: 'ended',
    },
    { kind: 'response', protocol: 'responses', job: response },
  ]

  const PRICING = { unit: 'generation', per_unit: '4' }
  const catalogOf = (protocol: string, cost?: object) =>
    createCatalog(
      configFile.parse({
        models: [{ id: 'made', pricing: PRICING }],
        channels: [
          {
            ...{ id: 'studio', protocol, base_url: `${url}/studio`, api_key: 'sk-test-studio-key-1' },
            ...{ private_links: true, models: { made: 'made-v1' }, ...(cost && { cost: { made: cost } }) },
          },
        ],
      }),
    )
  type TestCatalog = ReturnType<typeof catalogOf>

  function orderFor(
    account: TestAccount,
    catalog: TestCatalog,
    { kind, job, until = 'accepted' }: { kind: TaskKind; job: object; until?: TaskOrder['until'] },
    more: { key?: string } = {},
  ): TaskOrder {
    const model = catalog.resolve(MODEL)!
    const parsed = mediaJob.parse(job)
    const price = findMediaPrice(model.entry, null, Date.now())!
    const routes = catalog.routes(model, catalog.channels[0]!.protocol)
    return tasks.order(account, 'reel', 'made', {
      ...{ kind, model, job: parsed, price, hold: computeHold(price, parsed), routes, until },
      ...more,
    })
  }

  const orderOf = (
    account: TestAccount,
    catalog: TestCatalog,
    work: Parameters<typeof orderFor>[2],
    key?: string,
  ) => {
    const order = orderFor(account, catalog, work, key === undefined ? {} : { key })
    const error = () =>
      tasks.submit(order, { findAdapter: findTaskAdapter }).then(String, (reason: unknown) => reason)
    return { order, error }
  }

  const lostOf = async (id: string) =>
    (await database.lostSubmits.list({ isOpen: false, before: null, limit: 200 })).find(
      ({ taskId }) => taskId === id,
    )

  for (const work of WORKS)
    t.test(`${work.kind} at ${work.protocol}${work.until ? ', awaited' : ''}`, async (t) => {
      const catalog = catalogOf(work.protocol)
      const worker = tasks.worker(t, { findAdapter: findTaskAdapter, catalog: () => catalog, calls })
      for (const [name, { answer, error, row }] of Object.entries(FATES)) {
        const account = await tasks.newAccount()
        fate = answer
        const before = submits
        const { order, error: asked } = orderOf(account, catalog, work)
        t.match(await asked(), error, name)
        t.equal(submits, before + 1, 'it is sent once')
        t.match(await tasks.walletOf(account), UNTOUCHED, 'the hold is released at once')
        const { call } = await database.calls.find(order.caller.request.requestId)
        t.match(call, { status: row, cost: '0' }, name)
        const query = { accountId: account.account.id, kind: work.kind, states: null, limit: 9 } as const
        t.same((await database.tasks.list(query)).tasks, [], 'there is no task')
        t.equal(await database.tasks.find(account.account.id, work.kind, call!.task_id!), null)
        t.match(await lostOf(call!.task_id!), { state: 'open', channelId: 'studio', kind: work.kind }, name)
      }
      worker.kill()
    })

  t.test('the same Idempotency-Key makes a new submit', async (t) => {
    const account = await tasks.newAccount()
    const catalog = catalogOf('task')
    const worker = tasks.worker(t, { findAdapter: findTaskAdapter, catalog: () => catalog, calls })
    fate = (response) => void response.destroy()
    const [work] = WORKS
    t.match(await orderOf(account, catalog, work!, 'again').error(), { status: 502 })
    fate = (response) => void response.writeHead(200).end('{"id":"t-2","state":"queued"}')
    const { order } = orderOf(account, catalog, work!, 'again')
    t.match(await tasks.submit(order, { findAdapter: findTaskAdapter }), {
      state: 'queued',
      upstreamId: 't-2',
    })
    worker.kill()
  })

  /** A submit of which nobody knows what became, at a provider whose task costs the operator 3 a second. */
  async function lose(protocol: string) {
    const account = await tasks.newAccount()
    const catalog = catalogOf(protocol, { unit: 'second', per_unit: '3' })
    const worker = tasks.worker(t, { findAdapter: findTaskAdapter, catalog: () => catalog, calls })
    fate = (response) => void response.destroy()
    const [work] = WORKS
    const { order, error } = orderOf(account, catalog, work!)
    await error()
    worker.kill()
    const { call } = await database.calls.find(order.caller.request.requestId)
    const id = call!.task_id!
    const follow = (aheadMs = 0) =>
      followLostSubmits({
        ...{ database, findAdapter: findTaskAdapter, catalog: () => catalog, calls, log: silent },
        now: () => Date.now() + aheadMs,
      })
    return { id, account, follow, lost: () => lostOf(id) }
  }

  const DONE = { video_url: 'https://studio.test/1.mp4', duration_sec: 4 }

  t.test('what the provider has and can cancel is cancelled, at no cost', async (t) => {
    const { id, account, follow, lost } = await lose('task')
    const asked: string[] = []
    let state = 'queued'
    ask = (method, path) => {
      asked.push(`${method} ${path}`)
      if (path.endsWith('/cancel')) state = 'cancelled'
      return { status: 200, body: { id: 't-7', state } }
    }
    await follow()
    t.match(await lost(), { state: 'cancelled', upstreamId: 't-7', cost: 0n, closedBy: null })
    t.ok(asked.includes(`GET /studio/tasks?reference=${id}`), 'by its reference')
    t.ok(asked.includes('POST /studio/tasks/t-7/cancel'))
    t.match(await tasks.walletOf(account), UNTOUCHED)
  })

  t.test("what runs is followed to its end, and its cost is the operator's", async (t) => {
    const { account, follow, lost } = await lose('task')
    ask = (_, path) =>
      path.endsWith('/cancel')
        ? { status: 409, body: { error: { code: 'not_cancellable', message: 'runs' } } }
        : { status: 200, body: { id: 't-8', state: 'running' } }
    await follow()
    t.match(await lost(), { state: 'found', upstreamId: 't-8', upstreamState: 'running', closedAt: null })
    ask = () => ({ status: 200, body: { id: 't-8', state: 'succeeded', result: DONE } })
    await follow()
    t.match(await lost(), { state: 'found' }, 'not before its time')
    await follow(MINUTE_MS)
    t.match(await lost(), { state: 'made', cost: 12n * ONE_CREDIT })
    t.match(await tasks.walletOf(account), UNTOUCHED, 'its customer pays nothing')
    const { id: accountId } = account.account
    const sum = await database.lostSubmits.sum({ accountId, from: 0, to: Date.now() + MINUTE_MS })
    t.same(sum, { submits: 1, cost: 12n * ONE_CREDIT })
  })

  t.test(
    'what the provider certainly has not got is closed; where it cannot say it is asked again',
    async (t) => {
      const { follow, lost } = await lose('task')
      ask = () => ({ status: 503, body: { error: { code: 'busy', message: 'later' } } })
      await follow()
      t.match(await lost(), { state: 'open', checks: 1, nextCheckAt: Number })
      ask = () => ({ status: 404, body: { error: { code: 'not_found', message: 'none' } } })
      await follow(MINUTE_MS)
      t.match(await lost(), { state: 'absent', cost: 0n, closedBy: null })
    },
  )

  t.test('where no question exists, an operator closes it with its cost, once', async (t) => {
    const { id, account, follow, lost } = await lose('ark-video')
    ask = () => ({ status: 500, body: {} })
    await follow()
    t.match(await lost(), { state: 'open', nextCheckAt: null })
    t.match(await database.lostSubmits.check(id, Date.now()), { taskId: id, nextCheckAt: Number })
    const closing = { taskId: id, cost: 5n * ONE_CREDIT, reason: 'on the May invoice' }
    t.match(await database.lostSubmits.close(closing, Date.now()), { state: 'closed', cost: 5n * ONE_CREDIT })
    await t.rejects(database.lostSubmits.close(closing, Date.now()), { code: 'lost_submit_closed' })
    await t.rejects(database.lostSubmits.check(id, Date.now()), { code: 'lost_submit_closed' })
    await t.rejects(database.lostSubmits.check('vid_none', Date.now()), { code: 'lost_submit_not_found' })
    await follow()
    t.match(await lost(), { state: 'closed', closeReason: 'on the May invoice' })
    const entries = await database.auditRecord.list({ subjectId: id, limit: 9 })
    t.same(entries.map(({ action }) => action).sort(), ['lost_submit.check', 'lost_submit.close'])
    t.match(await tasks.walletOf(account), UNTOUCHED)
  })
})

t.test('a new task does not wait for nats', async (t) => {
  // While NATS is away a sweep takes a task on that no process has had, long before those that one may have.
  const HOUR_MS = 3_600_000
  const tasks = await startTasks(t)
  const { database } = tasks

  /** A sweep of a process whose clock says this. */
  async function sweepAt(now: number): Promise<void> {
    const worker = tasks.worker(t, { now: () => now })
    worker.kill()
    await worker.swept()
  }

  t.test('without NATS a new task is taken on within a second', async (t) => {
    const account = await tasks.newAccount()
    await tasks.engines.stopEngine('nats')
    const order = tasks.order(account, 'film', 'new without messages')
    const answer = tasks.submit(order)
    const id = await eventually('its row', async () => {
      const { hold } = await database.calls.find(order.caller.request.requestId).catch(() => ({ hold: null }))
      return hold?.ref
    })
    const read = async () => (await database.tasks.read([id]))[0]
    const { touchedAt } = (await read())!
    await sweepAt(touchedAt)
    t.match(await read(), { state: 'waiting' }, 'its message may be on the way to another process')
    await sweepAt(touchedAt + 1_000)
    t.match(await read(), { state: 'queued', chain: 1 })
    t.match(await answer, { id })
    await sweepAt(touchedAt + 2_000)
    t.match(await read(), { state: 'queued', chain: 1 }, 'a poll has time')
    await sweepAt(Date.now() + HOUR_MS / 2)
    await tasks.reached(id, 'succeeded')
  })
})

t.test('a late refusal changes nothing', async (t) => {
  // A refusal whose process was taken for gone in the meantime changes nothing any more. See docs/failure-modes.md, "Money", row 19.
  const tasks = await startTasks(t)
  const { database, upstream } = tasks

  for (const [model, status] of [
    ['reel', 422],
    // Another channel would be tried.
    ['film', 503],
  ] as const)
    t.test(`${model}: ${status} comes after the submit was given up`, async (t) => {
      const account = await tasks.newAccount()
      upstream.plans.set(model, { submit: status })
      let claims = 0
      const worker = tasks.worker(t, {
        database: {
          ...database,
          tasks: {
            ...database.tasks,
            async applyTransition(move: TaskMove) {
              if (move.event === 'claimed') claims++
              if (move.event === 'refused' || claims > 1) {
                claims = 0
                const [task] = await database.tasks.read([move.id])
                await database.tasks.applyTransition(planTransition(task!, 'lost', {}, { now: Date.now() })!)
              }
              return database.tasks.applyTransition(move)
            },
          },
        },
      })
      const order = tasks.order(account, model, model)
      await t.rejects(tasks.submit(order), { code: 'upstream_error' }, 'the client has its error')
      const { call } = await database.calls.find(order.caller.request.requestId)
      t.match(await tasks.reached(call!.task_id!, 'refused'), { refusedStatus: null })
      t.equal(upstream.submits.get(call!.task_id!), 1)
      t.match(await tasks.walletOf(account), UNTOUCHED)
      worker.kill()
    })

  t.test('a refusal that PostgreSQL does not take at once is kept until it does', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('away', { submit: 422 })
    let faults = 3
    tasks.worker(t, {
      database: {
        ...database,
        tasks: {
          ...database.tasks,
          async applyTransition(move: TaskMove) {
            if (move.event === 'refused' && faults-- > 0) throw new Error('PostgreSQL is away')
            return database.tasks.applyTransition(move)
          },
        },
      },
    })
    const order = tasks.order(account, 'reel', 'away')
    const error = await tasks.submit(order).catch((reason: unknown) => reason)
    t.match(error, { status: 422, message: 'no, says the upstream' })
    const { call } = await database.calls.find(order.caller.request.requestId)
    t.match(call, { status: 'rejected', error_message: 'no, says the upstream', cost: '0' })
    t.equal(upstream.submits.get(call!.task_id!), 1)
    t.match(await tasks.walletOf(account), UNTOUCHED)
  })
})

t.test('capped keys order within their cap', async (t) => {
  /** Five seconds of film. */
  const HOLD = 12.5

  t.test('a capped key orders what its cap covers over all processes, and spends its charges', async (t) => {
    const tasks = await startTasks(t)
    const { database } = tasks
    tasks.worker(t)
    const account = await tasks.newAccount(1000n, 30n)
    const order = (prompt: string) => tasks.submit(tasks.order(account, 'film', prompt, { until: 'ended' }))
    const outcomes = await Promise.allSettled(['one', 'two', 'three', 'four'].map(order))
    const made = outcomes.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value)
    t.equal(made.length, Math.floor(30 / HOLD))
    for (const outcome of outcomes)
      if (outcome.status === 'rejected')
        t.match(outcome.reason, { code: 'quota_exceeded', status: 402, message: /spend cap/ })
    const charged = made.reduce((sum, { cost }) => sum + (cost ?? 0n), 0n)
    t.ok(charged > 0n)
    await until('all of it is spent', async () => {
      const { grant } = await database.keys.show(account.keyId)
      return grant?.spent === charged
    })
    t.ok(charged <= 30n * ONE_CREDIT)
    t.equal((await database.audits.verifyWallets()).ok, true)
  })
})

t.test('a submit ends in time', async (t) => {
  const tasks = await startTasks(t)
  const { upstream, database } = tasks
  const client = new UpstreamClient()
  t.teardown(() => client.close())
  const calls = openMediaCalls(client, tasks.storage, authorizerOf)
  const { ladderTimeoutMs, submitTimeoutMs } = TASK_RULES.video

  /**
   * Submits an order to a worker by whose clock `age` has passed since, and after the first attempt `ageAfter`; returns the
   * time that each attempt got.
   */
  async function submitLate(age: number, more: Partial<TaskOrder> = {}, ageAfter = age, plan = {}) {
    const prompt = `${age} ${ageAfter} ${more.deadlineMs}`
    upstream.plans.set(prompt, plan)
    const account = await tasks.newAccount()
    const order = tasks.order(account, 'film', prompt, more)
    const { submittedAt, requestId } = order.caller.request
    const given: number[] = []
    const worker = tasks.worker(t, {
      now: () => submittedAt + (given.length === 0 ? age : ageAfter),
      calls: {
        ...calls,
        send(request, options) {
          // The worker also asks for tasks that were accepted before.
          if (request.method === 'POST') given.push(options.timeoutMs)
          return calls.send(request, options)
        },
      },
    })
    const error: unknown = await tasks.submit(order).then(
      () => null,
      (reason: unknown) => reason,
    )
    worker.kill()
    const { call } = await database.calls.find(requestId)
    return { error, call, given, wallet: await tasks.walletOf(account) }
  }

  t.test('one that no process took on in time is refused, and nothing is sent', async (t) => {
    const { error, call, given, wallet } = await submitLate(ladderTimeoutMs)
    t.match(error, { code: 'service_unavailable' })
    t.match(call, { error_code: 'service_unavailable', cost: '0' })
    t.same(given, [])
    t.match(wallet, UNTOUCHED)
  })

  t.test('an attempt has what is left of the time of the submit, or of the task', async (t) => {
    t.same((await submitLate(0)).given[0], submitTimeoutMs)
    t.same((await submitLate(ladderTimeoutMs - 7_000)).given[0], 7_000)
    t.same((await submitLate(2_000, { deadlineMs: 9_000 })).given[0], 7_000)
  })

  t.test('another channel is tried as long as an attempt is worthwhile', async (t) => {
    const end = ladderTimeoutMs - 100
    const refused = { submit: 503 }
    const tried = await submitLate(0, {}, end, refused)
    t.same(tried.given, [submitTimeoutMs, 100])
    const cut = await submitLate(0, {}, end + 1, refused)
    t.same(cut.given, [submitTimeoutMs])
    t.match(cut.error, { code: 'upstream_timeout', status: 504 })
    t.match(cut.wallet, UNTOUCHED)
  })
})

t.test('lost submits free the money', async (t) => {
  // Submits of which nobody knows what became, and races around them. See docs/failure-modes.md, "Money", row 19.
  const tasks = await startTasks(t)
  const { database, upstream } = tasks

  t.test('an acceptance that comes once its submit was given up is on the record', async (t) => {
    const account = await tasks.newAccount()
    const worker = tasks.worker(t, {
      database: {
        ...database,
        tasks: {
          ...database.tasks,
          async applyTransition(move: TaskMove) {
            if (move.event === 'accepted') {
              const [task] = await database.tasks.read([move.id])
              await database.tasks.applyTransition(planTransition(task!, 'lost', {}, { now: Date.now() })!)
            }
            return database.tasks.applyTransition(move)
          },
        },
      },
    })
    const order = tasks.order(account, 'film', 'too late')
    await t.rejects(tasks.submit(order))
    const { call } = await database.calls.find(order.caller.request.requestId)
    const [lost] = await eventually('the upstream is on the record', async () => {
      const all = await database.lostSubmits.list({ isOpen: true, before: null, limit: 50 })
      const own = all.filter(({ taskId, upstreamId }) => taskId === call!.task_id && upstreamId !== null)
      return own.length > 0 ? own : undefined
    })
    t.match(lost, { state: 'found', upstreamId: /^up-/ })
    t.match(await tasks.walletOf(account), UNTOUCHED)
    worker.kill()
  })

  t.test('a client that has waited for a submit as long as it may gets 504 and the money', async (t) => {
    const account = await tasks.newAccount()
    const begun = Promise.withResolvers<void>()
    const worker = tasks.worker(t, {
      database: {
        ...database,
        tasks: {
          ...database.tasks,
          async applyTransition(move: TaskMove) {
            const outcome = await database.tasks.applyTransition(move)
            if (move.event !== 'claimed') return outcome
            begun.resolve()
            return new Promise<never>(() => {})
          },
        },
      },
    })
    const scheduler = new VirtualTimeScheduler(undefined, 2 * TASK_RULES.video.ladderTimeoutMs)
    const watch = watchTasks({ database, messages: { listen: () => () => {} }, log: silent, scheduler })
    const order = tasks.order(account, 'film', 'stuck')
    const answered = tasks.submit(order, { scheduler, watch }).catch((error: unknown) => error)
    await begun.promise
    scheduler.flush()
    t.match(await answered, { status: 504, code: 'upstream_timeout' })
    t.match(await tasks.walletOf(account), UNTOUCHED)
    const { call } = await database.calls.find(order.caller.request.requestId)
    t.match(call, { status: 'interrupted', error_code: 'upstream_timeout' })
    worker.kill()
  })

  t.test('the account of a submit that was lost gets no event', async (t) => {
    const account = await tasks.newAccount()
    tasks.worker(t)
    upstream.plans.set('dropped', { submit: 'drop' })
    const order = tasks.order(account, 'film', 'dropped')
    await t.rejects(tasks.submit(order), { code: 'upstream_unreachable' })
    const { call } = await database.calls.find(order.caller.request.requestId)
    t.match(await tasks.walletOf(account), UNTOUCHED)
    const query = { accountId: account.account.id, kind: 'video', states: null, limit: 9 } as const
    t.same((await database.tasks.list(query)).tasks, [])
    t.same(await tasks.sql`SELECT type FROM events WHERE subject_id = ${call!.task_id!}`, [])
  })
})

t.test('refusals of upstreams pass through', async (t) => {
  // What an upstream of media refuses reaches its client with status, code and type, and what it says besides;
  // `hide_auth_errors` makes 502 of what is about the channel's own key. The row is `rejected` for bad parameters and
  // content, and `error` for the rest. See docs/errors.md, "Catalog".
  const KEY = 'sk-test-studio-key-1'
  const MODEL = 'made'
  const tasks = await startTasks(t)
  const { database, storage } = tasks
  const client = new UpstreamClient()
  t.teardown(() => client.close())
  const calls = openMediaCalls(client, storage, authorizerOf)

  let answer = { status: 400, error: {} as object }
  const url = await serveHttp(t, async (request, response) => {
    await textOf(request)
    sendJson(response, answer.status, { error: answer.error }, { 'retry-after': '7' })
  })

  async function refusedWith(status: number, error: object, channel: object = {}) {
    answer = { status, error }
    const catalog = createCatalog(
      configFile.parse({
        models: [{ id: 'made', pricing: { unit: 'generation', per_unit: '4' } }],
        channels: [
          {
            ...{ id: 'studio', protocol: 'task', base_url: url, api_key: KEY, models: { made: 'm' } },
            ...channel,
          },
        ],
      }),
    )
    const worker = tasks.worker(t, { findAdapter: findTaskAdapter, catalog: () => catalog, calls })
    const account = await tasks.newAccount()
    const model = catalog.resolve(MODEL)!
    const job = mediaJob.parse({ work: 'music', prompt: 'a song', instrumental: false })
    const price = findMediaPrice(model.entry, null, Date.now())!
    const order = tasks.order(account, 'reel', 'made', {
      ...{ kind: 'music', model, job, price, hold: computeHold(price, job) },
      routes: catalog.routes(model, 'task'),
    })
    const refusal = await tasks
      .submit(order, { findAdapter: findTaskAdapter })
      .then(String, (reason) => reason)
    worker.kill()
    t.match(await tasks.walletOf(account), UNTOUCHED)
    const { call } = await database.calls.find(order.caller.request.requestId)
    return { refusal, row: call }
  }

  for (const [status, code, type, row] of [
    [400, 'invalid_request', 'invalid_request_error', 'rejected'],
    [401, 'invalid_api_key', 'authentication_error', 'error'],
    [402, 'upstream_error', 'api_error', 'error'],
    [403, 'permission_denied', 'permission_error', 'error'],
    [404, 'not_found', 'invalid_request_error', 'error'],
    [409, 'upstream_error', 'api_error', 'error'],
    [413, 'upstream_error', 'api_error', 'rejected'],
    [422, 'invalid_request', 'invalid_request_error', 'rejected'],
    [429, 'rate_limit_exceeded', 'rate_limit_error', 'error'],
    [500, 'upstream_error', 'api_error', 'error'],
  ] as const)
    t.test(`${status} passes through`, async (t) => {
      const found = await refusedWith(status, { message: 'this cannot be made' })
      t.match(found.refusal, { status, code, type, message: 'this cannot be made' })
      t.strictSame(found.refusal.headers, [['retry-after', '7']])
      t.match(found.row, { status: row, error_code: code })
    })

  t.test('a refusal of the content is a rejected row, whatever its status', async (t) => {
    const { refusal, row } = await refusedWith(403, { message: 'The prompt violates our content policy.' })
    t.match(refusal, { status: 403, code: 'permission_denied' })
    t.match(row, { status: 'rejected' })
  })

  t.test('what it says besides the message is kept, without the key of the channel', async (t) => {
    const error = { message: 'too long', param: 'prompt', details: [{ limit: 200, at: `key ${KEY}` }] }
    const { refusal } = await refusedWith(400, error)
    t.match(refusal, { extras: { param: 'prompt', details: [{ limit: 200 }] } })
    t.notMatch(JSON.stringify(refusal.extras), KEY)
  })

  t.test('a channel may hide what is about its own key', async (t) => {
    const hiding = { hide_auth_errors: true }
    for (const status of [401, 402, 403]) {
      const { refusal, row } = await refusedWith(status, { message: `the key ${KEY} is refused` }, hiding)
      t.match(
        refusal,
        { status: 502, code: 'upstream_error', message: /access of this service/ },
        String(status),
      )
      t.match(row, { status: 'error', error_code: 'upstream_error' })
    }
    const { refusal } = await refusedWith(403, { message: 'The content violates our policy.' }, hiding)
    t.match(refusal, { status: 403 }, 'not what is about the content')
  })
})

t.test('files of a job are brought to the upstream', async (t) => {
  const link = (url: string): FileRef => ({ from: 'url', url })
  const stored = (key: string, bytes = 3): FileRef => ({
    from: 'store',
    key,
    media_type: 'image/png',
    bytes,
    name: 'a.png',
  })
  const PUBLIC = { private_links: false }
  const silent = { info() {}, warn() {}, error() {} }

  const JOB = mediaJob.parse({
    work: 'image_edit',
    prompt: 'bluer',
    n: 1,
    images: [link('https://files.test/folder/my%20cat.png?x=1'), stored('inputs/one')],
    mask: link('https://files.test/'),
  })
  const TASK = { id: 'img_1', requestId: 'req_1', job: JOB } as Task

  const recorded: string[] = []
  const deps = {
    storage: {
      copy: async (url: string) => {
        if (url.includes('bad')) throw new Error('its address is not public')
        return { bytes: 9, mediaType: 'image/webp', width: null, height: null }
      },
      checkLinks: async (urls: readonly string[]) => {
        if (urls.some((url) => url.includes('inner')))
          throw new Error('its server cannot be reached at a public address')
      },
      read: async (key: string) => {
        if (key.includes('gone')) throw new Error('gone')
        return Buffer.from('abc')
      },
    },
    database: {
      tasks: {
        recordObjects: async (objects: { key: string }[]) =>
          void recorded.push(...objects.map(({ key }) => key)),
      },
    },
    now: () => 0,
    log: silent,
  } as unknown as TaskEngine

  const adapter = (more: Partial<MediaAdapter>): MediaAdapter => ({ ...pictureAdapter, ...more })

  t.test('links go as they are, what is in the store as text where the adapter writes it so', async (t) => {
    const { job, resolveUrl } = await prepareFiles(deps, TASK, adapter({ inlines: true }), PUBLIC)
    t.same(job, JOB)
    t.same(
      listFiles(job).map((file) => resolveUrl(file)),
      ['https://files.test/folder/my%20cat.png?x=1', 'data:image/png;base64,YWJj', 'https://files.test/'],
    )
  })

  t.test('links that an upstream does not take are taken in first, and their places recorded', async (t) => {
    const takesIn = (job: Task['job']) => listFiles(job).filter(({ from }) => from === 'url')
    const { job } = await prepareFiles(deps, TASK, adapter({ takesIn }), PUBLIC)
    t.same(listFiles(job), [
      { from: 'store', key: 'inputs/req_1-img_1-1', media_type: 'image/webp', bytes: 9, name: 'my_cat.png' },
      stored('inputs/one'),
      { from: 'store', key: 'inputs/req_1-img_1-2', media_type: 'image/webp', bytes: 9, name: 'file.webp' },
    ])
    t.same(recorded, ['inputs/req_1-img_1-1', 'inputs/req_1-img_1-2'])
  })

  t.test('files that are taken in share one limit', async (t) => {
    const limits: number[] = []
    const copy: TaskEngine['storage']['copy'] = async (_url, _key, { maxBytes }) => {
      limits.push(maxBytes)
      return { bytes: 1024, mediaType: 'image/webp', width: null, height: null }
    }
    const takesIn = (job: Task['job']) => listFiles(job).filter(({ from }) => from === 'url')
    await prepareFiles({ ...deps, storage: { ...deps.storage, copy } }, TASK, adapter({ takesIn }), PUBLIC)
    t.same(limits, [100 * 1024 * 1024, 100 * 1024 * 1024 - 1024])
  })

  t.test('a file that cannot be had is a plain error for the client', async (t) => {
    const bad = { ...TASK, job: withFiles(JOB, new Map([[listFiles(JOB)[0]!, link('https://bad.test/a')]])) }
    const takesIn = (job: Task['job']) => listFiles(job).slice(0, 1)
    await t.rejects(
      prepareFiles(deps, bad, adapter({ takesIn }), PUBLIC),
      new UnusableFile('its address is not public'),
    )
    const gone = { ...TASK, job: withFiles(JOB, new Map([[listFiles(JOB)[1]!, stored('inputs/gone')]])) }
    await t.rejects(prepareFiles(deps, gone, adapter({ inlines: true }), PUBLIC), /not there any more/)
    const large = {
      ...TASK,
      job: withFiles(JOB, new Map([[listFiles(JOB)[1]!, stored('inputs/large', 100_000_000)]])),
    }
    await t.rejects(prepareFiles(deps, large, adapter({ inlines: true }), PUBLIC), /too large together/)
  })

  const served = (t: Test) =>
    serveHttp(t, (_, response) => void response.writeHead(200, { 'content-type': 'image/png' }).end(PICTURE))

  t.test('a store that is away is no fault of a file', async (t) => {
    const away = async () => {
      throw new Error('connect ECONNREFUSED 10.0.0.5:9000')
    }
    const storage = openTaskStorage({
      store: { put: away, get: away } as unknown as ObjectStore,
      isAllowed: () => true,
    })
    const images = [link(`${await served(t)}/a.png`)]
    const job = mediaJob.parse({ work: 'image', prompt: 'bluer', n: 1, images })
    const takesIn = () => listFiles(job)
    const prepared = (of: Task['job'], more: Partial<MediaAdapter>) =>
      prepareFiles({ ...deps, storage }, { ...TASK, job: of }, adapter(more), { private_links: true })
    await t.rejects(prepared(job, { takesIn }), StoreFailure)
    const kept = mediaJob.parse({ work: 'image', prompt: 'bluer', n: 1, images: [stored('inputs/one')] })
    await t.rejects(prepared(kept, { inlines: true }), StoreFailure)
  })

  t.test('a result is copied from a link as long as signatures make them', async (t) => {
    const { store } = await folderStore(t)
    const storage = openTaskStorage({ store, isAllowed: () => true })
    const url = `${await served(t)}/a.png?signature=${'x'.repeat(4000)}`
    const limits = { maxBytes: 1024, timeoutMs: 5000 }
    t.match(await storage.copy(url, 'images/a.png', limits, null), { bytes: PICTURE.length })
  })

  t.test('results have names of their own', async (t) => {
    const file = (role: string) => resultFile.parse({ role })
    const images = [file('image'), file('image')]
    t.equal(makeKey({ kind: 'image', id: 'img_1' }, images, 1, 'image/webp'), 'images/img_1-2.webp')
    t.equal(makeKey({ kind: 'image', id: 'img_1' }, [file('image')], 0, null), 'images/img_1-1.png')
    t.equal(makeKey({ kind: 'video', id: 'vid_1' }, [file('video')], 0, 'video/mp4'), 'videos/vid_1.mp4')
    const songs = [file('audio'), file('cover'), file('audio'), file('cover')]
    t.same(
      songs.map((_, at) => makeKey({ kind: 'music', id: 'mus_1' }, songs, at, null)),
      ['music/mus_1-1.mp3', 'music/mus_1-1-cover.jpg', 'music/mus_1-2.mp3', 'music/mus_1-2-cover.jpg'],
    )
  })

  t.test('a link into an inner network is handed on to nobody but an upstream of our own', async (t) => {
    const inner = {
      ...TASK,
      job: withFiles(JOB, new Map([[listFiles(JOB)[0]!, link('http://inner.test/a')]])),
    }
    const refused = new UnusableFile('its server cannot be reached at a public address')
    await t.rejects(prepareFiles(deps, inner, adapter({}), PUBLIC), refused)
    const { job, resolveUrl } = await prepareFiles(deps, inner, adapter({}), { private_links: true })
    t.equal(resolveUrl(listFiles(job)[0]!), 'http://inner.test/a')
  })
})

t.test('files of another kind cost nothing', async (t) => {
  // What is no picture, film or sound of the kind that was ordered is neither stored nor charged, and counts against its channel.
  t.test('kinds of files', async (t) => {
    const right = [
      ['image', 'image/avif'],
      ['cover', 'image/jpeg'],
      ['video', 'video/quicktime'],
      ['video', 'image/gif'],
      ['audio', 'audio/mpeg'],
      ['audio', 'video/mp4'],
    ] as const
    for (const [role, type] of right) t.ok(isOfRole(role, type), `${role} ${type}`)
    const wrong = [
      ['image', 'video/mp4'],
      ['cover', 'audio/mpeg'],
      ['video', 'image/png'],
      ['video', 'audio/mp4'],
      ['audio', 'image/gif'],
    ] as const
    for (const [role, type] of wrong) t.notOk(isOfRole(role, type), `${role} ${type}`)
  })

  t.test('tasks', async (t) => {
    const tasks = await startTasks(t)
    const { upstream, storage } = tasks
    const health = new ChannelHealth()
    const stored: string[] = []
    const watched = {
      ...storage,
      async copy(...copied: Parameters<typeof storage.copy>) {
        const object = await storage.copy(...copied)
        stored.push(copied[1])
        return object
      },
      async put(...put: Parameters<typeof storage.put>) {
        stored.push(put[0])
        return storage.put(...put)
      },
    }
    tasks.worker(t, { health, storage: watched })
    const account = await tasks.newAccount()
    const faultOf = (id: string) => health.listActivity().get(id)?.lastError?.message

    await t.test('a picture where a film was ordered: the task has failed and is paid back', async (t) => {
      upstream.plans.set('a still', { file: PICTURE })
      const { id } = await tasks.submit(tasks.order(account, 'reel', 'a still'))
      const task = await tasks.reached(id, 'failed', 'succeeded')
      t.match(task, {
        state: 'failed',
        errorCode: 'generation_failed',
        cost: 0n,
        result: { files: { length: 0 } },
      })
      t.match(task.errorMessage, /no video/)
      t.match(await tasks.walletOf(account), { balance: 1000n * ONE_CREDIT, held: 0n })
      t.same(stored, [])
      t.equal(upstream.paths.filter((path) => path.includes('/file/')).length, 1, 'it is fetched once')
      t.match(faultOf('reels'), /image\/png in place of a video/)
    })

    await t.test('of several pictures those that are films are left out, and not charged', async (t) => {
      upstream.plans.set('two moving', { images: [PICTURE, FILM, PICTURE] })
      const job = mediaJob.parse({ work: 'image', prompt: 'two moving', n: 3 })
      const task = await tasks.submit(tasks.order(account, 'picture', 'two moving', { job }))
      t.match(task, { state: 'succeeded', cost: 8n * ONE_CREDIT, result: { files: { length: 2 } } })
      t.equal(stored.length, 2)
      t.match(task.result?.beyond, [/video\/mp4 in place of an image, left out/])
      t.match(faultOf('pictures'), /video\/mp4 in place of an image/)
    })

    await t.test('a film where a picture was ordered: the client that waits is answered so', async (t) => {
      const before = await tasks.walletOf(account)
      upstream.plans.set('moving', { images: [FILM] })
      const task = await tasks.submit(tasks.order(account, 'picture', 'moving'))
      t.match(task, { state: 'failed', errorCode: 'generation_failed', cost: 0n })
      await pause(0)
      t.equal((await tasks.walletOf(account)).balance, before.balance)
      t.equal(stored.length, 2)
    })
  })
})

t.test('recording of a voice is measured', async (t) => {
  // A voice is made from 5 seconds to 3 minutes. Known where the gateway has the file.
  const links = fileLinks('http://files.test', Buffer.alloc(32, 5))
  const storage = openTaskStorage({ store: await FolderStore.open(t.testdir(), links) })

  const problemOf = async (name: string, bytes: Buffer) => {
    const key = `inputs/${name}`
    await storage.put(key, bytes, 'audio/mpeg')
    return findReferenceProblem(storage, { key, bytes: bytes.length })
  }

  t.test(
    'recordings of 5 seconds to 3 minutes are taken; the error of others has their length',
    async (t) => {
      const sound = (seconds: number) => problemOf(`${seconds}.mp3`, soundMp3({ seconds, seed: 1 }))
      for (const seconds of [5, 60, 180]) t.equal(await sound(seconds), null, `${seconds} s`)
      t.equal(await sound(4.5), 'The recording must be 5 to 180 seconds long; it is 4.5.')
      t.equal(await sound(181), 'The recording must be 5 to 180 seconds long; it is 181.0.')
    },
  )

  t.test('what tells nobody its length is left to the upstream', async (t) => {
    t.equal(await problemOf('odd.mp3', Buffer.alloc(100, 3)), null)
  })
})

t.test('messages end with their connection', async (t) => {
  const NOBODY_LISTENS = 'nats://127.0.0.1:1'

  t.test('a message is tried again while NATS is away, no more once this process has left it', async (t) => {
    const nats = openNats({ url: NOBODY_LISTENS, name: 'test', log: noLog })
    const scheduler = new VirtualTimeScheduler()
    const messages = taskMessages(nats, noLog, scheduler)
    messages.publish({ id: 'task_01', chain: 1 })
    await turn()
    t.equal(scheduler.actions.length, 1, 'NATS is away')
    await nats.close()
    scheduler.flush()
    await turn()
    t.equal(scheduler.actions.length, 0, 'NATS was left')
  })
})
