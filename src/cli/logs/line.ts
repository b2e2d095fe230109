/** A call as one line of `tollgate logs tail`. */
import type { CallStatus } from '../../../schemas/call-log/row.ts'
import { shortened } from '../../core/json/cut.ts'
import type { OperatorCall } from '../../postgres/call-log/calls.ts'
import { makePainter, printable } from '../output.ts'

const STATUS_COLOURS = {
  success: 'green',
  error: 'red',
  interrupted: 'yellow',
  rejected: 'magenta',
} as const satisfies Record<CallStatus, string>
const GAP = '  '
const STATUS_CHARS = 'interrupted'.length
/** Most models' names; a longer one moves its own line. */
const MODEL_CHARS = 20
/** An error's message is cut here; `logs find` has all of it. */
export const MESSAGE_MAX_CHARS = 200

/** Returns `2026-01-31 23:59:59.999`, in UTC. */
const printTime = (instant: string): string => instant.replace('T', ' ').replace('Z', '')

/** Returns `video × 5`: the units of one type can be pieces or seconds, as the model is priced. */
const printUnits = (type: string, count: string | null): string => `${type} × ${count ?? '?'}`

function printUsage({ unit_count, unit_type, ...call }: OperatorCall): string {
  if (unit_type !== null) return printUnits(unit_type, unit_count)
  const cached = call.cached_tokens > 0 ? ` (${call.cached_tokens} cached)` : ''
  return `in ${call.input_tokens}${cached} out ${call.output_tokens}`
}

function printTimes({ latency_ms, ttfb_ms }: OperatorCall): string {
  return ttfb_ms === null ? `${latency_ms} ms` : `${latency_ms} ms, first byte ${ttfb_ms}`
}

function printError({ error_code, error_message }: OperatorCall): string {
  const text = [error_code, error_message].filter((part) => part !== null).join(': ')
  return shortened(text, MESSAGE_MAX_CHARS)
}

/** Ends with a newline. Parts that a call does not have are left out. */
export function printCall(call: OperatorCall, isColoured: boolean): string {
  const paint = makePainter(isColoured)
  const statusColour = STATUS_COLOURS[call.status]
  const parts = [
    paint('dim', printTime(call.created_at)),
    paint(statusColour, call.status.padEnd(STATUS_CHARS)),
    printable(call.account_id),
    printable(call.key_prefix || call.key_id),
    printable(call.model || '-').padEnd(MODEL_CHARS),
    printable(printUsage(call)),
    `${call.cost} credits`,
    printTimes(call),
    call.call_count > 1 ? `${call.call_count} calls` : '',
    (call.attempts_count ?? 0) > 1
      ? paint(STATUS_COLOURS.interrupted, `${call.attempts_count} attempts`)
      : '',
    paint(statusColour, printable(printError(call))),
    paint('dim', printable(call.request_id)),
  ]
  return `${parts.filter((part) => part !== '').join(GAP)}\n`
}
