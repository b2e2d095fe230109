/** Prints for `wallet verify` how the calls of the last day were metered. Empty without anomalies. */
import { printCredits } from '../../../schemas/money.ts'
import type { MeteringReport } from '../../postgres/metering.ts'
import { type JsonObject, printTable } from '../output.ts'

const PERCENT = 100
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

const groupsOf = ({ groups }: MeteringReport): JsonObject[] =>
  groups.map(({ otherModel, ...group }) => ({
    ...group,
    estimated_percent: Math.round((group.estimated / group.calls) * PERCENT),
    other_model: otherModel,
  }))

const balancesOf = ({ negative }: MeteringReport): JsonObject[] =>
  negative.map(({ account_id, balance }) => ({ account_id, balance: printCredits(balance) }))

export function meteringShape(report: MeteringReport): JsonObject {
  const [metered, negative] = [groupsOf(report), balancesOf(report)]
  return {
    ...(metered.length > 0 && { metered_last_day: metered }),
    ...(negative.length > 0 && { negative_balances: negative }),
  }
}

export function printMetering(report: MeteringReport): string {
  const [metered, negative] = [groupsOf(report), balancesOf(report)]
  const calls =
    metered.length === 0
      ? ''
      : `\nEstimated, suspect and otherwise answered calls of the last day:\n${printTable(metered, GROUP_FIELDS)}`
  if (negative.length === 0) return calls
  return `${calls}\nNegative balances:\n${printTable(negative, ['account_id', 'balance'])}`
}
