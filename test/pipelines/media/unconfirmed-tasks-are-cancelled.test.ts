/** The answer to a submit was lost: its customer learns it, may call it off, and waits for no day. */
import t from 'tap'
import { type CancelDeps, cancelTask } from '../../../pipelines/media/cancel-task.ts'
import { printVideo } from '../../../pipelines/media/videos/task.ts'
import { discard, type EngineDeps, transitionedTask } from '../../../pipelines/tasks/engine.ts'
import { endsAt, lookupEndsAt, MAX_LOOKUP_MS } from '../../../pipelines/tasks/poll/unconfirmed.ts'
import { drive } from '../../../pipelines/tasks/task.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { TASK_RULES, type TaskEvent } from '../../../schemas/tasks/task.ts'
import { mediaAdapterOf } from '../../../src/channels/media/registry.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import type { Task, TaskChanges } from '../../../src/postgres/tasks/types.ts'
import { mediaCalls } from '../../../src/server/channels/media-calls.ts'
import { startSimulator } from '../../../src/simulator/server.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { openMigrated } from '../../src/postgres/support.ts'
import { newVideo } from '../../src/postgres/tasks/support.ts'
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
    models: [{ id: 'film', endpoint_type: 'videos_generations', pricing: { unit: 'second', per_unit: '1' } }],
    channels: [
      { ...channel, id: 'studio', protocol: 'task', base_url: `${simulator.url}/task` },
      { ...channel, id: 'ark', protocol: 'ark-video', base_url: `${simulator.url}/api/v3` },
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
  adapterOf: mediaAdapterOf,
  catalog: () => catalog,
  log: { info() {}, warn: (fields: object) => void warnings.push(fields), error() {} },
  now: Date.now,
  metrics: { submitted() {}, polled() {}, exceededOrder() {}, discarded: () => void discarded++ },
} satisfies CancelDeps & Partial<EngineDeps>
const adapter = mediaAdapterOf('task')!

async function newAccount() {
  const { account } = await database.createAccount({ name: 'test', credit: 10n * ONE_CREDIT })
  const caller = { known: { account } } as unknown as Parameters<typeof cancelTask>[1]
  const wallet = async () => (await database.readWallets([account.id]))[0]!
  return { account, caller, wallet }
}
type TestAccount = Awaited<ReturnType<typeof newAccount>>

const move = (task: Task, event: TaskEvent, changes: TaskChanges = {}) =>
  transitionedTask(deps, task, event, changes)

async function unconfirmed({ account }: TestAccount, channelId: string): Promise<Task> {
  const task = newVideo(account.id, { hold: HOLD, model: 'film', channelIds: [channelId] })
  const outcome = await database.createTask(task)
  if (outcome.outcome !== 'created') throw new Error(outcome.outcome)
  const submitting = await move(outcome.task, 'claimed', { channelId, upstreamModel: 'sim-film' })
  return move(submitting, 'lost')
}

/** The simulated provider has it, and its answer never arrived. */
async function taken(task: Task, directives: string): Promise<void> {
  const studio = catalog.channels.find(({ id }) => id === 'studio')!
  const upstreamModel = `sim-film@${directives}`
  const submit = { job: task.job, upstreamModel, reference: task.id, urlOf: () => '' }
  const limits = { timeoutMs: 5000, maxAnswerBytes: 100_000 }
  await calls.send(adapter.submit(studio, submit), limits)
}

const cancel = (account: TestAccount, task: Task, more: Partial<CancelDeps> = {}) =>
  cancelTask({ ...deps, ...more }, account.caller, 'video', task.id)

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
  const queued = await unconfirmed(account, 'studio')
  await taken(queued, 'queue=60000,delay=60000')
  const after = await cancel(account, queued)
  t.match(after, { state: 'cancelled', upstreamId: String })
  t.match(await account.wallet(), { held: 0n, balance: 2n * HOLD })
  const running = await unconfirmed(account, 'studio')
  await taken(running, 'queue=0,delay=60000')
  await t.rejects(cancel(account, running), { code: 'task_not_cancellable', status: 409 })
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

t.test(
  'nobody waits for an answer that was lost longer than the kind may take, a video an hour',
  async (t) => {
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
  },
)

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
