/** Keeps the calls of this process from channels that operators pause or drain. */
import type { ChannelHealth } from '../../core/routing/circuit-breaker.ts'
import type { Changes } from '../../postgres/changes.ts'
import { isAway } from '../../postgres/errors.ts'
import type { Channels } from '../../postgres/operation/repository.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Configuration } from '../configuration.ts'

const RETRY_MS = 500

interface ChannelHoldsDeps {
  readonly database: { readonly changes: Changes; readonly channels: Pick<Channels, 'listHolds'> }
  readonly configuration: Pick<Configuration, 'hold'>
  readonly health: Pick<ChannelHealth, 'hold'>
  readonly log: Pick<Log, 'info' | 'warn'>
}

/**
 * Reads which channels are held, and follows changes until the returned function is called. Resolves once they are in
 * force. While PostgreSQL is down, what was read last stays in force.
 */
export async function watchChannelHolds({
  database,
  configuration,
  health,
  log,
}: ChannelHoldsDeps): Promise<() => Promise<void>> {
  let isClosed = false
  let known = '[]'
  let timer: NodeJS.Timeout | undefined
  let stopListening: (() => Promise<void>) | null = null

  const apply = async () => {
    const holds = await database.channels.listHolds()
    const states = holds.map(({ id, state }) => [id, state] as const)
    if (isClosed || JSON.stringify(states) === known) return
    known = JSON.stringify(states)
    health.hold(new Map(states))
    configuration.hold(new Set(holds.map(({ id }) => id)))
    log.info({ held: Object.fromEntries(states) }, 'Applied the states of channels')
  }
  // One read after the other: an older answer never replaces a newer one.
  let reading: Promise<void> = Promise.resolve()
  const read = () => {
    reading = reading.then(apply).catch((error) => {
      log.warn({ err: error }, 'Failed to read the states of channels; retrying')
      later(read)
    })
  }
  const later = (work: () => void) => {
    if (!isClosed) timer = setTimeout(work, RETRY_MS).unref()
  }
  const listen = async () => {
    try {
      stopListening = await database.changes.listen({
        onChange: (kind) => {
          if (kind === 'channel') read()
        },
        onReset: read,
      })
      read()
    } catch (error) {
      if (!isAway(error))
        log.warn({ err: error }, 'Failed to listen for changes of channel states; trying again')
      later(() => void listen())
    }
  }
  await apply()
  void listen()
  return async () => {
    isClosed = true
    clearTimeout(timer)
    await stopListening?.().catch(() => {})
  }
}
