/** `tollgate logs find`: everything that is known about one call or task. */
import { join } from 'node:path'
import { entryShape, taskShape } from '../../../pipelines/management/shapes.ts'
import type { Admission } from '../../../schemas/call-log/columns.ts'
import { printCredits } from '../../../schemas/money.ts'
import { printDetail } from '../../core/call-log/detail.ts'
import { toApiShape } from '../../core/json/snake-case.ts'
import { findInJournals, type JournalTrace } from '../../journal/find-call.ts'
import type { FoundCall } from '../../postgres/call-log/find-call.ts'
import type { Command, Context } from '../context.ts'
import { isObject, type Json, type JsonObject, printable, printRecord } from '../output.ts'
import type { Wiring } from '../wiring.ts'

/** Where a call or task was found, in words. */
const PLACES = {
  booked: 'booked',
  refused: 'ended, and refused by the books',
  in_journal: 'ended, and in the journal on its way to the books',
  in_flight: 'still under way',
  cut_off: 'cut off with its gateway: the next start books it as interrupted, without a charge',
  task: 'a task that is not booked as a call yet: its row is written when it settles',
  ledger_only: 'only in the ledger, without a row: run `tollgate wallet verify`',
} as const

type Place = keyof typeof PLACES

/** Folder of the gateways' journals in a data directory. */
const JOURNAL_FOLDER = 'journal'

export function addFind(program: Command, { wiring }: Context): void {
  program
    .group('logs')
    .command('find')
    .description('Show all that is known of one call or task')
    .argument('<ref>', 'Request id, task id, or the id of a row')
    .example('logs find req_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (ref: string) => {
      const json = await findCall(wiring, ref)
      return { json, text: () => printFound(json) }
    })
}

/** @throws Error where nothing is found */
async function findCall(wiring: Wiring, ref: string): Promise<JsonObject> {
  const { calls } = await wiring.database()
  const found = await calls.find(ref)
  // Booked settlements stay in the journal for a while; they are ignored here.
  const trace =
    found.call === null && found.refused === null
      ? findInJournals(join(wiring.settings().dataDir, JOURNAL_FOLDER), ref)
      : null
  // It may have been booked between the two reads, and its segment removed.
  const looked = trace === null && findPlace(found, null) === null ? await calls.find(ref) : found
  const place = findPlace(looked, trace)
  if (place !== null) return describeFound(ref, place, looked, trace)
  const { keptSince } = looked
  const removed =
    keptSince === null
      ? ''
      : `. It is older than ${keptSince.toISOString()}: retention has removed the calls of that time`
  throw new Error(
    `There is no call or task ${printable(ref)}: neither booked, nor refused by the books, nor in a journal of this machine${removed}`,
  )
}

function findPlace(
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

const parseOrKeep = (text: string): Json => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function describeFound(ref: string, place: Place, found: FoundCall, trace: JournalTrace | null): JsonObject {
  const { account, call, copy, entries, hold, task, taskKeyName, refused } = found
  const owner = account?.id ?? call?.account_id ?? task?.accountId ?? hold?.accountId
  return {
    ref,
    place,
    account_id: owner ?? trace?.admission?.account_id ?? null,
    account_name: account?.name ?? null,
    call_log: copy,
    call: call as JsonObject | null,
    task: task && { ...taskShape(task), key_name: taskKeyName },
    ledger: entries.map(entryShape),
    hold: hold && {
      ...toApiShape(hold),
      amount: printCredits(hold.amount),
      charged: printCredits(hold.charged),
    },
    refused: refused && { ...toApiShape(refused), settlement: parseOrKeep(refused.settlement) },
    journal: trace && {
      directory: trace.directory,
      is_live: trace.isLive,
      admission: trace.admission && describeAdmission(trace.admission),
      settlement: trace.settlement as JsonObject | null,
    },
    detail: readDetail(found),
  }
}

/** Returns the detail as `GET /v1/logs/{id}` does; null for a row without one. */
function readDetail({ call, detail }: FoundCall) {
  if (call === null || detail === null) return null
  const { request, upstream, gateway, request_note } = printDetail({ ...call, detail })
  return { request, upstream, gateway, request_note }
}

/** Prints amounts as decimals. */
const describeAdmission = ({ estimate, submitted_at, ...call }: Admission) => ({
  ...call,
  submitted_at: new Date(submitted_at).toISOString(),
  estimate: printCredits(BigInt(estimate)),
})

/** Prints what was found, without empty parts. */
function printFound(found: JsonObject): string {
  const known = Object.entries(found).filter(([, value]) => value !== null)
  return printRecord({
    ...Object.fromEntries(known),
    place: PLACES[found.place as Place],
    ...(isObject(found.detail!) && { detail: nameItems(found.detail) }),
  })
}

/** Returns lists of names and values as records. */
const nameItems = (detail: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(detail).map(([group, items]) => [
      group,
      Array.isArray(items) ? Object.fromEntries(items.map(({ k, v }) => [k, v])) : items,
    ]),
  )
