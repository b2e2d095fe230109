/** Dependencies of the acts of journals: the disk of this machine, and JetStream. */
import type { JournalDeps } from '../../pipelines/management/jobs/journals.ts'
import { findJournal } from '../journal/found.ts'
import { interruptedSettlement } from '../journal/lines.ts'
import type { Nats, NatsLog } from '../nats/nats.ts'

/** @param nats null: its address is not known */
export const journalDeps = (
  nats: Pick<Nats, 'countSettlements'> | null,
  log: NatsLog,
): JournalDeps['journals'] => ({
  find: (directory) => findJournal(directory, log),
  interrupted: interruptedSettlement,
  countSettlements: async (subject) => nats?.countSettlements(subject).catch(() => null) ?? null,
})
