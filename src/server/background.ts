/** A process without clients: it books settlements, works on tasks, or does both. */
import { setTimeout as pause } from 'node:timers/promises'
import { type Nats, openNats } from '../nats/nats.ts'
import { type Database, openDatabase } from '../postgres/database.ts'
import { createLog, type LogOutput } from '../telemetry/log.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics.ts'
import { collectAtRest } from './collect-at-rest.ts'
import { type BackgroundRole, type Boot, listBootSecrets } from './messages.ts'
import { ParentLink } from './parent-link.ts'
import { type ReportedChannels, reportProcess } from './report-process.ts'
import { exitOnUncaughtException } from './uncaught-exceptions.ts'
import { VERSION } from './version.ts'

/** Both roles in one process have fewer than apart: they run on small machines, where memory counts. */
const MAX_CONNECTIONS: Readonly<Record<BackgroundRole, number>> = {
  settler: 3,
  tasks: 6,
  'settler+tasks': 4,
}
const CLOSE_BOUND_MS = 2_000

/** What all work of the process shares. */
export interface Background {
  readonly boot: Boot
  readonly database: Database
  readonly nats: Nats
  readonly metrics: Metrics
  readonly log: LogOutput
}

interface BackgroundWork {
  /** Null: it calls no channel. */
  readonly channels: ReportedChannels | null
  /** Starts nothing new. What is under way may end within the bound. */
  stop(boundMs: number): Promise<void>
}

export type StartWork = (background: Background) => Promise<BackgroundWork>

/** Runs the work of the process. It stops in the opposite order of its start. */
export async function runBackground(boot: Boot, starts: readonly StartWork[]): Promise<void> {
  const { role } = boot
  if (role === 'gateway') throw new Error('a gateway has clients')
  const log = createLog({ level: boot.logLevel, fields: { role } })
  log.hide(listBootSecrets(boot))
  const metrics = createMetrics(VERSION)
  const parent = new ParentLink()
  // Rows and streams hold the state of its work; the next process continues it.
  exitOnUncaughtException(log, () => parent.sendLastSnapshot(metrics.snapshot()))
  const name = `tollgate ${role}`
  const database = await openDatabase({
    url: boot.databaseUrl,
    poolUrl: boot.databasePoolUrl,
    masterKey: Buffer.from(boot.masterKey, 'base64'),
    maxConnections: MAX_CONNECTIONS[role],
    name,
  })
  const nats = openNats({ url: boot.natsUrl, name, log, replicas: boot.natsReplicas })
  const works = await Promise.all(starts.map((start) => start({ boot, database, nats, metrics, log })))
  const channels = works.find((work) => work.channels !== null)?.channels ?? null
  reportProcess({ process: role, nats, metrics, channels })

  let isEnding = false
  const end = async (boundMs: number) => {
    if (isEnding) return
    isEnding = true
    for (const work of works.toReversed()) await work.stop(boundMs)
    await Promise.race([Promise.allSettled([nats.close(), database.close()]), pause(CLOSE_BOUND_MS)])
    log.info({}, 'Ended')
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
  collectAtRest()
}
