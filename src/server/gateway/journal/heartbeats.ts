/** Keeps the journals of a gateway registered in PostgreSQL, so that those of a machine that never comes back are seen. */

import { hostname } from 'node:os'
import type { Journal } from '../../../journal/journal.ts'
import { isAway } from '../../../postgres/errors.ts'
import type { Journals } from '../../../postgres/operation/repository.ts'
import type { Log } from '../../../telemetry/log.ts'
import { repeatUnlessBusy } from '../engine-watch.ts'

const HEARTBEAT_INTERVAL_MS = 5_000

interface HeldJournal {
  readonly directory: string
  readonly journal: Pick<Journal, 'id' | 'holdings'>
}

/** Registers the journals before any call is admitted, and sends heartbeats of them until `close`. */
export async function startHeartbeats(
  database: { readonly journals: Pick<Journals, 'recordHeartbeat' | 'recordDrained'> },
  journals: readonly HeldJournal[],
  log: Pick<Log, 'warn'>,
) {
  const node = hostname()
  const beat = async () => {
    for (const { directory, journal } of journals)
      await database.journals.recordHeartbeat({ id: journal.id, node, directory, ...journal.holdings() })
  }
  await beat()
  const timer = repeatUnlessBusy(HEARTBEAT_INTERVAL_MS, () =>
    beat().catch((error) => {
      // While PostgreSQL is down, the check of the engines reports it.
      if (!isAway(error)) log.warn({ err: error }, 'Failed to record a heartbeat of the journals')
    }),
  )
  return {
    /** Records what is left; a journal without anything as drained. Never rejects. */
    async close(): Promise<void> {
      clearInterval(timer)
      try {
        await beat()
        for (const { journal } of journals) {
          const { openCalls, unbookedCalls } = journal.holdings()
          if (openCalls === 0 && unbookedCalls === 0) await database.journals.recordDrained(journal.id)
        }
      } catch (error) {
        log.warn(
          { err: error },
          'Failed to register what is left in the journal; operators are notified of it',
        )
      }
    },
  }
}
