import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { type CancelledTasks, cancelFoundTask, cancelTask } from '../../../pipelines/media/cancel-task.ts'
import { endTask } from '../../../pipelines/tasks/end/end-task.ts'
import { discardAnswer, type TaskEngine, transition } from '../../../pipelines/tasks/engine.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { ResponseCall } from '../../../schemas/tasks/response.ts'
import type { TaskEvent } from '../../../schemas/tasks/task.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { toKeptPrice } from '../../../src/core/pricing/kept-price.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import type { Task, TaskChanges } from '../../../src/postgres/tasks/types.ts'
import { openMediaCalls } from '../../../src/server/channels/media-calls.ts'
import { findTaskAdapter } from '../../../src/server/tasks/adapters.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { simulatorFor } from '../../simulator/support.ts'
import { startDatabase } from '../../src/postgres/support.ts'
import { created, newVideo } from '../../src/postgres/tasks/support.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'

t.test('tasks are cancelled', async (t) => {
  // A task that is still queued is cancelled and refunded in full; no other one is.
  const HOLD = 5n * ONE_CREDIT
  const { database } = await startDatabase(t)
  const simulator = await simulatorFor(t)
  const client = new UpstreamClient()
  t.teardown(() => client.close())
  const calls = openMediaCalls(
    client,
    { open: () => Promise.reject(new Error('nothing is sent along')) },
    authorizerOf,
  )
  const channel = { api_key: 'studio-key-1', models: { film: 'sim-film' } }
  const catalog = createCatalog(
    configFile.parse({
      models: [
        { id: 'film', endpoint_type: 'videos_generations', pricing: { unit: 'second', per_unit: '1' } },
        { id: 'kept', pricing: { unit: '1M_tokens', input: '1000', output: '100000' } },
      ],
      channels: [
        { ...channel, id: 'studio', protocol: 'task', base_url: `${simulator.url}/task` },
        { ...channel, id: 'ark', protocol: 'ark-video', base_url: `${simulator.url}/api/v3` },
        {
          ...channel,
          id: 'keeper',
          protocol: 'responses',
          base_url: `${simulator.url}/v1`,
          models: { kept: 'sim' },
          cost: { kept: { unit: '1M_tokens', input: '500', output: '50000' } },
        },
        { ...channel, id: 'away', protocol: 'task', base_url: 'http://127.0.0.1:1/task' },
      ],
    }),
  )
  const warnings: object[] = []
  let discarded = 0
  const deps = {
    tasks: database.tasks,
    database,
    messages: { announce() {}, announceWallets() {} },
    calls,
    findAdapter: findTaskAdapter,
    catalog: () => catalog,
    log: { info() {}, warn: (fields: object) => void warnings.push(fields), error() {} },
    now: Date.now,
    metrics: { countSubmit() {}, countPoll() {}, countExcess() {}, countDiscard: () => void discarded++ },
  } satisfies CancelledTasks & Partial<TaskEngine>
  const adapter = findTaskAdapter('task')!
  const channelOf = (id: string) => catalog.channels.find((entry) => entry.id === id)!
  const studio = channelOf('studio')

  async function newAccount() {
    const { account } = await database.accounts.create({ name: 'test', credit: 10n * ONE_CREDIT })
    const caller = { known: { account } } as unknown as Parameters<typeof cancelTask>[1]
    const wallet = async () => (await database.wallets.read([account.id]))[0]!
    return { account, caller, wallet }
  }
  type TestAccount = Awaited<ReturnType<typeof newAccount>>

  const move = (task: Task, event: TaskEvent, changes: TaskChanges = {}) =>
    transition(deps, task, event, changes)

  const waiting = ({ account }: TestAccount, channelId = 'studio') =>
    created(database, newVideo(account.id, { hold: HOLD, model: 'film', channelIds: [channelId] }))

  const claimed = async (account: TestAccount, channelId = 'studio'): Promise<Task> =>
    move(await waiting(account, channelId), 'claimed', { channelId, upstreamModel: 'sim-film' })

  const ask = (request: Parameters<typeof calls.send>[0]) =>
    calls.send(request, { timeoutMs: 5000, maxAnswerBytes: 100_000 })

  /** The simulated provider takes it, and does as `directives` say. */
  async function submitted(task: Task, directives: string) {
    const submit = {
      job: task.job,
      upstreamModel: `sim-film@${directives}`,
      reference: task.id,
      resolveUrl: () => '',
    }
    return adapter.readSubmit(await ask(adapter.submit(studio, submit)), submit)
  }

  /** One that the simulated provider has, and does as `directives` say. */
  async function queued(account: TestAccount, directives: string): Promise<Task> {
    const task = await claimed(account)
    const outcome = await submitted(task, directives)
    if (outcome.type !== 'accepted') throw new Error(JSON.stringify(outcome))
    return move(task, 'accepted', { upstreamId: outcome.upstreamId })
  }

  const asked = ({ upstreamId, upstreamModel, job }: Task) => ({
    upstreamId: upstreamId!,
    upstreamModel: upstreamModel!,
    job,
  })

  async function stateAtUpstream(task: Task): Promise<string> {
    const poll = asked(task)
    return adapter.follow!.readPoll(await ask(adapter.follow!.poll(studio, poll)), poll).type
  }

  const cancel = (account: TestAccount, task: Task, more: Partial<CancelledTasks> = {}) =>
    cancelTask({ ...deps, ...more }, account.caller, 'video', task.id)

  const QUEUED = 'queue=60000,delay=60000'
  const uncancellable = { code: 'task_not_cancellable', status: 409 }

  /** A response that the simulated provider makes in the background, of which we have not heard since the submit. */
  async function responding({ account }: TestAccount, directives: string): Promise<Task> {
    const { entry } = catalog.resolve(CALL.model)!
    const input = `hi [simulate: tokens=30,delay=600000,${directives}]`
    const text = JSON.stringify({ model: 'kept', background: true, input })
    const body = { from: 'store' as const, key: 'a', media_type: '', bytes: text.length, name: '' }
    const call = { ...CALL, promptBytes: text.length }
    const task = await created(
      database,
      newVideo(account.id, {
        ...{ id: newId('resp'), kind: 'response', hold: HOLD, model: 'kept', channelIds: ['keeper'] },
        job: { work: 'response', body, call, conversation: null, kept_days: 30 },
        price: toKeptPrice(entry, entry.pricing!),
      }),
    )
    const submit = {
      ...{ job: task.job, upstreamModel: 'sim', reference: task.id },
      resolveUrl: () => `data:;base64,${Buffer.from(text).toString('base64')}`,
    }
    const { submit: request, readSubmit } = findTaskAdapter('responses')!
    const outcome = readSubmit(await ask(request(channelOf('keeper'), submit)), submit)
    if (outcome.type !== 'accepted') throw new Error(JSON.stringify(outcome))
    const claimed = await move(task, 'claimed', { channelId: 'keeper', upstreamModel: 'sim' })
    return move(claimed, 'accepted', { upstreamId: outcome.upstreamId })
  }

  const CALL: ResponseCall = {
    ...{
      model: 'kept',
      outputLimit: 64,
      choices: 1,
      promptBytes: 0,
      laterBytes: 0,
      links: { image: 0, file: 0, audio: 0 },
    },
    ...{ builtInTools: [], toolCallLimit: null, settings: '' },
  }

  t.test('a task that nobody has submitted yet', async (t) => {
    const account = await newAccount()
    const task = await waiting(account)
    t.match(await account.wallet(), { held: HOLD, balance: HOLD })
    t.match(await cancel(account, task), { state: 'cancelled', cost: 0n })
    t.match(await account.wallet(), { held: 0n, balance: 2n * HOLD, used: 0n })
    await t.rejects(cancel(account, task), uncancellable, 'once')
  })

  t.test('a task that is queued at its upstream is cancelled there first', async (t) => {
    const account = await newAccount()
    const task = await queued(account, QUEUED)
    t.match(await cancel(account, task), { state: 'cancelled' })
    t.equal(await stateAtUpstream(task), 'cancelled')
    t.match(await account.wallet(), { held: 0n, balance: 2n * HOLD })
    const { call } = await database.calls.find(task.id)
    t.match(call, { status: 'error', error_code: 'task_cancelled', cost: '0' })
  })

  t.test('a concurrent poll changes nothing about that', async (t) => {
    for (const [seen, isFirst] of [
      ['started', false],
      ['cancelled', true],
    ] as const) {
      const account = await newAccount()
      const task = await queued(account, QUEUED)
      // The upstream has called it off, and before that is written another process has moved the task.
      const racing: CancelledTasks['calls'] = {
        ...calls,
        async send(request, options) {
          const answer = await calls.send(request, options)
          if (request.url.endsWith('/cancel')) await move(task, seen)
          return answer
        },
      }
      const after = await cancel(account, task, { calls: racing })
      t.match(after, { state: 'cancelled', version: isFirst ? task.version + 1 : task.version + 2 }, seen)
      t.match(await account.wallet(), { held: 0n, balance: 2n * HOLD })
    }
  })

  t.test('what is not queued, or cannot be cancelled, stays as it is', async (t) => {
    const account = await newAccount()
    const stays = async (
      task: Task,
      refusal: { code: string; status?: number },
      changed: Partial<CancelledTasks> = {},
    ) => {
      await t.rejects(cancel(account, task, changed), refusal)
      const [after] = await database.tasks.read([task.id])
      t.same(after, task)
      await move(task, 'deadline')
    }
    await stays(await queued(account, 'queue=0,delay=60000'), uncancellable)
    const over = await queued(account, 'queue=0,delay=40')
    while ((await stateAtUpstream(over)) !== 'produced') await pause(20)
    await stays(over, uncancellable)
    await stays(await queued(account, `${QUEUED},poll_fault=status:503`), {
      code: 'upstream_error',
      status: 502,
    })
    await stays(
      await queued(account, QUEUED),
      { code: 'upstream_unreachable' },
      {
        catalog: () => ({ ...catalog, channels: [{ ...studio, base_url: 'http://127.0.0.1:1' }] }),
      },
    )
    await stays(await queued(account, QUEUED), uncancellable, {
      catalog: () => ({ ...catalog, channels: [] }),
    })
    const submitting = await move(await waiting(account), 'claimed', { channelId: 'studio' })
    await stays(submitting, uncancellable)
    const stranger = await newAccount()
    const task = await queued(account, QUEUED)
    await t.rejects(cancel(stranger, task), { code: 'not_found', status: 404 })
    await t.rejects(
      cancelTask(deps, account.caller, 'image', task.id),
      { code: 'not_found' },
      'of another kind',
    )
  })

  t.test('a response costs what its upstream has used until it called it off', async (t) => {
    const account = await newAccount()
    const used = async (task: Task) => {
      const { call } = await database.calls.find(task.id)
      t.match(call, {
        status: 'error',
        error_code: 'task_cancelled',
        output_tokens: 15,
        upstream_cost: String,
      })
      t.ok(BigInt(task.cost!) > 0n)
      t.match(task, { state: 'cancelled', upstreamState: 'cancelled' })
    }
    const begun = await responding(account, 'queue=0')
    const cancelled = await cancelFoundTask(deps, begun)
    await used(cancelled)
    const before = await responding(account, 'queue=0')
    await ask(findTaskAdapter('responses')!.follow!.cancel!(channelOf('keeper'), asked(before)))
    const also = await cancelFoundTask(deps, before)
    await used(also)
    const unused = await cancelFoundTask(deps, await responding(account, 'queue=600000'))
    t.match(unused, { state: 'cancelled', cost: 0n })
    const cost = cancelled.cost! + also.cost!
    t.match(await account.wallet(), { held: 0n, balance: 2n * HOLD - cost, used: cost })
  })

  t.test('a response whose use the upstream does not tell stays open until it does', async (t) => {
    const account = await newAccount()
    const task = await responding(account, 'queue=0')
    let polls = 0
    const silentLater: CancelledTasks['calls'] = {
      ...calls,
      async send(request, options) {
        const answer = await calls.send(request, options)
        return request.method === 'GET' && polls++ > 0 ? { ...answer, status: 503 } : answer
      },
    }
    await t.rejects(cancelFoundTask({ ...deps, calls: silentLater }, task), { code: 'upstream_error' })
    t.match((await database.tasks.read([task.id]))[0], { state: 'queued' })
    t.match(await cancelFoundTask(deps, task), {
      state: 'cancelled',
      result: { response: { usage: Object } },
    })
  })

  t.test(
    'what the upstream says of a task that has ended is on a record, and changes nothing else',
    async (t) => {
      const account = await newAccount()
      const task = await move(await claimed(account, 'ark'), 'lost', { errorCode: 'upstream_unreachable' })
      t.match(task, { state: 'refused' })
      const wallet = await account.wallet()
      t.match(wallet, { held: 0n, balance: 2n * HOLD, used: 0n })
      warnings.length = 0
      const after = await discardAnswer(deps, task, { upstreamId: 'cgt-1', upstreamState: 'queued' })
      t.match(after, {
        state: 'refused',
        upstreamId: 'cgt-1',
        upstreamState: 'queued',
        endedAt: task.endedAt,
      })
      t.match(warnings, [{ task: task.id, upstream_task: 'cgt-1' }])
      t.equal(discarded, 1)
      t.same(await account.wallet(), wallet)
      const [lost] = await database.lostSubmits.list({ isOpen: true, before: null, limit: 1 })
      t.match(lost, { taskId: task.id, state: 'found', upstreamId: 'cgt-1', channelId: 'ark' })
    },
  )

  t.test("a submit under way is nobody else's to end", async (t) => {
    const account = await newAccount()
    const task = await claimed(account)
    await t.rejects(cancel(account, task), uncancellable)
    const ending = endTask({ ...deps, cancelUpstream: async () => {} }, task.id, {
      event: 'cancelled',
      reason: null,
    })
    await t.rejects(ending, { message: /is being submitted/ })
    t.match(await account.wallet(), { held: HOLD })
  })
})
