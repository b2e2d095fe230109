/** Tasks from their order to their end, and what lists and the log say of them. */
import { generateKeyPairSync } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { VirtualTimeScheduler } from 'rxjs'
import t from 'tap'
import type { Caller } from '../../../pipelines/calls/authenticate.ts'
import { UpstreamRefusal } from '../../../pipelines/calls/upstream-error.ts'
import { cancelFoundTask } from '../../../pipelines/media/cancel-task.ts'
import { listTasks } from '../../../pipelines/media/task-records.ts'
import { endTask, NotEndable } from '../../../pipelines/tasks/end/end-task.ts'
import { followLostSubmits } from '../../../pipelines/tasks/lost/follow-lost.ts'
import type { TaskOrder } from '../../../pipelines/tasks/order/order.ts'
import type { MediaCalls } from '../../../pipelines/tasks/ports.ts'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import { TaskSweep } from '../../../pipelines/tasks/worker/sweep.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { ONE_CREDIT, printCredits } from '../../../schemas/money.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import { MEDIA_DIALECTS } from '../../../simulator/dialects.ts'
import { authorizers } from '../../../src/auth/authorizer.ts'
import type { MediaAdapter } from '../../../src/channels/media/adapter.ts'
import { findMediaAdapter, MEDIA_PROTOCOLS } from '../../../src/channels/media/registry.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { computeHold, findMediaPrice } from '../../../src/core/media/pricing.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { openNats } from '../../../src/nats/nats.ts'
import { DeadlineExceeded } from '../../../src/postgres/errors.ts'
import type { NewTask, Task, TaskMove } from '../../../src/postgres/tasks/types.ts'
import { openMediaCalls } from '../../../src/server/channels/media-calls.ts'
import { repeatUnlessBusy } from '../../../src/server/gateway/engine-watch.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { command, noEngines } from '../../src/cli/support.ts'
import { settlement, startDatabase } from '../../src/postgres/support.ts'
import { created, hold, move, newVideo, RESULT } from '../../src/postgres/tasks/support.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { until } from '../../support/eventually.ts'
import { dashscopeDialect } from '../../support/media-providers/dashscope.ts'
import { falDialect } from '../../support/media-providers/fal.ts'
import { klingDialect } from '../../support/media-providers/kling.ts'
import { minimaxDialect } from '../../support/media-providers/minimax.ts'
import {
  type Dialect,
  FILM as FILM_FILE,
  KEY,
  type Provider,
  SOUND,
  startProvider,
} from '../../support/media-providers/provider.ts'
import { replicateDialect } from '../../support/media-providers/replicate.ts'
import { runwayDialect } from '../../support/media-providers/runway.ts'
import { veoDialect } from '../../support/media-providers/veo.ts'
import { BUCKET, PROJECT, vertexDialect } from '../../support/media-providers/vertex.ts'
import { reader, request } from '../call-log/support.ts'
import { CopyBench } from '../call-log/usage-copy-support.ts'
import { taskOf } from '../media/support.ts'
import {
  catalogFor,
  findAdapter,
  silent,
  startTasks,
  type TestAccount,
  type TestTasks,
  type TestWorker,
  UNTOUCHED,
  type WorkerChanges,
} from './support.ts'
import { FILM, PICTURE } from './upstream.ts'

t.test('task runs from order to settled row', async (t) => {
  // From an endpoint's order to the settled row, over real engines and HTTP.
  const tasks = await startTasks(t)
  const { database, upstream, storage } = tasks
  const health = new ChannelHealth()
  let beyond = 0
  const metrics = { countSubmit() {}, countPoll() {}, countExcess: () => void beyond++, countDiscard() {} }
  tasks.worker(t, { health, metrics })

  const callOf = async (taskId: string) => (await database.calls.find(taskId)).call!

  t.test('a film: held, accepted, made, stored, charged by its length', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('kite', { states: ['queued', 'running', 'succeeded'] })
    const accepted = await tasks.submit(tasks.order(account, 'film', 'kite'))
    t.match(accepted, {
      state: 'queued',
      channelId: 'first',
      upstreamModel: 'film-v1',
      hold: (ONE_CREDIT * 25n) / 2n,
    })
    t.match(await tasks.walletOf(account), { held: accepted.hold, used: 0n })
    const ended = await tasks.reached(accepted.id, 'succeeded')
    const key = `videos/${accepted.id}.mp4`
    t.match(ended, {
      cost: ONE_CREDIT * 10n,
      result: { files: [{ key, upstream_url: null, media_type: 'video/mp4' }] },
    })
    t.ok((await storage.read(key, 10_000)).equals(FILM))
    t.match(await tasks.walletOf(account), { held: 0n, used: ONE_CREDIT * 10n })
    const row = await callOf(accepted.id)
    t.match(row, {
      status: 'success',
      model: 'film',
      protocol: 'videos',
      unit_type: 'video',
      unit_count: '4',
      cost: '10',
      estimate: '12.5',
      attempts_count: null,
      request_id: accepted.requestId,
      task_id: accepted.id,
      error_code: null,
    })
    t.equal(row.result_urls.length, 1)
    t.match(row.result_urls[0], new RegExp(`^http://files.test/files/${key}\\?expires=`))
    t.ok(Date.parse(row.result_expires_at!) > Date.now())
    t.equal(upstream.submits.get(accepted.id), 1)
  })

  t.test('a picture in the answer itself is stored before anything says so', async (t) => {
    const account = await tasks.newAccount()
    const task = await tasks.submit(tasks.order(account, 'picture', 'a cat'))
    t.match(task, { state: 'succeeded', cost: ONE_CREDIT * 4n })
    const key = `images/${task.id}-1.png`
    t.equal(task.result?.files[0]?.key, key)
    t.ok((await storage.read(key, 10_000)).equals(PICTURE))
    t.match(await callOf(task.id), {
      status: 'success',
      unit_count: '1',
      unit_type: 'image',
      attempts_count: 1,
    })
    t.same(await database.tasks.findExpiredObjects(Date.now() + 25 * 3_600_000, 10), [key])
  })

  t.test('pictures that nobody asked for are neither delivered nor charged', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('a crowd', { pictures: 500 })
    const task = await tasks.submit(tasks.order(account, 'picture', 'a crowd'))
    t.match(task, { state: 'succeeded', cost: task.hold })
    t.equal(task.result?.files.length, 1)
    t.match(await callOf(task.id), { status: 'success', unit_count: '1' })
    await t.rejects(storage.read(`images/${task.id}-2.png`, 10_000), /no object/)
  })

  t.test(
    'a film that is longer than was asked for is charged as reported, and held against its channel',
    async (t) => {
      const account = await tasks.newAccount()
      upstream.plans.set('endless', { seconds: 60 })
      const before = beyond
      const { id, hold } = await tasks.submit(tasks.order(account, 'film', 'endless'))
      const { cost, result } = await tasks.reached(id, 'succeeded')
      t.match(
        { hold, cost },
        { hold: (ONE_CREDIT * 25n) / 2n, cost: ONE_CREDIT * 150n },
        '60 seconds where 5 were asked for',
      )
      const note = '60 seconds, where 5 were asked for'
      t.match(result, { seconds: 60, files: [{ seconds: 60 }], beyond: [note] })
      t.equal(beyond, before + 1, 'counted')
      t.match(
        health.listReports().find(({ channel }) => channel === 'first'),
        { last_error: { code: 'beyond_order' } },
      )
      t.match((await database.calls.find(id)).detail ?? '', new RegExp(`beyond_order.*${note}`))
    },
  )

  t.test('what an upstream refuses is the client’s to hear, and costs nothing', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('bad', { submit: 422 })
    const order = tasks.order(account, 'film', 'bad')
    const error = await tasks.submit(order).catch((reason: unknown) => reason)
    t.ok(error instanceof UpstreamRefusal)
    t.match(error, { status: 422, message: 'no, says the upstream' })
    t.match(await tasks.walletOf(account), UNTOUCHED)
    const { call, entries } = await database.calls.find(order.caller.request.requestId)
    t.match(call, {
      status: 'rejected',
      error_message: 'no, says the upstream',
      cost: '0',
      attempts_count: 1,
    })
    t.same(
      entries.map(({ kind }) => kind),
      ['hold', 'release'],
    )
    const listed = { accountId: account.account.id, kind: 'video', states: null, limit: 10 } as const
    t.same((await database.tasks.list(listed)).tasks, [])
  })

  t.test('what an upstream says of the key of a channel reaches its client', async (t) => {
    const account = await tasks.newAccount()
    for (const [submit, attempts_count, code] of [
      [401, 1, 'invalid_api_key'],
      // Another channel may have credit left.
      [402, 2, 'upstream_error'],
      [403, 1, 'permission_denied'],
    ] as const) {
      upstream.plans.set('no access', { submit })
      const order = tasks.order(account, 'film', 'no access')
      const error = await tasks.submit(order).catch((reason: unknown) => reason)
      t.match(error, { status: submit, code, message: 'no, says the upstream' })
      const { call } = await database.calls.find(order.caller.request.requestId)
      t.match(call, { status: 'error', error_code: code, cost: '0', attempts_count })
    }
  })

  t.test('a channel that is not there, or says that it cannot, is followed by the next', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('busy', { submit: 503 })
    const error = await tasks.submit(tasks.order(account, 'film', 'busy')).catch((reason: unknown) => reason)
    t.match(error, { status: 503 })
    const [, last] = upstream.paths.slice(-2)
    t.match(last, /^\/second\//, 'both were asked')
    t.ok((await database.audits.verifyWallets()).ok)
  })

  t.test("an upstream's refusal says when to try again, wherever the client waits for it", async (t) => {
    const account = await tasks.newAccount()
    const http = 'Wed, 21 Oct 2026 07:28:00 GMT'
    for (const [model, submit, retryAfter] of [
      ['film', 429, '17'],
      ['film', 503, http],
      ['reel', 429, '30'],
      ['picture', 429, '5'],
      ['picture', 503, '60'],
    ] as const) {
      upstream.plans.set('limited', { submit, retryAfter })
      const error = await tasks
        .submit(tasks.order(account, model, 'limited'))
        .catch((reason: unknown) => reason)
      t.match(error, { status: submit, headers: [['retry-after', retryAfter]] }, `${model} ${submit}`)
    }
    const order = tasks.order(account, 'film', 'limited')
    await tasks.submit(order).catch(() => undefined)
    const { call } = await database.calls.find(order.caller.request.requestId)
    t.match(call, { attempts: { length: 2 } })
    t.notMatch(JSON.stringify(call), 'retry_after', 'the row says nothing of it')
    upstream.plans.set('limited', { submit: 429, retryAfter: '9'.repeat(100) })
    const error = await tasks
      .submit(tasks.order(account, 'reel', 'limited'))
      .catch((reason: unknown) => reason)
    t.match(error, { status: 429, headers: { length: 0 } }, 'what is no time is left out')
  })

  t.test('an upstream that fails, lets lapse, or does not know its own state', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('fails', { states: ['running', 'failed'] })
    upstream.plans.set('lapses', { states: ['expired'] })
    const failing = await tasks.submit(tasks.order(account, 'film', 'fails'))
    const lapsing = await tasks.submit(tasks.order(account, 'film', 'lapses'))
    t.match(await tasks.reached(failing.id, 'failed'), { errorCode: 'content_policy_violation', cost: 0n })
    await tasks.reached(lapsing.id, 'expired')
    upstream.plans.set('no key', { states: ['running', 'unauthorized'] })
    const unknown = await tasks.submit(tasks.order(account, 'film', 'no key'))
    const ofKey = { errorCode: 'unauthorized', errorMessage: 'not fit to be shown' }
    t.match(await tasks.reached(unknown.id, 'failed'), ofKey)
    t.match(await callOf(failing.id), {
      status: 'error',
      error_code: 'content_policy_violation',
      unit_count: null,
    })
    t.match(await callOf(lapsing.id), { status: 'error', error_code: 'task_expired', cost: '0' })
    t.match(await tasks.walletOf(account), UNTOUCHED)
  })

  t.test('a file that cannot be copied keeps the link of the upstream', async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('gone', { states: ['succeeded'], lostFiles: true })
    const task = await tasks.submit(tasks.order(account, 'film', 'gone'))
    const ended = await tasks.reached(task.id, 'succeeded')
    t.match(ended.result?.files[0], { key: null, upstream_url: /\/file\/up-/ })
    t.match((await callOf(task.id)).result_urls, [/\/file\/up-/])
  })

  t.test('without enough money nothing is sent', async (t) => {
    const account = await tasks.newAccount(1n)
    const submits = upstream.submits.size
    await t.rejects(tasks.submit(tasks.order(account, 'film', 'poor')), { code: 'quota_exceeded' })
    t.equal(upstream.submits.size, submits)
    t.match(await tasks.walletOf(account), { balance: ONE_CREDIT, held: 0n })
  })

  t.test('the books agree at the end', async (t) => {
    t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
  })
})

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

t.test('links to results reach the call log', async (t) => {
  const bench = await CopyBench.open(t)

  t.test('a task’s id and links are in the call log as settled, whatever characters they have', async (t) => {
    const { database, callLog, account } = bench
    const expires = 1_760_600_000_123
    const urls = ['https://files.test/a.png?x=1&y=%20', "https://files.test/it's\\here\t[1],2"]
    const one = settlement(account, {
      task_id: 'vid_1',
      result_urls: urls,
      result_expires_at: expires,
      unit_count: '4',
      unit_type: 'video',
    })
    const other = settlement(account, { task_id: 'vid_2', result_urls: ['https://files.test/for-ever'] })
    const call = settlement(account)
    await database.bookings.book([one, other, call])
    const copier = await bench.newCopier(t)
    await bench.untilCopied()
    await copier.stop()
    const found = async (requestId: string) => {
      const { call: row } = await database.calls.find(requestId)
      return {
        row: row!,
        logged: (await callLog.findCall({ accountId: account, keyId: null, id: row!.id }))!,
      }
    }
    const first = await found(one.request_id)
    t.same(first.row.result_urls, urls)
    t.match(first.row, { task_id: 'vid_1', result_expires_at: new Date(expires).toISOString() })
    t.match(first.logged, {
      task_id: 'vid_1',
      result_urls: [urls[0], 'https://files.test/it%27s%5Chere\t[1],2'],
      result_expires_at: new Date(expires).toISOString(),
    })
    t.match((await found(other.request_id)).logged, {
      task_id: 'vid_2',
      result_urls: ['https://files.test/for-ever'],
      result_expires_at: null,
    })
    t.match((await found(call.request_id)).logged, {
      task_id: null,
      result_urls: { length: 0 },
      result_expires_at: null,
    })
  })
})

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

t.test('work that comes with the answer', async (t) => {
  // Images, speech and songs of an upstream that answers with them: stored, charged once, and never asked for twice. The
  // client of a song, which takes minutes, does not wait.
  const MODEL = 'made-at-once'
  const REFUSED = { state: 'refused' } as const
  /** Of two images at 4 credits each, of words at 2 credits a thousand characters, and of a song at 5 credits. */
  const WORKS = {
    'minimax-images': {
      order: { kind: 'image', protocol: 'images' },
      pricing: { unit: 'image', per_unit: '4' },
      job: (prompt: string) => ({ work: 'image', prompt, n: 2, size: '1024x1024' }),
      costOf: (_: string) => 8n * ONE_CREDIT,
      result: { files: [{ role: 'image', key: /^images\// }] },
      lost: { status: /^50\d$/ },
      refused: { improper: { status: 400 }, busy: { status: 429 } },
      hasLinks: true,
    },
    'minimax-speech': {
      order: { kind: 'speech', protocol: 'speech' },
      pricing: { unit: '1000_characters', per_unit: '2' },
      job: (input: string) => ({ work: 'speech', input, voice: null, speed: 1 }),
      costOf: (words: string) => (BigInt(words.length) * 2n * ONE_CREDIT) / 1000n,
      result: { files: [{ role: 'audio', key: /^speech\// }] },
      lost: { status: /^50\d$/ },
      refused: { improper: { status: 400 }, busy: { status: 429 } },
      hasLinks: false,
    },
    'minimax-music': {
      order: { kind: 'music', protocol: 'music' },
      pricing: { unit: 'generation', per_unit: '5' },
      job: (prompt: string) => ({ work: 'music', prompt, instrumental: true }),
      costOf: (_: string) => 5n * ONE_CREDIT,
      result: {
        tracks: [{ seconds: 25.364, lyrics: null }],
        files: [{ role: 'audio', key: /^music\/mus_\w+\.mp3$/, track: 0 }],
      },
      lost: REFUSED,
      // The last is an answer without a song.
      refused: { improper: REFUSED, busy: REFUSED, broken: REFUSED },
      hasLinks: true,
    },
  } as const

  const tasks = await startTasks(t)
  const { storage } = tasks
  const provider = await startProvider(t, minimaxDialect)
  const client = new UpstreamClient()
  t.teardown(() => client.close())
  const sent = openMediaCalls(client, storage, authorizerOf)
  const timeouts: number[] = []
  const calls: MediaCalls = {
    ...sent,
    send(request, options) {
      timeouts.push(options.timeoutMs)
      return sent.send(request, options)
    },
  }
  const jobsOf = (prompt: string) => provider.jobs.filter((job) => job.prompt === prompt)

  t.test(
    'each protocol of media that is not polled is here, or has a dialect of the simulated provider',
    async (t) => {
      const covered = new Set([...Object.keys(WORKS), ...MEDIA_DIALECTS.map(({ name }) => name)])
      const others = MEDIA_PROTOCOLS.filter((protocol) => findMediaAdapter(protocol)!.follow === null)
      t.same(
        others.filter((protocol) => !covered.has(protocol)),
        [],
      )
    },
  )

  for (const [protocol, work] of Object.entries(WORKS))
    t.test(protocol, async (t) => {
      const catalog = createCatalog(
        configFile.parse({
          models: [{ id: MODEL, pricing: work.pricing }],
          channels: [
            {
              id: 'minimax',
              protocol,
              base_url: `${provider.url}/v1`,
              api_key: KEY,
              models: { [MODEL]: 'upstream-model' },
            },
          ],
        }),
      )
      const deps = { findAdapter: findMediaAdapter, catalog: () => catalog, calls }
      for (let count = 0; count < 2; count++) tasks.worker(t, deps)
      /** Returns the task once it has ended, or the error that its client gets. */
      const ordered = async (account: TestAccount, prompt: string) => {
        const model = catalog.resolve(MODEL)!
        const job = mediaJob.parse(work.job(prompt))
        const price = findMediaPrice(model.entry, null, Date.now())!
        const routes = catalog.routes(model, protocol)
        const more: Partial<TaskOrder> = {
          model,
          job,
          price,
          hold: computeHold(price, job),
          routes,
          ...work.order,
        }
        // The client of a film does not wait either.
        const isAwaited = protocol !== 'minimax-music'
        const order = tasks.order(account, isAwaited ? 'picture' : 'film', prompt, more)
        try {
          const task = await tasks.submit(order, { findAdapter: findMediaAdapter })
          if (isAwaited) return task
          return await tasks.reached(task.id, 'succeeded', 'failed', 'refused')
        } catch (error) {
          return error
        }
      }

      await t.test('what was made is stored, and charged once', async (t) => {
        const account = await tasks.newAccount()
        const prompt = `good ${protocol}`
        const cost = work.costOf(prompt)
        const ended = (await ordered(account, prompt)) as Awaited<ReturnType<typeof tasks.reached>>
        t.match(ended, { state: 'succeeded', cost, result: work.result })
        if (work.order.kind !== 'image')
          t.ok((await storage.read(ended.result!.files[0]!.key!, 10_000)).equals(SOUND))
        t.match(await tasks.walletOf(account), { held: 0n, used: cost })
        t.equal(jobsOf(prompt).length, 1)
        if (work.order.kind === 'music')
          t.ok(timeouts.at(-1)! > TASK_RULES.music.submitTimeoutMs, 'it may take longer than a submit')
      })

      await t.test('a lost answer is an error: nothing is charged or sent again', async (t) => {
        const account = await tasks.newAccount()
        const prompt = `cut ${protocol}`
        t.match(await ordered(account, prompt), work.lost)
        await pause(300)
        t.equal(jobsOf(prompt).length, 1)
        t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
      })

      await t.test('a refusal costs nothing', async (t) => {
        for (const [fate, refused] of Object.entries(work.refused)) {
          const account = await tasks.newAccount()
          t.match(await ordered(account, `${fate} ${protocol}`), refused, fate)
          t.match(await tasks.walletOf(account), { held: 0n, used: 0n }, fate)
        }
      })

      if (work.hasLinks)
        await t.test('a link that opens no more is handed on, and what was made is charged', async (t) => {
          const account = await tasks.newAccount()
          const prompt = `gone ${protocol}`
          t.match(await ordered(account, prompt), {
            state: 'succeeded',
            cost: work.costOf(prompt),
            result: { files: [{ key: null, upstream_url: /^http/ }] },
          })
        })
    })
})

t.test('each provider of media', async (t) => {
  // Every adapter of a provider's media jobs, through the task engine, before a provider that keeps its jobs: what is made is
  // stored and charged as the provider reports it, and nothing is ever submitted twice.
  interface Expected {
    /** Default: its name in this list. */
    readonly protocol?: string
    /** Further fields of its channel, in place of its key. */
    readonly channel?: object
    readonly dialect: Dialect
    /** Behind the provider's address. */
    readonly base: string
    readonly model: string
    /** Seconds that a film is charged for: 4, or the 5 that were asked for where the provider reports none. */
    readonly seconds: 4 | 5
    /** How many of two images that were asked for are made. */
    readonly images: 0 | 1 | 2
    /** False: it says no more than that a job is not done. */
    readonly hasStates: boolean
    /** How a job ends that came too late; null where the provider has no such end. */
    readonly late: Task['state'] | null
    readonly canCancel: boolean
    readonly canFind: boolean
    /** False: files come in the answer. */
    readonly hasLinks?: false
    /** Code of a job that failed. */
    readonly broken: string
  }

  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const GOOGLE = {
    type: 'google',
    credentials: JSON.stringify({
      type: 'service_account',
      client_email: 'a@p.iam.gserviceaccount.com',
      private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    }),
  }

  const VEO: Expected = {
    dialect: veoDialect,
    base: '',
    model: 'veo-3.1-generate-preview',
    seconds: 5,
    images: 0,
    hasStates: false,
    late: null,
    canCancel: false,
    canFind: false,
    broken: 'generation_failed',
  }
  const VEO_AT_VERTEX: Expected = {
    ...VEO,
    protocol: 'veo',
    channel: { provider: 'vertex', auth: GOOGLE },
    dialect: vertexDialect,
    base: PROJECT,
    model: 'veo-3.1-generate-001',
  }

  const PROVIDERS: Readonly<Record<string, Expected>> = {
    fal: {
      dialect: falDialect,
      base: '',
      model: 'fal-ai/kling-video/v2/text-to-video',
      seconds: 4,
      images: 2,
      hasStates: true,
      late: 'failed',
      canCancel: true,
      canFind: false,
      broken: 'generation_failed',
    },
    replicate: {
      dialect: replicateDialect,
      base: '/v1',
      model: 'owner/model',
      seconds: 4,
      images: 2,
      hasStates: true,
      late: 'expired',
      canCancel: true,
      canFind: false,
      broken: 'generation_failed',
    },
    kling: {
      dialect: klingDialect,
      base: '/v1',
      model: 'kling-v2-6',
      seconds: 4,
      images: 2,
      hasStates: true,
      late: null,
      canCancel: false,
      canFind: true,
      broken: 'generation_failed',
    },
    veo: VEO,
    'veo at Vertex': { ...VEO_AT_VERTEX, hasLinks: false },
    'veo at Vertex, with a bucket': {
      ...VEO_AT_VERTEX,
      channel: { provider: 'vertex', auth: GOOGLE, storage_uri: `${BUCKET}/films` },
    },
    'minimax-video': {
      dialect: minimaxDialect,
      base: '/v1',
      model: 'MiniMax-Hailuo-02',
      seconds: 5,
      images: 0,
      hasStates: true,
      late: null,
      canCancel: false,
      canFind: false,
      broken: 'content_policy',
    },
    dashscope: {
      dialect: dashscopeDialect,
      base: '/api/v1',
      model: 'wan2.5-t2v-preview',
      seconds: 4,
      images: 2,
      hasStates: true,
      late: null,
      canCancel: true,
      canFind: false,
      broken: 'generation_failed',
    },
    runway: {
      dialect: runwayDialect,
      base: '/v1',
      model: 'gen4_turbo',
      seconds: 5,
      images: 1,
      hasStates: true,
      late: null,
      canCancel: true,
      canFind: false,
      broken: 'generation_failed',
    },
  }

  /** Longer than several looks take. */
  const A_WHILE_MS = 300

  const tasks = await startTasks(t)
  const { database, storage } = tasks
  const client = new UpstreamClient()
  t.teardown(() => client.close())

  const messages = { announce() {}, announceWallets() {} }

  /** Answers for Google's token endpoint, whose address is in the code of its library. */
  const authorizerOf = authorizers({
    fetch: async () => Response.json({ access_token: KEY, expires_in: 3600, token_type: 'Bearer' }),
    now: Date.now,
    elapsed: () => performance.now(),
    env: {},
    onToken() {},
    onFailure: (_, problem) => t.fail(problem),
  })
  const calls = openMediaCalls(client, storage, authorizerOf)

  /** Objects of Cloud Storage are at the provider, below `/files`. */
  const storageAt = (url: string): typeof storage => ({
    ...storage,
    copy(link, key, limits, allowedHost, signal) {
      const isObject = allowedHost === 'storage.googleapis.com'
      const at = isObject ? link.replace(/^.*\/films\//, `${url}/files/`) : link
      return storage.copy(at, key, limits, isObject ? new URL(url).host : allowedHost, signal)
    },
  })

  t.test(
    'each protocol of media that is polled is here, or has a dialect of the simulated provider',
    async (t) => {
      const covered = new Set([
        ...Object.entries(PROVIDERS).map(([name, { protocol = name }]) => protocol),
        ...MEDIA_DIALECTS.map(({ name }) => name),
      ])
      const polled = MEDIA_PROTOCOLS.filter((protocol) => findMediaAdapter(protocol)!.follow !== null)
      t.same(
        polled.filter((protocol) => !covered.has(protocol)),
        [],
      )
    },
  )

  for (const [name, expected] of Object.entries(PROVIDERS)) {
    const protocol = expected.protocol ?? name
    t.test(name, async (t) => {
      const provider: Provider = await startProvider(t, expected.dialect)
      const catalog = createCatalog(
        configFile.parse({
          models: [
            { id: 'film', pricing: { unit: 'second', per_unit: '2.5' } },
            { id: 'picture', pricing: { unit: 'image', per_unit: '4' } },
          ],
          channels: [
            {
              id: protocol,
              protocol,
              base_url: provider.url + expected.base,
              ...(expected.channel ?? { api_key: KEY }),
              models: { film: expected.model, picture: expected.model },
            },
          ],
        }),
      )
      const deps = {
        findAdapter: findMediaAdapter,
        catalog: () => catalog,
        calls,
        storage: storageAt(provider.url),
      }
      // Two processes: whichever gets a message works on it, and both may get it.
      const workers = [tasks.worker(t, { ...deps, hurry: 100 }), tasks.worker(t, { ...deps, hurry: 100 })]

      const order = (account: TestAccount, name: 'film' | 'picture', prompt: string) => {
        const model = catalog.resolve(name)!
        const job = mediaJob.parse(
          name === 'film'
            ? { work: 'video', content: [{ type: 'text', text: prompt }], duration: 5 }
            : { work: 'image', prompt, n: 2, size: '1024x1024' },
        )
        const price = findMediaPrice(model.entry, null, Date.now())!
        const routes = catalog.routes(model, protocol)
        return tasks.order(account, name, prompt, {
          model,
          job,
          price,
          hold: computeHold(price, job),
          routes,
        })
      }
      const submitted = (account: TestAccount, name: 'film' | 'picture', prompt: string) =>
        tasks.submit(order(account, name, prompt), { findAdapter: findMediaAdapter })
      const refusal = (account: TestAccount, prompt: string) =>
        submitted(account, 'film', prompt).catch((error: unknown) => error)
      const jobsOf = (prompt: string) => provider.jobs.filter((job) => job.prompt === prompt)
      const now = async ({ id }: Task) => (await database.tasks.read([id]))[0]!

      await t.test('a film is followed, stored, and charged by its reported length', async (t) => {
        const account = await tasks.newAccount()
        const { id } = await submitted(account, 'film', 'good film')
        const ended = await tasks.reached(id, 'succeeded', 'failed')
        const key = `videos/${id}.mp4`
        t.match(ended, {
          state: 'succeeded',
          result: { files: [{ role: 'video', key, upstream_url: null }] },
        })
        t.ok((await storage.read(key, 10_000)).equals(FILM_FILE))
        t.equal(printCredits(ended.cost!), String(2.5 * expected.seconds))
        t.match(await tasks.walletOf(account), { held: 0n, used: ended.cost! })
        t.equal(jobsOf('good film').length, 1)
      })

      if (expected.images > 0)
        await t.test('images are charged by their number', async (t) => {
          const account = await tasks.newAccount()
          const { id } = await submitted(account, 'picture', 'good pictures')
          const ended = await tasks.reached(id, 'succeeded', 'failed')
          t.match(ended, { state: 'succeeded', cost: ONE_CREDIT * 4n * BigInt(expected.images) })
          t.equal(ended.result?.files.filter(({ key }) => key?.startsWith('images/')).length, expected.images)
          t.equal(jobsOf('good pictures').length, 1)
        })

      await t.test('a lost answer makes no task, and is looked up where it can be', async (t) => {
        const account = await tasks.newAccount()
        t.match(await refusal(account, 'cut off'), { status: 502, code: 'upstream_unreachable' })
        t.match(await tasks.walletOf(account), UNTOUCHED)
        await pause(A_WHILE_MS)
        t.equal(jobsOf('cut off').length, 1, 'it is not sent again')
        const lost = async () =>
          (await database.lostSubmits.list({ isOpen: false, before: null, limit: 200 })).find(
            ({ accountId }) => accountId === account.account.id,
          )
        t.match(await lost(), { state: 'open', channelId: protocol })
        for (const minutes of [0, 1, 2, 5])
          await followLostSubmits({
            ...{ ...deps, database, log: silent },
            now: () => Date.now() + minutes * 60_000,
          })
        t.match(await lost(), expected.canFind ? { state: 'made', upstreamId: String } : { upstreamId: null })
        t.equal(jobsOf('cut off').length, 1)
        t.match(await tasks.walletOf(account), UNTOUCHED)
      })

      await t.test('too many requests: refused, and nothing is held', async (t) => {
        const account = await tasks.newAccount()
        t.match(await refusal(account, 'busy'), { status: 429 })
        t.equal(jobsOf('busy').length, 0)
        t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
      })

      await t.test('refused content is the customer’s to change', async (t) => {
        const account = await tasks.newAccount()
        if (expected.dialect.improper === null) {
          const { id } = await submitted(account, 'film', 'improper')
          t.match(await tasks.reached(id, 'failed', 'succeeded'), {
            state: 'failed',
            errorCode: 'content_policy',
          })
        } else t.match(await refusal(account, 'improper'), { status: 400 })
        t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
      })

      await t.test('a job that failed says why, and costs nothing', async (t) => {
        const account = await tasks.newAccount()
        const { id } = await submitted(account, 'film', 'broken')
        const failed = await tasks.reached(id, 'failed', 'succeeded')
        t.match(failed, { state: 'failed', errorCode: expected.broken, errorMessage: /\w/ })
        t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
      })

      if (expected.hasStates)
        await t.test('a state that nobody knows changes nothing', async (t) => {
          const account = await tasks.newAccount()
          const task = await submitted(account, 'film', 'strange')
          const isTold = () =>
            workers.some(({ unmapped }) => unmapped.some((line) => line.startsWith(task.id)))
          while (!isTold()) await pause(10)
          t.match((await now(task)).state, /queued|running/)
          t.equal(jobsOf('strange').length, 1)
        })

      if (expected.late !== null)
        await t.test('a job that came too late at its provider ends', async (t) => {
          const account = await tasks.newAccount()
          const { id } = await submitted(account, 'film', 'late')
          t.match(await tasks.reached(id, 'failed', 'expired', 'succeeded'), { state: expected.late })
          t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
        })

      if (expected.hasLinks !== false)
        await t.test('a link that opens no more is handed on, and what was made is charged', async (t) => {
          const account = await tasks.newAccount()
          const { id } = await submitted(account, 'film', 'gone')
          const ended = await tasks.reached(id, 'succeeded', 'failed')
          t.match(ended, { state: 'succeeded', result: { files: [{ key: null, upstream_url: /^http/ }] } })
          t.equal(jobsOf('gone').length, 1)
        })

      await t.test('a queued job is cancelled where the provider can', async (t) => {
        const account = await tasks.newAccount()
        const { id } = await submitted(account, 'film', 'slow')
        const task = await tasks.reached(id, 'queued', 'running')
        const cancelled = cancelFoundTask({ ...deps, database, messages, log: silent }, task)
        const outcome = await cancelled.catch((error: unknown) => error)
        t.match(outcome, expected.canCancel ? { state: 'cancelled' } : { code: 'task_not_cancellable' })
        t.equal(jobsOf('slow')[0]?.isCancelled, expected.canCancel)
        if (expected.canCancel) t.match(await tasks.walletOf(account), { held: 0n, used: 0n })
      })
    })
  }
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
