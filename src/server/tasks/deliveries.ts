/** Delivers notifications in a tasks process: webhooks and emails. */
import { setTimeout as pause } from 'node:timers/promises'
import { bindPublisher } from '../../../pipelines/notifications/messages.ts'
import { startRounds } from '../../../pipelines/notifications/rounds.ts'
import { DeliveryWork } from '../../../pipelines/notifications/work.ts'
import { guardedPost } from '../../fetch/guarded-post.ts'
import { openMail } from '../../mail/mail.ts'
import type { Nats } from '../../nats/nats.ts'
import type { NotificationRepositories } from '../../postgres/notifications/repository.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Configuration } from '../configuration.ts'
import { repeatUnlessBusy } from '../gateway/engine-watch.ts'
import type { Boot } from '../messages.ts'
import { processReports } from '../process-reports.ts'

/** A third of the time after which JetStream counts a silent process as dead. */
const KEEP_INTERVAL_MS = 2_000
/** A third of the time after which a delivery is named again. */
const TOUCH_INTERVAL_MS = 5_000
const ROUND_INTERVAL_MS = 1_000
/** Breakers are open for 30 s at least. */
const BREAKERS_INTERVAL_MS = 10_000
const PURGE_INTERVAL_MS = 3_600_000

interface DeliveriesOptions {
  readonly boot: Boot
  readonly database: NotificationRepositories
  readonly nats: Nats
  readonly configuration: Pick<Configuration, 'current'>
  readonly log: Log
}

/** Returns the function that ends it: attempts under way may end within the bound. */
export function deliverNotifications(options: DeliveriesOptions): (boundMs: number) => Promise<void> {
  const { boot, database, nats, configuration, log } = options
  const mail = boot.mail === null ? null : openMail({ ...boot.mail, publicUrl: boot.publicUrl })
  const work = new DeliveryWork({
    database,
    post: guardedPost,
    mayBePrivate: () => configuration.current().config.webhooks.private_addresses,
    mail,
    onRecorded: () => begin(),
    log,
    now: Date.now,
    random: Math.random,
    pause: (ms) => pause(ms),
  })
  const begin = startRounds({
    database,
    publish: bindPublisher(nats, log),
    take: (id) => work.take(id),
    isOnline: () => nats.health().isConnected,
    hasMail: mail !== null,
    log,
  })
  const logFailure = (what: string) => (error: unknown) => log.warn({ err: error }, `${what}; retrying`)
  const reportBreakers = async () => {
    const reports = await processReports(nats)
    if (reports === null || reports.length === 0) return
    const states = new Map<string, boolean>()
    for (const { channel, breaker } of reports.flatMap(({ channels }) => channels))
      states.set(channel, states.get(channel) === true || breaker !== 'closed')
    await database.alerts.recordBreakers([...states].map(([channelId, isOpen]) => ({ channelId, isOpen })))
  }
  const timers = [
    setInterval(() => work.keep(), KEEP_INTERVAL_MS),
    repeatUnlessBusy(TOUCH_INTERVAL_MS, () => work.touch().catch(logFailure('Failed to touch deliveries'))),
    setInterval(begin, ROUND_INTERVAL_MS),
    repeatUnlessBusy(BREAKERS_INTERVAL_MS, () =>
      reportBreakers().catch(logFailure('Failed to compare circuit breakers')),
    ),
    repeatUnlessBusy(PURGE_INTERVAL_MS, () =>
      database.deliveries.purge().catch(logFailure('Failed to delete old deliveries')),
    ),
  ]
  // Without it each round still comes by its timer.
  const listening = database.events.listen(begin).catch((error) => {
    logFailure('Failed to listen for events')(error)
    return null
  })
  const stopConsuming = nats.consumeDeliveries((delivery) => work.receive(delivery))
  return async (boundMs) => {
    stopConsuming()
    for (const timer of timers) clearInterval(timer)
    void listening.then((stop) => stop?.())
    await work.stop(boundMs)
    mail?.close()
  }
}
