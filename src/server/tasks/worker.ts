/** The tasks process: whatever outlives its request is submitted, followed, stored and settled here. */
import { setTimeout as pause } from 'node:timers/promises'
import { runJobs } from '../../../pipelines/jobs/run-jobs.ts'
import { followLostSubmits } from '../../../pipelines/tasks/lost/follow-lost.ts'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import { TaskSweep } from '../../../pipelines/tasks/worker/sweep.ts'
import { TaskWork } from '../../../pipelines/tasks/worker/work.ts'
import { TASK_KINDS } from '../../../schemas/tasks/kinds.ts'
import { FINAL_STATES, TASK_STATES } from '../../../schemas/tasks/task.ts'
import { ChannelHealth } from '../../core/routing/circuit-breaker.ts'
import { openNats } from '../../nats/nats.ts'
import { openDatabase } from '../../postgres/database.ts'
import type { LostSubmits, Tasks } from '../../postgres/tasks/repository.ts'
import { openStore } from '../../storage/open-store.ts'
import { createLog, type Log } from '../../telemetry/log.ts'
import { createMetrics, type Metrics } from '../../telemetry/metrics.ts'
import { UpstreamClient } from '../../upstream/client.ts'
import { openAuthorizers } from '../channels/authorizers.ts'
import { watchChannelHolds } from '../channels/holds.ts'
import { openMediaCalls } from '../channels/media-calls.ts'
import { openConfiguration } from '../configuration.ts'
import { repeatUnlessBusy } from '../gateway/engine-watch.ts'
import { importJob } from '../knowledge/import-job.ts'
import { type Boot, listBootSecrets } from '../messages.ts'
import { ParentLink } from '../parent-link.ts'
import { reportProcess, showChannels } from '../report-process.ts'
import { exitOnUncaughtException } from '../uncaught-exceptions.ts'
import { VERSION } from '../version.ts'
import { findTaskAdapter } from './adapters.ts'
import { countEndedTask, countTransitions } from './count-transitions.ts'
import { deliverNotifications } from './deliveries.ts'
import { startPaymentWork } from './payments.ts'
import { openTaskStorage } from './storage.ts'
import { startSweeps } from './sweeps.ts'

const MAX_CONNECTIONS = 6
/** A third of the time after which JetStream counts a silent process as dead. */
const KEEP_INTERVAL_MS = 10_000
const COUNT_INTERVAL_MS = 10_000
const CLOSE_BOUND_MS = 2_000
/** The most tasks remembered whose unknown state was logged. */
const LOGGED_MAX_TASKS = 10_000

export async function runTasks(boot: Boot): Promise<void> {
  const log = createLog({ level: boot.logLevel, fields: { role: boot.role } })
  log.hide(listBootSecrets(boot))
  const metrics = createMetrics(VERSION)
  const parent = new ParentLink()
  // The rows hold the state of its work; the next process continues it.
  exitOnUncaughtException(log, () => parent.sendLastSnapshot(metrics.snapshot()))
  const configuration = openConfiguration(boot.configPath, boot.simulatorUrl, log)
  const database = await openDatabase({
    url: boot.databaseUrl,
    poolUrl: boot.databasePoolUrl,
    masterKey: Buffer.from(boot.masterKey, 'base64'),
    maxConnections: MAX_CONNECTIONS,
    name: 'tollgate tasks',
  })
  const store = await openStore({ ...boot, fileLinkKey: database.masterKey.fileLinkKey })
  const counted = { tasks: countTransitions(database.tasks, countEndedTask(metrics, log)) }
  const nats = openNats({ url: boot.natsUrl, name: 'tollgate tasks', log, replicas: boot.natsReplicas })
  const upstream = new UpstreamClient({
    onHandlerError: (error) => log.error({ err: error }, 'Handler of an upstream answer threw'),
  })
  const storage = openTaskStorage({ store })
  const messages = taskMessages(nats, log)
  const now = Date.now
  const health = new ChannelHealth()
  const stopHolds = await watchChannelHolds({ database, configuration, health, log })
  const channels = { health, catalog: configuration.current }
  showChannels(metrics, channels)
  reportProcess({ process: 'tasks', nats, metrics, channels })
  const providers = {
    calls: openMediaCalls(upstream, storage, openAuthorizers(log)),
    findAdapter: findTaskAdapter,
    catalog: configuration.current,
  }
  const work = new TaskWork({
    database: counted,
    messages,
    storage,
    ...providers,
    health,
    metrics: metrics.tasks,
    onUnmappedState: watchUnmappedStates(log),
    onLateness: metrics.tasks.observeLateness,
    log,
    now,
    pause: (ms) => pause(ms),
    random: Math.random,
  })
  const isOnline = () => nats.health().isConnected
  const sweep = new TaskSweep({ database: counted, messages, storage, work, isOnline, log, now })
  const followLost = () => followLostSubmits({ ...providers, database, log, now })
  const timers = [
    setInterval(() => work.keep(), KEEP_INTERVAL_MS),
    ...startSweeps({ work, sweep, followLost, database, log }),
    countOpen(metrics, database),
  ]
  const jobs = runJobs({
    database,
    work: { import: importJob({ boot, store }) },
    log,
  })
  const stopDelivering = deliverNotifications({ boot, database, nats, configuration, log })
  const payments = await startPaymentWork({ boot, database, configuration, log })
  const stopConsuming = nats.consumeTasks((delivery) => work.receive(delivery))

  let isEnding = false
  const end = async (boundMs: number) => {
    if (isEnding) return
    isEnding = true
    stopConsuming()
    await Promise.all([
      work.stop(boundMs),
      stopDelivering(boundMs),
      Promise.race([Promise.all([jobs.stop(), payments.stop()]), pause(boundMs)]),
    ])
    for (const timer of timers) clearInterval(timer)
    upstream.close()
    configuration.close()
    // It ends its listening on a connection of the database.
    const closed = Promise.allSettled([nats.close(), stopHolds()]).then(() => database.close())
    await Promise.race([closed, pause(CLOSE_BOUND_MS)])
    log.info({}, 'Task worker ended')
    log.flush()
    process.exit(0)
  }
  parent.listen({
    onDrain: (deadlineMs) => void end(deadlineMs),
    onSnapshot: () => metrics.snapshot(),
    onEngines: () => {},
    onOrphaned: () => void end(CLOSE_BOUND_MS),
  })
  parent.send({ type: 'ready' })
}

/** Logs each task's unknown state once: the task is polled until its deadline. */
function watchUnmappedStates(log: Log) {
  const logged = new Set<string>()
  return ({ id, channelId }: { id: string; channelId: string | null }, upstreamState: string) => {
    if (logged.has(id)) return
    if (logged.size >= LOGGED_MAX_TASKS) logged.clear()
    logged.add(id)
    log.error(
      { task: id, channel: channelId, upstream_state: upstreamState },
      'Ignored unknown state of an upstream task; the task ends at its deadline unless a known state follows',
    )
  }
}

/** Counts open tasks and lost submits at an interval, not at each scrape. */
function countOpen(
  metrics: Metrics,
  database: { readonly tasks: Pick<Tasks, 'countOpen'>; readonly lostSubmits: Pick<LostSubmits, 'count'> },
): NodeJS.Timeout {
  let counts = new Map<string, number>()
  let lost: number | null = null
  const open = TASK_STATES.filter((state) => !(FINAL_STATES as readonly string[]).includes(state))
  for (const kind of TASK_KINDS)
    for (const state of open)
      metrics.observe('tollgate_tasks_open', () => counts.get(`${kind} ${state}`) ?? null, { kind, state })
  metrics.observe('tollgate_lost_submits_open', () => lost)
  return repeatUnlessBusy(COUNT_INTERVAL_MS, async () => {
    try {
      const rows = await database.tasks.countOpen()
      counts = new Map(rows.map(({ kind, state, count }) => [`${kind} ${state}`, count]))
      lost = await database.lostSubmits.count()
    } catch {
      counts = new Map()
      lost = null
    }
  })
}
