/** `tollgate logs find`: all that is known of one call or task, in groups. */

import { entryShape, taskShape } from '../../../pipelines/management/shapes.ts'
import type { Admission } from '../../../schemas/call-log/columns.ts'
import { printCredits } from '../../../schemas/money.ts'
import { detailView } from '../../core/call-log/detail.ts'
import type { JournalTrace } from '../../journal/find-call.ts'
import type { FoundCall } from '../../postgres/call-log/find-call.ts'
import type { Calls } from '../../postgres/call-log/repository.ts'
import { type JsonObject, printable } from '../output.ts'

/** Place where a reference was found. */
export type Place = 'booked' | 'refused' | 'in_journal' | 'in_flight' | 'cut_off' | 'task' | 'ledger_only'

class NothingFound extends Error {
  constructor(ref: string, keptSince: Date | null) {
    const gone =
      keptSince === null
        ? ''
        : `. It is of before ${keptSince.toISOString()}: retention has taken away the calls of that time`
    super(
      `There is no call or task ${printable(ref)}: neither booked, nor refused by the books, nor in a journal of this machine${gone}`,
    )
    this.name = 'NothingFound'
  }
}

type FindInJournals = (requestId: string) => JournalTrace | null

/** @throws NothingFound */
export async function readFound(
  database: { readonly calls: Pick<Calls, 'find'> },
  findInJournals: FindInJournals,
  ref: string,
) {
  const found = await database.calls.find(ref)
  // Booked settlements stay in the journal for a while; they are ignored here.
  const trace = found.call === null && found.refused === null ? findInJournals(ref) : null
  // Between the two reads it may have been booked, and its segment removed.
  const looked = trace === null && placeOf(found, null) === null ? await database.calls.find(ref) : found
  const place = placeOf(looked, trace)
  if (place === null) throw new NothingFound(ref, looked.keptSince)
  return foundShape(ref, place, looked, trace)
}

function placeOf(
  { call, refused, hold, task, entries }: FoundCall,
  trace: JournalTrace | null,
): Place | null {
  if (call !== null) return 'booked'
  if (refused !== null) return 'refused'
  if (trace !== null && trace.settlement !== null) return 'in_journal'
  if (trace !== null) return trace.isLive ? 'in_flight' : 'cut_off'
  if (hold !== null || task !== null) return 'task'
  return entries.length > 0 ? 'ledger_only' : null
}

const parsed = (text: string | null): JsonObject | string | null => {
  if (text === null) return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const foundShape = (ref: string, place: Place, found: FoundCall, trace: JournalTrace | null) => ({
  ref,
  place,
  account_id:
    found.account?.id ??
    found.call?.account_id ??
    found.task?.accountId ??
    found.hold?.accountId ??
    trace?.admission?.account_id ??
    null,
  account_name: found.account?.name ?? null,
  call:
    found.call === null ? null : { ...found.call, attempts: found.call.attempts.map((row) => ({ ...row })) },
  detail: detailShape(found),
  call_log: found.copy,
  ledger: found.entries.map(entryShape),
  hold: found.hold && {
    ref: found.hold.ref,
    amount: printCredits(found.hold.amount),
    state: found.hold.state,
    charged: printCredits(found.hold.charged),
    created_at: found.hold.createdAt.toISOString(),
    closed_at: found.hold.closedAt?.toISOString() ?? null,
  },
  task: found.task && { ...taskShape(found.task), key_name: found.taskKeyName },
  refused: found.refused && {
    reason: found.refused.reason,
    refused_at: found.refused.refusedAt.toISOString(),
    settlement: parsed(found.refused.settlement),
  },
  journal: trace && {
    directory: trace.directory,
    is_live: trace.isLive,
    admission: trace.admission && admissionShape(trace.admission),
    settlement: trace.settlement as JsonObject | null,
  },
})
export type Found = ReturnType<typeof foundShape>

/** Returns the detail as `GET /v1/logs/{id}` does; null for a row without one. */
function detailShape({ call, detail }: FoundCall) {
  if (call === null || detail === null) return null
  const { request, upstream, gateway, request_note } = detailView({ ...call, detail })
  return { request, upstream, gateway, request_note }
}

/** Amounts as decimals, as everywhere that a person reads. */
const admissionShape = ({ estimate, submitted_at, ...call }: Admission) => ({
  ...call,
  submitted_at: new Date(submitted_at).toISOString(),
  estimate: printCredits(BigInt(estimate)),
})
