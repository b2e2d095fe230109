/**
 * A task that is still queued is cancelled and refunded in full; no other one is. Where the answer to a submit was lost,
 * its customer learns it, may call it off, and waits for no day.
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { type CancelDeps, cancelFoundTask, cancelTask } from '../../../pipelines/media/cancel-task.ts'
import { printVideo } from '../../../pipelines/media/videos/task.ts'
import { discard, type EngineDeps, transitionedTask } from '../../../pipelines/tasks/engine.ts'
import { endsAt, lookupEndsAt, MAX_LOOKUP_MS } from '../../../pipelines/tasks/poll/unconfirmed.ts'
import { drive } from '../../../pipelines/tasks/task.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { ResponseCall } from '../../../schemas/tasks/response.ts'
import { TASK_RULES, type TaskEvent } from '../../../schemas/tasks/task.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { keptPriceOf } from '../../../src/core/pricing/kept-price.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import type { Task, TaskChanges } from '../../../src/postgres/tasks/types.ts'
import { mediaCalls } from '../../../src/server/channels/media-calls.ts'
import { taskAdapterOf } from '../../../src/server/tasks/adapters.ts'
import { startSimulator } from '../../../src/simulator/server.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { openMigrated } from '../../src/postgres/support.ts'
import { created, newVideo } from '../../src/postgres/tasks/support.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { startEngines } from '../../support/engines.ts'
import { taskOf } from './support.ts'

const HOLD = 5n * ONE_CREDIT
const HOUR_MS = 3_600_000
const engines = await startEngines(t, { only: ['postgres'] })
const { database } = await openMigrated(t, engines.databaseUrl)
const simulator = await startSimulator({ host: '127.0.0.1', port: 0 })
t.teardown(() => simulator.close())
const client = new UpstreamClient()
t.teardown(() => client.close())
const calls = mediaCalls(
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
  tasks: database,
  database,
  messages: { announce() {}, announceWallets() {} },
  calls,
  adapterOf: taskAdapterOf,
  catalog: () => catalog,
  log: { info() {}, warn: (fields: object) => void warnings.push(fields), error() {} },
  now: Date.now,
  metrics: { submitted() {}, polled() {}, exceededOrder() {}, discarded: () => void discarded++ },
} satisfies CancelDeps & Partial<EngineDeps>
const adapter = taskAdapterOf('task')!
const channelOf = (id: string) => catalog.channels.find((entry) => entry.id === id)!
const studio = channelOf('studio')

async function newAccount() {
  const { account } = await database.createAccount({ name: 'test', credit: 10n * ONE_CREDIT })
  const caller = { known: { account } } as unknown as Parameters<typeof cancelTask>[1]
  const wallet = async () => (await database.readWallets([account.id]))[0]!
  return { account, caller, wallet }
}
type TestAccount = Awaited<ReturnType<typeof newAccount>>

const move = (task: Task, event: TaskEvent, changes: TaskChanges = {}) =>
  transitionedTask(deps, task, event, changes)

const waiting = ({ account }: TestAccount, channelId = 'studio') =>
  created(database, newVideo(account.id, { hold: HOLD, model: 'film', channelIds: [channelId] }))

const claimed = async (account: TestAccount, channelId = 'studio'): Promise<Task> =>
  move(await waiting(account, channelId), 'claimed', { channelId, upstreamModel: 'sim-film' })

const unconfirmed = async (account: TestAccount, channelId: string): Promise<Task> =>
  move(await claimed(account, channelId), 'lost')

const ask = (request: Parameters<typeof calls.send>[0]) =>
  calls.send(request, { timeoutMs: 5000, maxAnswerBytes: 100_000 })

/** The simulated provider takes it, and does as `directives` say. */
async function submitted(task: Task, directives: string) {
  const submit = {
    job: task.job,
    upstreamModel: `sim-film@${directives}`,
    reference: task.id,
    urlOf: () => '',
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

const cancel = (account: TestAccount, task: Task, more: Partial<CancelDeps> = {}) =>
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
      price: keptPriceOf(entry, entry.pricing!),
    }),
  )
  const submit = {
    ...{ job: task.job, upstreamModel: 'sim', reference: task.id },
    urlOf: () => `data:;base64,${Buffer.from(text).toString('base64')}`,
  }
  const { submit: request, readSubmit } = taskAdapterOf('responses')!
  const outcome = readSubmit(await ask(request(channelOf('keeper'), submit)), submit)
  if (outcome.type !== 'accepted') throw new Error(JSON.stringify(outcome))
  const claimed = await move(task, 'claimed', { channelId: 'keeper', upstreamModel: 'sim' })
  return move(claimed, 'accepted', { upstreamId: outcome.upstreamId })
}

const CALL: ResponseCall = {
  ...{ model: 'kept', outputLimit: 64, choices: 1, promptBytes: 0, links: { image: 0, file: 0, audio: 0 } },
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
  const { call } = await database.findCall(task.id)
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
    const racing: CancelDeps['calls'] = {
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
    changed: Partial<CancelDeps> = {},
  ) => {
    await t.rejects(cancel(account, task, changed), refusal)
    const [after] = await database.readTasks([task.id])
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
  await stays(await queued(account, QUEUED), uncancellable, { catalog: () => ({ ...catalog, channels: [] }) })
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
    const { call } = await database.findCall(task.id)
    t.match(call, { status: 'error', error_code: 'task_cancelled', output_tokens: 15, upstream_cost: String })
    t.ok(BigInt(task.cost!) > 0n)
    t.match(task, { state: 'cancelled', upstreamState: 'cancelled' })
  }
  const begun = await responding(account, 'queue=0')
  const cancelled = await cancelFoundTask(deps, begun)
  await used(cancelled)
  const before = await responding(account, 'queue=0')
  await ask(taskAdapterOf('responses')!.follow!.cancel!(channelOf('keeper'), asked(before)))
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
  const silentLater: CancelDeps['calls'] = {
    ...calls,
    async send(request, options) {
      const answer = await calls.send(request, options)
      return request.method === 'GET' && polls++ > 0 ? { ...answer, status: 503 } : answer
    },
  }
  await t.rejects(cancelFoundTask({ ...deps, calls: silentLater }, task), { code: 'upstream_error' })
  t.match((await database.readTasks([task.id]))[0], { state: 'queued' })
  t.match(await cancelFoundTask(deps, task), { state: 'cancelled', result: { response: { usage: Object } } })
})

t.test('where the upstream cannot be asked, the task is cancelled and its money is free', async (t) => {
  const gone = { catalog: () => ({ ...catalog, channels: [] }) }
  for (const [channelId, more] of [
    ['ark', {}],
    ['studio', gone],
    ['studio', {}],
  ] as const) {
    const account = await newAccount()
    const task = await unconfirmed(account, channelId)
    t.match(await account.wallet(), { held: HOLD, balance: HOLD })
    t.match(await cancel(account, task, more), { state: 'cancelled', cost: 0n }, channelId)
    t.match(await account.wallet(), { held: 0n, balance: 2n * HOLD, used: 0n })
    t.match((await database.findCall(task.id)).call, { error_code: 'task_cancelled', cost: '0' })
  }
})

t.test('while the upstream may still say, it is asked; later it is cancelled all the same', async (t) => {
  const account = await newAccount()
  const task = await unconfirmed(account, 'away')
  const until = new Date(lookupEndsAt(task)).toISOString()
  const refused = { code: 'task_not_cancellable', status: 409, message: new RegExp(until) }
  await t.rejects(cancel(account, task), refused)
  t.match(await account.wallet(), { held: HOLD })
  const now = () => task.submittedAt + MAX_LOOKUP_MS
  t.match(await cancel(account, task, { now }), { state: 'cancelled' })
  t.match(await account.wallet(), { held: 0n, balance: 2n * HOLD })
})

t.test('an upstream that has it is asked to call it off; one that works on it does not', async (t) => {
  const account = await newAccount()
  const lost = await unconfirmed(account, 'studio')
  await submitted(lost, QUEUED)
  const after = await cancel(account, lost)
  t.match(after, { state: 'cancelled', upstreamId: String })
  t.match(await account.wallet(), { held: 0n, balance: 2n * HOLD })
  const running = await unconfirmed(account, 'studio')
  await submitted(running, 'queue=0,delay=60000')
  await t.rejects(cancel(account, running), uncancellable)
  t.match((await database.readTasks([running.id]))[0], { state: 'running', upstreamId: String })
})

t.test('what the upstream says later is recorded and changes nothing', async (t) => {
  const account = await newAccount()
  const task = await cancel(account, await unconfirmed(account, 'ark'))
  const wallet = await account.wallet()
  warnings.length = 0
  const after = await discard(deps, task, { upstreamId: 'cgt-1', upstreamState: 'queued' })
  t.match(after, { state: 'cancelled', upstreamId: 'cgt-1', upstreamState: 'queued', endedAt: task.endedAt })
  t.match(warnings, [{ task: task.id, upstream_task: 'cgt-1' }])
  t.equal(discarded, 1)
  t.same(await account.wallet(), wallet)
  t.match((await database.findCall(task.id)).call, { error_code: 'task_cancelled', cost: '0' })
})

t.test('nobody waits for a lost answer longer than the kind may take, a video an hour', async (t) => {
  for (const { kind, deadlineMs, unconfirmedMs } of Object.values(TASK_RULES)) {
    t.ok(unconfirmedMs <= HOUR_MS && unconfirmedMs <= deadlineMs, kind)
    const task = taskOf({ kind, submittedAt: 0, deadlineAt: deadlineMs })
    t.equal(endsAt({ ...task, state: 'unconfirmed' }), unconfirmedMs)
    t.equal(endsAt({ ...task, state: 'queued' }), deadlineMs)
  }
  const account = await newAccount()
  const task = await unconfirmed(account, 'ark')
  const engine = (now: number): EngineDeps =>
    ({ ...deps, health: new ChannelHealth(), now: () => now }) as unknown as EngineDeps
  t.match(await drive(engine(task.submittedAt + HOUR_MS - 5000), task, 0), { delayMs: 5000 })
  t.equal(await drive(engine(task.submittedAt + HOUR_MS), task, 0), null)
  t.match((await database.readTasks([task.id]))[0], { state: 'expired', cost: 0n })
  t.match(await account.wallet(), { held: 0n, balance: 2n * HOLD })
})

t.test('its customer reads that nobody has confirmed it, and when the hold ends', async (t) => {
  const links = { link: async () => '' }
  const task = taskOf({ state: 'unconfirmed', hold: HOLD, submittedAt: 0, deadlineAt: 24 * HOUR_MS })
  t.match(await printVideo(links, task, 0), {
    status: 'queued',
    message: /has not confirmed.* 5 credits .* released at 1970-01-01T01:00:00\.000Z at the latest/,
  })
  for (const state of ['submitting', 'queued', 'running', 'cancelled'] as const)
    t.notOk('message' in (await printVideo(links, taskOf({ state }), 0)), state)
})
