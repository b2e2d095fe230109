import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Admission, Settlement } from '../../../schemas/call-log/columns.ts'
import type { JournalOptions } from '../../../src/journal/journal.ts'
import { type Journal, openJournal, type Ticket } from '../../../src/journal/journal.ts'
import { makeInterruptedSettlement } from '../../../src/journal/lines.ts'

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
  readonly details: object
}

/** A log that keeps its lines. */
export function keepingLog() {
  const lines: LogLine[] = []
  const at = (level: LogLine['level']) => (details: object, message: string) =>
    void lines.push({ level, message, details })
  return { lines, log: { info: at('info'), warn: at('warn'), error: at('error') } }
}

export function newDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-journal-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

export const admission = (requestId: string): Admission => ({
  request_id: requestId,
  account_id: 'acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
  key_id: 'key_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
  model: 'sonata-large',
  protocol: 'chat-completions',
  stream: true,
  submitted_at: 1_760_000_000_000,
  estimate: '96000000',
  session_id: null,
})

export const settlement = (requestId: string, more: Partial<Settlement> = {}): Settlement => ({
  ...makeInterruptedSettlement(admission(requestId), 1_760_000_001_000),
  status: 'success',
  error_message: null,
  usage_source: 'upstream',
  cost: '4900000',
  ...more,
})

/** Lets a call in; ends when its admission is written. */
export const admit = (journal: Journal, requestId: string): Promise<Ticket> =>
  new Promise((resolve, reject) => {
    const ticket = journal.admit(admission(requestId), (error) =>
      error === null ? resolve(ticket) : reject(error),
    )
  })

/** Behind the write that this turn of the event loop brings. */
export const written = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Everything that waits to be published, unconfirmed. */
export function takeAll(journal: Journal): Settlement[] {
  const settlements: Settlement[] = []
  for (let batch = journal.take(); batch !== null; batch = journal.take())
    for (const line of Buffer.from(batch.payload()).toString('utf8').trim().split('\n'))
      settlements.push(JSON.parse(line))
  return settlements
}

export function confirmAll(journal: Journal): number {
  let count = 0
  for (let batch = journal.take(); batch !== null; batch = journal.take()) {
    journal.confirm(batch)
    count += batch.count
  }
  return count
}

/** A journal that is left as a killed process leaves it: its file is never closed, but nothing more is written. */
export async function openAndAbandon(
  options: JournalOptions,
  work: (journal: Journal) => Promise<void> | void,
): Promise<void> {
  const journal = await openJournal({ ...options, clock: stoppedLater })
  await work(journal)
  await written()
}

/** No timer ever comes due: what only time would do is not done. */
const stoppedLater = {
  now: Date.now,
  soon: (work: () => void) => void setImmediate(work),
  later: () => () => undefined,
}
