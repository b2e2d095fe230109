/** One run: clients, gateways and processes that work on tasks under faults, then quiet until all has ended, then the sums. */

import { followLostSubmits } from '../../../pipelines/tasks/lost/follow-lost.ts'
import { awaitTask, createTask } from '../../../pipelines/tasks/order/create-task.ts'
import type { TaskOrder } from '../../../pipelines/tasks/order/order.ts'
import { watchTasks } from '../../../pipelines/tasks/order/watch-tasks.ts'
import type { TaskStorage } from '../../../pipelines/tasks/ports.ts'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import { TaskSweep } from '../../../pipelines/tasks/worker/sweep.ts'
import { TaskWork } from '../../../pipelines/tasks/worker/work.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { isFinal } from '../../../schemas/tasks/task.ts'
import type { MediaAdapter } from '../../../src/channels/media/adapter.ts'
import { computeHold, findMediaPrice } from '../../../src/core/media/pricing.ts'
import { type Catalog, createCatalog } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { WalletView } from '../../../src/credentials/wallet.ts'
import { NO_PARAMS } from '../../../src/http/router.ts'
import { isTransient } from '../../../src/postgres/errors.ts'
import type { LostSubmit } from '../../../src/postgres/tasks/lost-submits.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { Random } from '../random.ts'
import { Process, VirtualTime } from '../virtual-time.ts'
import { check } from './check-books.ts'
import { databaseOf } from './faulty-database.ts'
import { type Lies, MemoryTasks } from './memory-tasks.ts'
import { TaskFaults } from './task-faults.ts'
import { TaskQueue } from './task-queue.ts'
import { asyncAdapter, Upstream, wholeAdapter } from './upstream.ts'

/** Deeper than any chain of awaits between two waits. */
const MICROTASK_TURNS = 40
const EPOCH_MS = 1_760_000_000_000
const ORDERS_END_MS = 20_000
const FAULTS_END_MS = 40_000
/** Deadline, then a sweep that finds what nobody looked after, and what is left to do. */
const ALL_ENDED_MS = 420_000
const QUIET_MS = 30_000
/** A process that died had asked about a lost submit; then its upstream does not answer a few times. */
const ALL_ASKED_MS = 900_000
const SWEEP_INTERVAL_MS = 5_000
const CARE_INTERVAL_MS = 10_000
const RESTART_MAX_MS = 5_000
const JUMP_MAX_MS = 90_000
const OUTAGE_MAX_MS = 8_000
export const ACCOUNT = 'account'
const MODEL = 'made'
const silent = { info() {}, warn() {}, error() {} }

export interface Outcome {
  readonly problems: readonly string[]
  readonly deaths: number
  readonly looks: number
  /** How each task ended, in the order in which they were made. */
  readonly ends: readonly Task['state'][]
}

export interface World {
  readonly time: VirtualTime
  readonly random: Random
  readonly faults: TaskFaults
  readonly queue: TaskQueue
  readonly tasks: MemoryTasks
  readonly upstream: Upstream
  readonly catalog: Catalog
  readonly findAdapter: (protocol: string) => MediaAdapter | null
  readonly objects: Set<string>
  /** Tasks whose client has the id, or the result. */
  readonly promised: Set<string>
  readonly problems: string[]
}

const CATALOGS = {
  film: catalogOf('task'),
  reel: catalogOf('ark-video'),
  picture: catalogOf('openai-images'),
}

function catalogOf(protocol: string): Catalog {
  const channel = (id: string, priority: number) => ({
    id,
    protocol,
    base_url: 'http://up.test',
    api_key: 'sk-test',
    models: { [MODEL]: 'made-v1' },
    priority,
  })
  const pricing =
    protocol === 'openai-images' ? { unit: 'image', per_unit: '1' } : { unit: 'second', per_unit: '1' }
  const models = [{ id: MODEL, pricing }]
  return createCatalog(configFile.parse({ models, channels: [channel('one', 0), channel('two', 1)] }))
}

export async function simulate(seed: number, lies: Lies = {}): Promise<Outcome> {
  const time = new VirtualTime(MICROTASK_TURNS)
  const random = new Random(seed)
  const faults = new TaskFaults(random)
  const queue = new TaskQueue(time, random, faults)
  const tasks = new MemoryTasks(lies)
  const problems: string[] = []
  const upstream = new Upstream({ time, random, faults, problems })
  tasks.onEnd = (id) => void upstream.ends.set(id, time.now)
  upstream.isLost = (id) => tasks.lost.has(id)
  const model = random.pick(['film', 'reel', 'picture'] as const)
  const adapter = model === 'picture' ? wholeAdapter : asyncAdapter(model === 'film')
  const world: World = {
    ...{ time, random, faults, queue, tasks, upstream, problems },
    catalog: CATALOGS[model],
    findAdapter: () => adapter,
    objects: new Set(),
    promised: new Set(),
  }
  const opened = BigInt(random.int(5, 60)) * 100_000_000n
  tasks.openWallet(ACCOUNT, opened)
  const lives = [
    new Life(world, startGateway),
    ...Array.from({ length: random.int(1, 2) }, () => new Life(world, startWorker)),
  ]
  const gateway = lives[0] as Life<Order>
  for (let at = random.int(1, 5); at > 0; at--)
    time.after(random.int(0, ORDERS_END_MS), () => client(world, gateway, `intent-${random.int(1, 2)}`))
  planFaults(world, lives)
  await time.run(FAULTS_END_MS)
  faults.end()
  for (const life of lives) life.skewMs = 0
  queue.comeBack()
  await time.run(
    ALL_ENDED_MS,
    () => time.now > ORDERS_END_MS && tasks.all.every(({ state }) => isFinal(state)),
  )
  await time.run(time.now + QUIET_MS)
  const isAsked = ({ upstreamId, nextCheckAt, closedAt }: LostSubmit) =>
    upstreamId !== null || nextCheckAt === null || closedAt !== null
  await time.run(time.now + ALL_ASKED_MS, () => [...tasks.lost.values()].every(isAsked))
  check(world, opened)
  for (const life of lives) life.end()
  const ends = tasks.all.map(({ state }) => state)
  return { problems: [...new Set(problems)], deaths: faults.deaths, looks: upstream.looks, ends }
}

function planFaults({ time, random, faults, queue }: World, lives: readonly Life<unknown>[]): void {
  const at = () => random.int(0, FAULTS_END_MS)
  const outage = (flag: 'isDatabaseDown' | 'isNatsDown') => {
    time.after(at(), () => {
      if (faults.areOver) return
      faults[flag] = true
      time.after(random.int(0, OUTAGE_MAX_MS), () => {
        faults[flag] = false
        queue.comeBack()
      })
    })
  }
  if (faults.happens(0.3)) outage('isDatabaseDown')
  if (faults.happens(0.3)) outage('isNatsDown')
  if (faults.happens(0.1)) time.after(at(), () => queue.loseStore())
  for (const life of lives)
    if (faults.happens(0.4))
      time.after(at(), () => {
        if (!faults.areOver) life.skewMs = random.int(-JUMP_MAX_MS, JUMP_MAX_MS)
      })
}

interface Start {
  readonly process: Process
  readonly now: () => number
}

/** A process, and those that are started in its place. */
class Life<Port> {
  readonly #world: World
  readonly #start: (world: World, start: Start) => Port
  #process!: Process
  #isOver = false
  skewMs = 0
  port!: Port

  constructor(world: World, start: (world: World, start: Start) => Port) {
    this.#world = world
    this.#start = start
    this.#begin()
  }

  end(): void {
    this.#isOver = true
    this.#process.die()
  }

  #begin(): void {
    const { time, random, faults } = this.#world
    const process = new Process(time)
    this.#process = process
    process.onDeath = () => {
      if (this.#isOver) return
      faults.deaths++
      time.after(random.int(10, RESTART_MAX_MS), () => {
        if (!this.#isOver) this.#begin()
      })
    }
    this.port = this.#start(this.#world, { process, now: () => EPOCH_MS + time.now + this.skewMs })
  }
}

type Order = (key: string) => Promise<unknown>

function startGateway(world: World, { process, now }: Start): Order {
  const { tasks, random, faults, queue, findAdapter, promised } = world
  const database = databaseOf(process, tasks, random, faults)
  const { scheduler } = process
  const messages = taskMessages(queue.natsOf(process), silent, scheduler)
  const watch = watchTasks({ database, messages, log: silent, scheduler })
  const deps = {
    database,
    messages,
    watch,
    findAdapter,
    isTransient,
    onWallet() {},
    log: silent,
    now,
    scheduler,
  }
  return async (key) => {
    const order = orderOf(world, key, now())
    const task = await createTask(deps)(order)
    return new Promise((resolve, reject) => {
      awaitTask(deps)(order, task).subscribe({
        next: (seen) => {
          promised.add(seen.id)
          resolve(seen)
        },
        error: reject,
      })
    })
  }
}

let requests = 0

function orderOf(
  { catalog, tasks, findAdapter, random }: World,
  key: string,
  submittedAt: number,
): TaskOrder {
  const model = catalog.resolve(MODEL)!
  const isPicture = findAdapter('')!.follow === null
  const job = isPicture
    ? mediaJob.parse({ work: 'image', prompt: key, n: 4 })
    : mediaJob.parse({ work: 'video', content: [], duration: 4 })
  const price = findMediaPrice(model.entry, null, submittedAt)!
  const request = {
    requestId: `req_${++requests}`,
    method: 'POST',
    path: '/',
    params: NO_PARAMS,
    query: '',
    header: () => '',
    hasHeader: () => false,
    body: Buffer.from(key),
    submittedAt,
    startedAt: 0,
  }
  const known = {
    key: { id: 'key' },
    account: { id: ACCOUNT },
    view: new WalletView(tasks.walletOf(ACCOUNT)),
    cap: null,
    budgets: [],
  }
  return {
    caller: { request, known } as unknown as TaskOrder['caller'],
    kind: isPicture ? 'image' : 'video',
    protocol: 'made',
    model,
    job,
    price,
    hold: computeHold(price, job),
    routes: catalog.routes(model, catalog.channels[0]!.protocol),
    idempotency: {
      scope: `account:${ACCOUNT}`,
      key,
      requestId: request.requestId,
      requestHash: Buffer.from(key),
    },
    until: random.pick(['accepted', 'ended']),
    deadlineMs: random.pick([20_000, 60_000, 120_000]),
  }
}

/** Asks, and asks again under the same key when it gets an error. */
function client({ random, faults, time }: World, gateway: Life<Order>, key: string): void {
  const ask = (left: number) => {
    gateway.port(key).catch(() => {
      if (left > 0 && !faults.areOver) time.after(random.int(0, 3_000), () => ask(left - 1))
    })
    // Its connection was cut, and it does not know what became of it.
    if (faults.happens(0.3))
      time.after(random.int(0, 5_000), () => void gateway.port(key).catch(() => undefined))
  }
  ask(2)
}

function startWorker(world: World, { process, now }: Start): TaskWork {
  const { tasks, random, faults, queue, upstream, catalog, findAdapter } = world
  const database = databaseOf(process, tasks, random, faults)
  const messages = taskMessages(queue.natsOf(process), silent, process.scheduler)
  const storage = storageOf(world, process)
  const providers = { calls: upstream.callsOf(process), findAdapter, catalog: () => catalog }
  const work = new TaskWork({
    database,
    messages,
    storage,
    ...providers,
    health: new ChannelHealth(now),
    metrics: { countSubmit() {}, countPoll() {}, countExcess() {}, countDiscard() {} },
    onUnmappedState() {},
    onLateness() {},
    log: silent,
    now,
    pause: (ms) => new Promise((resolve) => process.settleAfter(ms, resolve)),
    random: () => random.unit(),
  })
  const isOnline = () => !faults.isNatsDown
  const sweep = new TaskSweep({ database, messages, storage, work, isOnline, log: silent, now })
  const every = (intervalMs: number, care: () => Promise<unknown>) => {
    process.settleAfter(intervalMs, () => {
      care()
        .catch(() => undefined)
        .then(() => every(intervalMs, care))
    })
  }
  every(SWEEP_INTERVAL_MS, () => sweep.tasks())
  every(SWEEP_INTERVAL_MS, () => followLostSubmits({ ...providers, database, log: silent, now }))
  every(CARE_INTERVAL_MS, async () => {
    work.keep()
    await work.touch()
  })
  queue.consume(process, (delivery) => work.receive(delivery))
  return work
}

function storageOf({ objects, random, faults }: World, process: Process): TaskStorage {
  const kept = (key: string) =>
    new Promise<{ bytes: number; mediaType: string; width: null; height: null }>((resolve, reject) => {
      process.settleAfter(random.int(0, 100), () => {
        if (faults.happens(0.2)) return reject(new Error('the store is away'))
        objects.add(key)
        resolve({ bytes: 1, mediaType: 'video/mp4', width: null, height: null })
      })
    })
  const never = async (): Promise<never> => {
    throw new Error('nothing that is simulated reads')
  }
  return {
    copy: (_url, key) => kept(key),
    checkLinks: async () => undefined,
    put: (key) => kept(key),
    link: async (key) => `link:${key}`,
    permanentLink: (key) => `link:${key}`,
    read: never,
    open: never,
    delete: async () => undefined,
  }
}
