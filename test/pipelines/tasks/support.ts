/** The task engine on real PostgreSQL and NATS, before an upstream that a test scripts. */

import { setTimeout as pause } from 'node:timers/promises'
import { firstValueFrom } from 'rxjs'
import type { Test } from 'tap'
import { awaitTask, createTask, type TaskOrders } from '../../../pipelines/tasks/order/create-task.ts'
import type { TaskOrder } from '../../../pipelines/tasks/order/order.ts'
import { watchTasks } from '../../../pipelines/tasks/order/watch-tasks.ts'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import { TaskSweep } from '../../../pipelines/tasks/worker/sweep.ts'
import { TaskWork, type WorkerEngine } from '../../../pipelines/tasks/worker/work.ts'
import type { Account, WalletTotals } from '../../../schemas/accounts/account.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { MediaAdapter } from '../../../src/channels/media/adapter.ts'
import { hashRequest } from '../../../src/core/json/canonical.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { fileLinks } from '../../../src/core/media/file-link.ts'
import { computeHold, findMediaPrice } from '../../../src/core/media/pricing.ts'
import { type Catalog, createCatalog } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { capTotals, WalletView } from '../../../src/credentials/wallet.ts'
import { NO_PARAMS } from '../../../src/http/router.ts'
import { type Delivery, type Nats, openNats } from '../../../src/nats/nats.ts'
import type { Sql } from '../../../src/postgres/connection.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { isTransient } from '../../../src/postgres/errors.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { openMediaCalls } from '../../../src/server/channels/media-calls.ts'
import { openTaskStorage } from '../../../src/server/tasks/storage.ts'
import { FolderStore } from '../../../src/storage/folder-store.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { startDatabase } from '../../src/postgres/support.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { startEngines, type TestEngines } from '../../support/engines.ts'
import { filmAdapter, pictureAdapter, startUpstream, type TestUpstream } from './upstream.ts'

const HURRY = 10

export const silent = { info() {}, warn() {}, error() {} }

const ADAPTERS: Readonly<Record<string, MediaAdapter>> = {
  task: filmAdapter(true),
  'ark-video': filmAdapter(false),
  'openai-images': pictureAdapter,
}
export const findAdapter = (protocol: string): MediaAdapter | null => ADAPTERS[protocol] ?? null

/** Models of the same names as their channels: `film` can be looked up, `reel` cannot, `picture` answers whole. */
export function catalogFor(url: string, without: readonly string[] = []): Catalog {
  const channel = (id: string, protocol: string, models: Record<string, string>, priority = 0) => ({
    id,
    protocol,
    base_url: `${url}/${id}`,
    api_key: 'sk-test-upstream-key-1',
    models,
    priority,
  })
  const perSecond = { unit: 'second', per_unit: '2.5' }
  const models = [
    { id: 'film', pricing: perSecond },
    { id: 'reel', pricing: perSecond },
    { id: 'picture', pricing: { unit: 'image', per_unit: '4' } },
  ]
  const channels = [
    channel('first', 'task', { film: 'film-v1' }),
    channel('second', 'task', { film: 'film-v2' }, 1),
    channel('reels', 'ark-video', { reel: 'reel-v1' }),
    channel('pictures', 'openai-images', { picture: 'picture-v1' }),
  ].filter(({ id }) => !without.includes(id))
  return createCatalog(configFile.parse({ models, channels }))
}

/** `hurry`: so many times sooner than they should do messages come back; 10 where it is left out. */
export type WorkerChanges = Partial<WorkerEngine> & { readonly hurry?: number }

export interface TestTasks {
  /** NATS. */
  readonly engines: TestEngines
  readonly database: Database
  readonly sql: Sql
  readonly upstream: TestUpstream
  readonly storage: WorkerEngine['storage']
  /** A process that works on tasks until it or the test ends. */
  worker(t: Test, more?: WorkerChanges): TestWorker
  order(
    account: TestAccount,
    model: string,
    prompt: string,
    more?: Partial<TaskOrder> & { key?: string },
  ): TaskOrder
  submit(order: TaskOrder, changes?: Partial<TaskOrders>): Promise<Task>
  /** With a cap: its key is an employee's. */
  newAccount(credits?: bigint, spendCap?: bigint): Promise<TestAccount>
  walletOf(account: TestAccount): Promise<WalletTotals>
  /** The task once it is there. */
  reached(id: string, ...states: Task['state'][]): Promise<Task>
}

/** The wallet of a new account that has paid nothing, and of which nothing is held. */
export const UNTOUCHED = { balance: 1000n * ONE_CREDIT, held: 0n, used: 0n }

export interface TestAccount {
  readonly account: Account
  readonly keyId: string
  readonly view: WalletView
  /** What the key's spend cap leaves; null without one. */
  readonly cap: WalletView | null
}

export interface TestWorker {
  readonly work: TaskWork
  readonly sweep: TaskSweep
  /** Sweeps, and waits for the work on what that found. */
  swept(): Promise<void>
  /** What was logged as an error. */
  readonly unmapped: string[]
  /** As a process that is killed leaves it: nothing is handed back. */
  kill(): void
}

export async function startTasks(t: Test): Promise<TestTasks> {
  const engines = await startEngines(t, { only: ['nats'] })
  const { database, sql } = await startDatabase(t)
  const upstream = await startUpstream(t)
  const links = fileLinks('http://files.test', Buffer.alloc(32, 5))
  const storage = openTaskStorage({ store: await FolderStore.open(`${engines.dataDir}/files`, links) })
  const client = new UpstreamClient()
  t.teardown(() => client.close())
  const nats = natsOf(t, engines)
  const messages = taskMessages(nats, silent)
  const watch = watchTasks({ database, messages, log: silent })
  t.teardown(() => watch.close())
  const submitDeps = { database, messages, watch, findAdapter, isTransient, onWallet: () => {}, log: silent }

  const worker: TestTasks['worker'] = (t, { hurry = HURRY, ...more } = {}) => {
    const own = natsOf(t, engines)
    const unmapped: string[] = []
    let isKilled = false
    const ownMessages = taskMessages(own, silent)
    const deps: WorkerEngine = {
      database,
      messages: ownMessages,
      storage,
      calls: openMediaCalls(client, storage, authorizerOf),
      findAdapter,
      catalog: () => catalogFor(upstream.url),
      health: new ChannelHealth(),
      metrics: { countSubmit() {}, countPoll() {}, countExcess() {}, countDiscard() {} },
      onUnmappedState: ({ id }, state) => void unmapped.push(`${id} ${state}`),
      onLateness: () => {},
      log: silent,
      now: Date.now,
      // A process that is gone tries nothing again.
      pause: (ms) => (isKilled ? new Promise(() => {}) : pause(Math.min(ms, 20))),
      random: () => 0,
      ...more,
    }
    const work = new TaskWork(deps)
    const driven = new Set<Promise<unknown>>()
    const sweep = new TaskSweep({
      database,
      messages: ownMessages,
      storage,
      work: {
        touch: () => work.touch(),
        once(task) {
          const next = work.once(task)
          driven.add(next)
          return next.finally(() => driven.delete(next))
        },
      },
      isOnline: () => !isKilled && own.health().isConnected,
      log: silent,
      now: deps.now,
    })
    const hurried = (delivery: Delivery): Delivery => ({
      ...delivery,
      release: (delayMs = 0) => delivery.release(delayMs / hurry),
    })
    const stop = own.consumeTasks((delivery) => work.receive(hurried(delivery)))
    const kill = () => {
      isKilled = true
      stop()
      void own.close()
    }
    t.teardown(kill)
    const swept = async () => {
      await sweep.tasks()
      while (driven.size > 0) await pause(5)
    }
    return { work, sweep, swept, unmapped, kill }
  }
  return {
    engines,
    database,
    sql,
    upstream,
    storage,
    worker,
    submit: async (order, changes) => {
      const deps = { ...submitDeps, ...changes }
      return firstValueFrom(awaitTask(deps)(order, await createTask(deps)(order)))
    },
    order: (account, model, prompt, more) => orderOf(upstream.url, account, model, prompt, more),
    newAccount: async (credits = 1000n, spendCap) => {
      const { account, wallet } = await database.accounts.create({
        name: 'Test',
        credit: credits * ONE_CREDIT,
      })
      const wanted = { accountId: account.id, name: 'Test' }
      const { key } = await database.keys.create(
        spendCap === undefined ? wanted : { ...wanted, kind: 'employee', spendCap: spendCap * ONE_CREDIT },
      )
      const capped = capTotals(key.grant)
      const cap = capped === null ? null : new WalletView(capped)
      return { account, keyId: key.id, view: new WalletView(wallet), cap }
    },
    walletOf: async ({ account }) => (await database.wallets.read([account.id]))[0]!,
    async reached(id, ...states) {
      for (;;) {
        const [task] = await database.tasks.read([id])
        if (task !== undefined && states.includes(task.state)) return task
        await pause(20)
      }
    },
  }
}

function natsOf(t: Test, engines: TestEngines): Nats {
  const nats = openNats({ url: engines.natsUrl, name: 'test', log: silent })
  t.teardown(() => nats.close())
  return nats
}

function orderOf(
  url: string,
  { account, keyId, view, cap }: TestAccount,
  name: string,
  prompt: string,
  { key, ...more }: Partial<TaskOrder> & { key?: string } = {},
): TaskOrder {
  const catalog = catalogFor(url)
  const model = catalog.resolve(name)!
  const isPicture = name === 'picture'
  const job = isPicture
    ? mediaJob.parse({ work: 'image', prompt, n: 1 })
    : mediaJob.parse({ work: 'video', content: [{ type: 'text', text: prompt }], duration: 5 })
  const price = findMediaPrice(model.entry, null, Date.now())!
  const protocols = ['task', 'ark-video', 'openai-images'] as const
  const request = {
    requestId: newId('req'),
    method: 'POST',
    path: '/v1/videos/generations',
    params: NO_PARAMS,
    query: '',
    header: () => '',
    hasHeader: () => false,
    body: Buffer.from(JSON.stringify({ name, prompt })),
    submittedAt: Date.now(),
    startedAt: performance.now(),
  }
  const { requestId, method, path, query, body } = request
  const idempotency =
    key === undefined
      ? null
      : {
          scope: `account:${account.id}` as const,
          key,
          requestId,
          requestHash: hashRequest(method, path, query, body),
        }
  const known = { key: { id: keyId }, account, view, cap } as unknown as TaskOrder['caller']['known']
  return {
    caller: { request, known },
    kind: isPicture ? 'image' : 'video',
    protocol: isPicture ? 'images' : 'videos',
    model,
    job,
    price,
    hold: computeHold(price, job),
    routes: protocols.flatMap((protocol) => catalog.routes(model, protocol)),
    until: isPicture ? 'ended' : 'accepted',
    idempotency,
    ...more,
  }
}
