/** The task worker: whatever outlives its request is submitted, followed, stored and settled here. */
import { setTimeout as pause } from 'node:timers/promises'
import { runJobs } from '../../../pipelines/jobs/run-jobs.ts'
import { followLostSubmits } from '../../../pipelines/tasks/lost/follow-lost.ts'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import { TaskSweep } from '../../../pipelines/tasks/worker/sweep.ts'
import { TaskWork } from '../../../pipelines/tasks/worker/work.ts'
import { TASK_KINDS } from '../../../schemas/tasks/kinds.ts'
import { FINAL_STATES, TASK_STATES } from '../../../schemas/tasks/task.ts'
import { ChannelHealth } from '../../core/routing/circuit-breaker.ts'
import type { LostSubmits, Tasks } from '../../postgres/tasks/repository.ts'
import { openStore } from '../../storage/open-store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { UpstreamClient } from '../../upstream/client.ts'
import type { StartWork } from '../background.ts'
import { openAuthorizers } from '../channels/authorizers.ts'
import { watchChannelHolds } from '../channels/holds.ts'
import { openMediaCalls } from '../channels/media-calls.ts'
import { openConfiguration } from '../configuration.ts'
import { repeatUnlessBusy } from '../gateway/engine-watch.ts'
import { importJob } from '../knowledge/import-job.ts'
import { showChannels } from '../report-process.ts'
import { findTaskAdapter } from './adapters.ts'
import { countEndedTask, countTransitions } from './count-transitions.ts'
import { deliverNotifications } from './deliveries.ts'
import { startPaymentWork } from './payments.ts'
import { openTaskStorage } from './storage.ts'
import { startSweeps } from './sweeps.ts'

/** A third of the time after which JetStream counts a silent process as dead. */
const KEEP_INTERVAL_MS = 10_000
const COUNT_INTERVAL_MS = 10_000
const CLOSE_BOUND_MS = 2_000
/** The most tasks remembered whose unknown state was logged. */
const LOGGED_MAX_TASKS = 10_000

export const startTasks: StartWork = async ({ boot, database, nats, metrics, log }) => {
  const configuration = openConfiguration(boot.configPath, boot.simulatorUrl, log)
  const store = await openStore({ ...boot, fileLinkKey: database.masterKey.fileLinkKey })
  const counted = { tasks: countTransitions(database.tasks, countEndedTask(metrics, log)) }
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

  return {
    channels,
    async stop(boundMs) {
      stopConsuming()
      await Promise.all([
        work.stop(boundMs),
        stopDelivering(boundMs),
        Promise.race([Promise.all([jobs.stop(), payments.stop()]), pause(boundMs)]),
      ])
      for (const timer of timers) clearInterval(timer)
      upstream.close()
      configuration.close()
      await Promise.race([stopHolds().catch(() => {}), pause(CLOSE_BOUND_MS)])
    },
  }
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
