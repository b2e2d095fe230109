/**
 * Turns events into deliveries, and publishes messages for due deliveries. Every tasks process does so at each event and
 * each second, and so finds deliveries whose message was lost. While NATS is down, the process works on them itself.
 */

import type { NamedDelivery } from '../../src/postgres/notifications/deliveries.ts'
import type { Deliveries, Events } from '../../src/postgres/notifications/repository.ts'
import { OutageLog, type PipelineLog } from '../settlement/retrying.ts'

const DISPATCH_MAX_EVENTS = 500
/** The most deliveries of a lane in progress, over all processes. */
const LANE_MAX_NAMED = 64
/** Three times the interval at which a process touches its deliveries. */
const STALE_MS = 15_000

interface RoundDeps {
  readonly database: {
    readonly events: Events
    readonly deliveries: Deliveries
  }
  readonly publish: (delivery: NamedDelivery) => void
  /** Works on a delivery without a message. */
  readonly take: (id: string) => void
  /** Returns whether NATS is up. */
  readonly isOnline: () => boolean
  readonly hasMail: boolean
  readonly log: PipelineLog
}

/** Returns a function that begins a round, or another one after the current one. */
export function startRounds(deps: RoundDeps): () => void {
  const { database, publish, take, isOnline, hasMail, log } = deps
  const trouble = new OutageLog(log, 'Dispatching events')
  let isRunning = false
  let isWanted = false

  const runRound = async () => {
    while ((await database.events.dispatch(DISPATCH_MAX_EVENTS, { hasMail })) === DISPATCH_MAX_EVENTS);
    const isPublished = isOnline()
    for (const named of await database.deliveries.claimDue(LANE_MAX_NAMED, STALE_MS))
      if (isPublished) publish(named)
      else take(named.id)
  }
  const run = async () => {
    try {
      await runRound()
      trouble.noteSuccess()
    } catch (error) {
      trouble.noteFailure(error)
    } finally {
      isRunning = false
      if (isWanted) begin()
    }
  }
  const begin = () => {
    isWanted = isRunning
    if (isRunning) return
    isRunning = true
    void run()
  }
  return begin
}
