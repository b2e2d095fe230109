/** Prints the result of `tollgate logs find` for a person: a heading and a few lines for each topic. */
import type { DetailItem } from '../../../schemas/call-log/detail.ts'
import type { CopyState } from '../../postgres/call-log/find-call.ts'
import { type JsonObject, printable, printRecord, printTable } from '../output.ts'
import type { Found, Place } from './find.ts'
import { unitsText } from './line.ts'

const PLACES: Readonly<Record<Place, string>> = {
  booked: 'booked',
  refused: 'ended, and refused by the books',
  in_journal: 'ended, and in the journal on its way to the books',
  in_flight: 'still going on',
  cut_off: 'cut off with its gateway: the next start books it as interrupted, at no charge',
  task: 'a task that is not booked as a call: its row comes when it settles',
  ledger_only: 'in the ledger alone, without a row: `tollgate wallet verify` says more',
}
const COPY_STATES: Readonly<Record<CopyState, string>> = {
  copied: 'copied',
  copying: 'being copied',
  waiting: 'waits to be copied',
}
const ENTRY_FIELDS = ['id', 'created_at', 'kind', 'amount', 'note']
const ATTEMPT_FIELDS = ['seq', 'created_at', 'latency_ms', 'error_code', 'error_message']
const INDENT = '  '

type Group = readonly [heading: string, text: string]

export function printFound(found: Found): string {
  const groups = [
    ...callerGroup(found),
    ...taskGroup(found),
    ...ending(found),
    ...money(found),
    ...attempts(found),
    ...pipelineGroup(found),
    ...detail(found),
  ]
  return groups.map(([heading, text]) => `${heading}\n${indented(text)}`).join('\n')
}

const indented = (text: string): string => text.replace(/^(?=.)/gm, INDENT)

function callerGroup({ ref, place, account_id, account_name, call, task, journal }: Found): Group[] {
  const known = call ?? journal?.admission
  const what = {
    ref,
    state: PLACES[place],
    ...(call && { id: call.id, request_id: call.request_id }),
    ...(known && { model: known.model, protocol: known.protocol, stream: known.stream }),
    ...(known && { submitted_at: known.submitted_at }),
  }
  const who = {
    account: named(account_id, account_name),
    ...(call && { key: named(call.key_id, call.key_name), key_prefix: call.key_prefix }),
    ...(!call && task && { key: named(task.key_id, task.key_name) }),
    ...(!call && !task && known && { key: known.key_id }),
  }
  return [
    ['What', printRecord(what)],
    ['Who', printRecord(who)],
  ]
}

const named = (id: string | null, name: string | null): string =>
  [id ?? '-', name].filter((part) => part !== null && part !== '').join('  ')

/** Returns the lines of a task; none for a booked call, whose row has all of it. */
function taskGroup({ call, task }: Found): Group[] {
  if (call !== null || task === null) return []
  const { account_id, key_id, key_name, attempts, ...row } = task
  const table = attempts.length === 0 ? '' : printTable(attempts, ATTEMPT_FIELDS)
  return [['Task', `${printRecord(row)}${table}`]]
}

function ending({ call }: Found): Group[] {
  if (call === null) return []
  const { unit_type, unit_count, ...row } = call
  const units: JsonObject = unit_type === null ? {} : { units: unitsText(unit_type, unit_count) }
  return [
    [
      'How it ended',
      printRecord({
        status: row.status,
        ...(row.error_code !== null && { error_code: row.error_code }),
        ...(row.error_message !== null && { error_message: row.error_message }),
        created_at: row.created_at,
        latency_ms: row.latency_ms,
        ttfb_ms: row.ttfb_ms,
      }),
    ],
    [
      'Usage',
      printRecord({
        input_tokens: row.input_tokens,
        cached_tokens: row.cached_tokens,
        cache_write_tokens: row.cache_write_tokens,
        output_tokens: row.output_tokens,
        reasoning_tokens: row.reasoning_tokens,
        server_tool_calls: row.server_tool_calls,
        ...units,
        counted_by: row.usage_source,
      }),
    ],
  ]
}

function money({ call, ledger, hold }: Found): Group[] {
  const amounts: JsonObject = call === null ? {} : costs(call)
  const held = hold && { held: hold.amount, hold_state: hold.state, charged: hold.charged }
  if (call === null && hold === null && ledger.length === 0) return []
  const entries = ledger.length === 0 ? 'no ledger entry\n' : printTable(ledger, ENTRY_FIELDS)
  return [['Money', `${printRecord({ ...amounts, ...held })}${entries}`]]
}

const costs = ({ cost, estimate, upstream_cost }: NonNullable<Found['call']>): JsonObject => ({
  cost,
  estimate,
  ...(upstream_cost !== null && { upstream_cost }),
})

function attempts({ call }: Found): Group[] {
  if (call === null) return []
  const table = call.attempts.length === 0 ? '' : printTable(call.attempts, ATTEMPT_FIELDS)
  return [
    ['Attempts', `${printRecord({ attempts_count: call.attempts_count, channel: call.channel_id })}${table}`],
  ]
}

function pipelineGroup({ call, call_log, refused, journal }: Found): Group[] {
  const groups: Group[] = []
  if (call !== null && call_log !== null)
    groups.push(['Books', printRecord({ booked_at: call.booked_at, call_log: COPY_STATES[call_log] })])
  if (refused !== null)
    groups.push(
      ['Refused', printRecord({ reason: refused.reason, refused_at: refused.refused_at })],
      ['Its settlement', anything(refused.settlement)],
    )
  if (journal !== null) {
    groups.push(['Journal', printRecord({ directory: journal.directory, has_process: journal.is_live })])
    if (journal.settlement !== null) groups.push(['Its settlement', anything(journal.settlement)])
  }
  return groups
}

function detail({ detail: laidOut }: Found): Group[] {
  if (laidOut === null) return []
  const { request, upstream, gateway, request_note } = laidOut
  const lines = (group: readonly DetailItem[]): string =>
    printRecord(Object.fromEntries(group.map(({ k, v }) => [k, v])))
  const groups: Group[] = [
    ['Request', lines(request)],
    ['Upstream', lines(upstream)],
    ['Gateway', lines(gateway)],
    ['Note', request_note === '' ? '' : `${printable(request_note)}\n`],
  ]
  return groups.filter(([, text]) => text !== '')
}

const anything = (value: JsonObject | string | null): string =>
  typeof value === 'object' && value !== null ? printRecord(value) : `${printable(value ?? '-')}\n`
