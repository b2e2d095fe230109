/** The note at the top of a call's detail. */
import type { CallDetail } from '../../../schemas/call-log/call-detail.ts'
import type { CallWithDetail } from '../../../schemas/call-log/detail.ts'
import { printCredits } from '../../../schemas/money.ts'

/** Returns a message as a sentence. */
const toSentence = (text: string): string => (/[.!?…]$/.test(text) ? text : `${text}.`)

const printReason = ({ error_message }: CallWithDetail): string =>
  error_message === null || error_message === '' ? '' : ` ${toSentence(error_message)}`

function printCost(call: CallWithDetail): string {
  if (call.cost === '0') return 'It cost nothing.'
  const tokens = `${call.input_tokens} input and ${call.output_tokens} output tokens`
  const how = call.usage_source === 'estimate' ? `, estimated from what was sent and said: ${tokens}` : ''
  return `It cost ${call.cost} credits${how}.`
}

function explainRefusal(call: CallWithDetail, { refused_estimate }: CallDetail): string {
  if ((call.attempts_count ?? 0) > 0)
    return `Refused by the upstream (${call.error_code}):${printReason(call)} It cost nothing.`
  const estimate =
    refused_estimate === undefined
      ? ''
      : ` The estimate was ${printCredits(BigInt(refused_estimate))} credits.`
  return `Refused before any upstream was called (${call.error_code}):${printReason(call)}${estimate} It cost nothing.`
}

function explainInterruption(call: CallWithDetail): string {
  if (call.error_code === 'upstream_timeout') return `Ran into the gateway's time limit. ${printCost(call)}`
  if (call.error_message !== null) return `Interrupted:${printReason(call)} ${printCost(call)}`
  const when = call.ttfb_ms === null ? 'before the answer began' : 'before the answer was complete'
  return `The connection to the client ended ${when}. ${printCost(call)}`
}

function explainFailure(call: CallWithDetail): string {
  const tries = (call.attempts_count ?? 0) > 1 ? ` after ${call.attempts_count} attempts` : ''
  return `Failed${tries} (${call.error_code}):${printReason(call)} ${printCost(call)}`
}

function explainSuccess(call: CallWithDetail): string {
  const attempts = call.attempts_count ?? 0
  const tries = attempts > 1 ? `Answered at attempt ${attempts}, billed once.` : ''
  const usage =
    call.usage_source === 'estimate' ? 'The upstream reported no usage: tokens are estimated.' : ''
  return [tries, usage].filter(Boolean).join(' ')
}

/** Returns the note; empty without one. */
export function explainCall(call: CallWithDetail, detail: CallDetail): string {
  switch (call.status) {
    case 'rejected':
      return explainRefusal(call, detail)
    case 'interrupted':
      return explainInterruption(call)
    case 'error':
      return explainFailure(call)
    case 'success':
      return explainSuccess(call)
  }
}
