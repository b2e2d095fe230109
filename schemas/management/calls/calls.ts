/** Operations of the call log. */

import { z } from 'zod'
import { logRow } from '../../call-log/columns.ts'
import { logDetail, shownRefund } from '../../call-log/detail.ts'
import { CALL_VALUES_PER_FIELD } from '../../call-log/page-query.ts'
import { logQuery, windowFields } from '../../call-log/query.ts'
import { LOG_LIMIT_DEFAULT_ROWS, LOG_LIMIT_MAX_ROWS } from '../../call-log/row.ts'
import { CALL_STATUSES } from '../../call-log/words.ts'
import { creditsText } from '../../money.ts'
import { amountText, instantText, operation, timezone, toPageSchema } from '../operation.ts'

const accountId = z.string()
const part = z.string().max(200).optional()
const LOG_FILTERS = logQuery.pick({
  key_id: true,
  period: true,
  model: true,
  status: true,
  unit_type: true,
  error_code: true,
  ref: true,
  session_id: true,
}).shape
const filters = {
  ...LOG_FILTERS,
  ...windowFields,
  model_part: part.describe("Part of the model's id, in any case."),
  key_part: part.describe("Part of the key's name or prefix, in any case."),
  not_model: LOG_FILTERS.model.describe('Not these ids, separated by commas.'),
  not_error_code: LOG_FILTERS.error_code.describe('Not these codes, separated by commas.'),
  cost_above: creditsText.optional().describe('Only calls that cost more than this, in credits.'),
  latency_above_ms: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe('Only calls that took longer than this.'),
}
const page = {
  order: logQuery.shape.order,
  cursor: logQuery.shape.cursor,
  limit: z.coerce.number().int().min(1).max(LOG_LIMIT_MAX_ROWS).default(LOG_LIMIT_DEFAULT_ROWS),
}
const allows = ['owner', 'admin', 'billing', 'member'] as const

export const listCalls = operation('listCalls', {
  summary: 'List calls of an account, with every filter of the call log.',
  details: 'A member of an organization sees only calls made with their own keys.',
  input: z.object({
    account_id: accountId,
    ...filters,
    ...page,
  }),
  answer: {
    name: 'CallPage',
    schema: toPageSchema(logRow).extend({ period_from: instantText, period_to: instantText }),
  },
  scope: 'read',
  allows,
})

/** Facts of a call that only operators may know: its margin among them. */
export const callCosts = z.object({
  channel_id: z.string().nullable().describe('null: no channel was called.'),
  upstream_cost: amountText
    .nullable()
    .describe('What the operator pays; null where the channel has no cost.'),
  margin: amountText.nullable().describe('The charge less upstream_cost.'),
  usage_reported: z
    .string()
    .nullable()
    .describe('The numbers of a report that was not believed, as JSON; null for a usual call.'),
})

export const showCall = operation('showCall', {
  summary: 'Show a call: its attempts, its charge line by line, where its time went.',
  input: z.object({ id: z.coerce.number().int().positive(), account_id: accountId }),
  answer: {
    name: 'CallInDetail',
    schema: z.object({
      call: logRow,
      detail: logDetail,
      refund: shownRefund.nullable(),
      operator: callCosts.optional().describe('For operators and auditors; absent for others.'),
    }),
  },
  scope: 'read',
  allows,
  failures: ['log_not_found'],
})

const series = {
  name: 'CallSeries',
  schema: z.object({
    period_from: instantText,
    period_to: instantText,
    bucket_seconds: z.int(),
    data: z
      .array(
        z.object({
          at: instantText,
          requests: z.int(),
          failed: z.int(),
          by_status: z.record(z.enum(CALL_STATUSES), z.int()),
          cost: amountText,
          latency_p50_ms: z.number().nullable().describe('null: no call succeeded.'),
          latency_p99_ms: z.number().nullable(),
        }),
      )
      .describe('Ascending; a bucket without a call is absent.'),
  }),
} as const

export const seriesOfCalls = operation('seriesOfCalls', {
  summary: 'Count calls, costs and latencies over time, by the same filters as the list.',
  input: z.object({ account_id: accountId, ...filters, timezone }),
  answer: series,
  scope: 'read',
  allows,
})

const window = { period: LOG_FILTERS.period, ...windowFields }
const counted = z.array(z.object({ value: z.string(), calls: z.int() }))
const values = {
  details: `At most ${CALL_VALUES_PER_FIELD} of each, with the number of their calls. Where there are very many, it may be too high.`,
  answer: {
    name: 'CallValues',
    schema: z.object({
      statuses: counted,
      models: counted,
      keys: z.array(z.object({ id: z.string(), name: z.string(), calls: z.int() })),
      error_codes: counted,
      session_ids: counted,
    }),
  },
  scope: 'read',
} as const

export const listCallValues = operation('listCallValues', {
  ...values,
  summary:
    'List what the calls of an account have: statuses, models, keys, error codes and sessions, the most frequent first.',
  input: z.object({ account_id: accountId, key_id: LOG_FILTERS.key_id, ...window }),
  allows,
})

/** Filters of the calls of all accounts. */
const installationFilters = {
  account_id: accountId.optional().describe('Only calls of this account.'),
  channel_id: z.string().optional().describe('Only calls that this channel answered, or failed to.'),
  ...filters,
}

export const listAllCalls = operation('listAllCalls', {
  summary: 'List the calls of all accounts, with every filter of the call log.',
  input: z.object({ ...installationFilters, ...page }),
  answer: {
    name: 'InstallationCallPage',
    schema: toPageSchema(
      logRow.extend({
        account_id: accountId,
        account_name: z.string().nullable(),
        channel_id: z.string().nullable().describe('null: no channel was called.'),
      }),
    ).extend({ period_from: instantText, period_to: instantText }),
  },
  scope: 'read',
  allows: 'operators',
})

export const seriesOfAllCalls = operation('seriesOfAllCalls', {
  summary: 'Count the calls of all accounts over time, by the same filters as the list.',
  input: z.object({ ...installationFilters, timezone }),
  answer: series,
  scope: 'read',
  allows: 'operators',
})

export const listAllCallValues = operation('listAllCallValues', {
  ...values,
  summary: 'List what the calls of all accounts have, the most frequent first.',
  input: z.object({ account_id: installationFilters.account_id, ...window }),
  allows: 'operators',
})
