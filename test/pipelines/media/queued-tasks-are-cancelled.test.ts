/** A task that is still queued is cancelled and refunded in full; no other one is. */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { type CancelDeps, cancelTask } from '../../../pipelines/media/cancel-task.ts'
import { transitionedTask } from '../../../pipelines/tasks/engine.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { TaskEvent } from '../../../schemas/tasks/task.ts'
import { mediaAdapterOf } from '../../../src/channels/media/registry.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import type { Task, TaskChanges } from '../../../src/postgres/tasks/types.ts'
import { mediaCalls } from '../../../src/server/channels/media-calls.ts'
import { startSimulator } from '../../../src/simulator/server.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { openMigrated } from '../../src/postgres/support.ts'
import { newVideo } from '../../src/postgres/tasks/support.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { startEngines } from '../../support/engines.ts'

const HOLD = 5n * ONE_CREDIT
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
const channel = {
  protocol: 'task',
  base_url: `${simulator.url}/task`,
  api_key: 'studio-key-1',
  models: { film: 'sim-film' },
}
const catalog = createCatalog(
  configFile.parse({
    models: [{ id: 'film', endpoint_type: 'videos_generations', pricing: { unit: 'second', per_unit: '1' } }],
    channels: [{ ...channel, id: 'studio' }],
  }),
)
const silent = { info() {}, warn() {}, error() {} }
const deps: CancelDeps = {
  tasks: database,
  database,
  messages: { announce() {}, announceWallets() {} },
  calls,
  adapterOf: mediaAdapterOf,
  catalog: () => catalog,
  log: silent,
}
const studio = catalog.channels[0]!
const adapter = mediaAdapterOf('task')!

async function newAccount() {
  const { account } = await database.createAccount({ name: 'test', credit: 10n * ONE_CREDIT })
  const caller = { known: { account } } as unknown as Parameters<typeof cancelTask>[1]
  const wallet = async () => (await database.readWallets([account.id]))[0]!
  return { account, caller, wallet }
}
type TestAccount = Awaited<ReturnType<typeof newAccount>>

const move = (task: Task, event: TaskEvent, changes: TaskChanges = {}) =>
  transitionedTask({ ...deps, now: Date.now }, task, event, changes)

async function waiting({ account }: TestAccount): Promise<Task> {
  const task = newVideo(account.id, { hold: HOLD, model: 'film', channelIds: ['studio'] })
  const outcome = await database.createTask(task)
  if (outcome.outcome !== 'created') throw new Error(outcome.outcome)
  return outcome.task
}

/** One that the simulated provider has, and does as `directives` say. */
async function queued(account: TestAccount, directives: string): Promise<Task> {
  const task = await waiting(account)
  const submitting = await move(task, 'claimed', { channelId: 'studio', upstreamModel: 'sim-film' })
  const submit = {
    job: task.job,
    upstreamModel: `sim-film@${directives}`,
    reference: task.id,
    urlOf: () => '',
  }
  const answer = await calls.send(adapter.submit(studio, submit), {
    timeoutMs: 5000,
    maxAnswerBytes: 100_000,
  })
  const outcome = adapter.readSubmit(answer, submit)
  if (outcome.type !== 'accepted') throw new Error(JSON.stringify(outcome))
  return move(submitting, 'accepted', { upstreamId: outcome.upstreamId })
}

async function stateAtUpstream({ upstreamId, upstreamModel, job }: Task): Promise<string> {
  const poll = { upstreamId: upstreamId!, upstreamModel: upstreamModel!, job }
  const request = adapter.follow!.poll(studio, poll)
  return adapter.follow!.readPoll(
    await calls.send(request, { timeoutMs: 5000, maxAnswerBytes: 100_000 }),
    poll,
  ).type
}

const QUEUED = 'queue=60000,delay=60000'
const uncancellable = { code: 'task_not_cancellable', status: 409 }

t.test('a task that nobody has submitted yet', async (t) => {
  const account = await newAccount()
  const task = await waiting(account)
  t.match(await account.wallet(), { held: HOLD, balance: HOLD })
  t.match(await cancelTask(deps, account.caller, 'video', task.id), { state: 'cancelled', cost: 0n })
  t.match(await account.wallet(), { held: 0n, balance: 2n * HOLD, used: 0n })
  await t.rejects(cancelTask(deps, account.caller, 'video', task.id), uncancellable, 'once')
})

t.test('a task that is queued at its upstream is cancelled there first', async (t) => {
  const account = await newAccount()
  const task = await queued(account, QUEUED)
  t.match(await cancelTask(deps, account.caller, 'video', task.id), { state: 'cancelled' })
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
    const after = await cancelTask({ ...deps, calls: racing }, account.caller, 'video', task.id)
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
    await t.rejects(cancelTask({ ...deps, ...changed }, account.caller, 'video', task.id), refusal)
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
  await t.rejects(cancelTask(deps, stranger.caller, 'video', task.id), { code: 'not_found', status: 404 })
  await t.rejects(
    cancelTask(deps, account.caller, 'image', task.id),
    { code: 'not_found' },
    'of another kind',
  )
})
