/** Prints for `wallet verify` how the calls of the last day were metered. Empty without anomalies. */
import type { Verified } from '../../../schemas/management/jobs.ts'
import { printTable } from '../output.ts'

const GROUP_FIELDS = [
  'account_id',
  'model',
  'channel_id',
  'calls',
  'estimated',
  'estimated_percent',
  'suspect',
  'other_model',
]

export function printMetering({ metered_last_day: metered, negative_balances: negative }: Verified): string {
  const calls =
    metered === undefined
      ? ''
      : `\nEstimated, suspect and otherwise answered calls of the last day:\n${printTable(metered, GROUP_FIELDS)}`
  if (negative === undefined) return calls
  return `${calls}\nNegative balances:\n${printTable(negative, ['account_id', 'balance'])}`
}
