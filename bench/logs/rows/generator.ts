/**
 * The rows of the bench as one SELECT of ClickHouse. A row depends only on its number and the seed, so any range can be
 * generated at any time. PostgreSQL's table comes from the same statement.
 */
import { drawOne, instant, lower, numbers, texts, ulid, upper } from './draws.ts'
import {
  type Account,
  END_MS,
  ERRORS,
  KEY_NAMES,
  KEY_STEM_CHARS,
  MODELS,
  REFUSALS,
  START_MS,
  STATUS_SHARES,
  TIMEOUT,
} from './population.ts'
import { ATTEMPTS, DETAIL } from './texts.ts'

export interface RowsWanted {
  readonly seed: number
  readonly accounts: readonly Account[]
  /** Rows in all: they end evenly over the two years, in the order of their ids, which count from 1. */
  readonly total: number
  /** The range of row numbers from 0, without `to`. */
  readonly from: number
  readonly to: number
  /** None of these rows ends at this instant (epoch milliseconds) or after it. */
  readonly before: number
}

/** The largest deviation of booking order from the order of ends. */
const DISORDER_MS = 1_500
const RESULT_LIFETIME_MS = 72 * 60 * 60 * 1000
const DRAWS_A_ROW = 8
/** 2^32 by the golden ratio: the draws' seeds differ in many bits. */
const DRAW_STEP = 0x9e3779b1

/** Returns the number of the first row that ends at an instant (epoch milliseconds) or later. */
export const rowAt = (ms: number, total: number): number =>
  Math.max(0, Math.min(total, Math.ceil(((ms - START_MS) * total) / (END_MS - START_MS))))

const toShares = (all: readonly { readonly share: number }[]): number[] => all.map(({ share }) => share)

const CODES = [...ERRORS, ...REFUSALS, TIMEOUT]
const TIMEOUT_NUMBER = CODES.length

/** How the call ended: `status`, and `e`, the number of its error code, 0 for none. */
const ENDING = (() => {
  const { success, error, interrupted } = STATUS_SHARES
  return `
    ${lower('d3')} AS ending,
    multiIf(ending < ${success}, 'success', ending < ${success + error}, 'error',
            ending < ${success + error + interrupted}, 'interrupted', 'rejected') AS status,
    multiIf(status = 'error', ${drawOne(toShares(ERRORS), 'd7')},
            status = 'rejected', ${ERRORS.length} + ${drawOne(toShares(REFUSALS), 'd7')},
            status = 'interrupted' AND ${upper('d3')} < ${TIMEOUT.share}, ${TIMEOUT_NUMBER}, 0) AS e`
})()

const LATENCY_MS = `
  multiIf(status = 'rejected', toUInt64(1 + d4 % 12),
          is_media, toUInt64(3000 + 60000 * ${lower('d4')} * ${lower('d4')}),
          toUInt64(exp(5.6 + 3.6 * ${lower('d4')} * ${upper('d4')} + 1.6 * ${lower('d5')})))`

/** The source of a row's columns: draws, account, model, end and time. */
const facts = ({ seed, accounts, total, from, to, before }: RowsWanted): string => {
  const draws = Array.from(
    { length: DRAWS_A_ROW },
    (_, draw) => `intHash64(bitXor(d0, ${(draw + 1) * DRAW_STEP})) AS d${draw + 1}`,
  )
  return `
    SELECT
      number + 1 AS id,
      cityHash64(number, ${seed}) AS d0, ${draws.join(', ')},
      ${drawOne(toShares(accounts), 'd1')} AS rank,
      ${drawOne(toShares(MODELS), 'd2')} AS m,
      ${ENDING},
      ${texts(MODELS.map(({ unit }) => unit?.type ?? ''))}[m] AS unit_type,
      unit_type != '' AS is_media,
      status = 'success' OR (status = 'interrupted' AND NOT is_media) AS is_charged,
      ${LATENCY_MS} AS latency_ms,
      toInt64(intDiv(number * ${END_MS - START_MS}, ${total})) + toInt64(d6 % ${DISORDER_MS}) AS offset_ms,
      least(${START_MS} + offset_ms, ${before - 1}) AS created_ms,
      created_ms - toInt64(latency_ms) AS submitted_ms
    FROM numbers(${from}, ${to - from})`
}

const prices = (kind: 'inputPrice' | 'outputPrice'): string => numbers(MODELS.map((model) => model[kind]))

const AMOUNTS = `
  multiIf(is_media OR NOT is_charged, 0, toUInt64(exp(3.5 + 6 * ${lower('d4')}))) AS input_tokens,
  multiIf(is_media OR NOT is_charged, 0, toUInt64(exp(3 + 4.5 * ${lower('d5')}))) AS output_tokens,
  if(${upper('d5')} < 0.3, toUInt64(input_tokens * ${upper('d4')}), 0) AS cached_tokens,
  if(d7 % 12 = 0, intDiv(output_tokens, 2), 0) AS reasoning_tokens,
  if(is_media AND is_charged, toString(1 + d5 % 4), '') AS unit_count,
  toDecimal64(multiIf(NOT is_charged, 0.,
    is_media, toUInt8OrZero(unit_count) * ${prices('inputPrice')}[m] / 1e6,
    (input_tokens * ${prices('inputPrice')}[m] + output_tokens * ${prices('outputPrice')}[m]) / 1e6), 8) AS cost,
  toDecimal64(if(status = 'rejected', 0., 0.02 + ${lower('d8')}), 8) AS estimate`

/** The columns of the call log by name, in any order. */
export const rowsSql = (wanted: RowsWanted): string => {
  const { accounts } = wanted
  const codes = texts(['', ...CODES.map(({ code }) => code)])
  const messages = texts(['', ...CODES.map(({ message }) => message)])
  const unitTexts = (field: 'taskPrefix' | 'extension') =>
    texts(MODELS.map(({ unit }) => unit?.[field] ?? ''))
  return `
    SELECT
      id, status, unit_type, latency_ms, ${AMOUNTS},
      ${texts(accounts.map(({ id }) => id))}[rank] AS account_id,
      ${instant('created_ms')} AS created_at,
      ${instant('submitted_ms')} AS submitted_at,
      toUInt32(${numbers(accounts.map(({ keys }) => keys))}[rank] * ${upper('d6')} * ${upper('d6')}) AS key_number,
      concat('key_', substring(account_id, 5, ${KEY_STEM_CHARS}), leftPad(toString(key_number), 3, '0')) AS key_id,
      ${texts(KEY_NAMES)}[1 + key_number % ${KEY_NAMES.length}] AS key_name,
      concat('sk-tollgate-', leftPad(lower(hex(toUInt32(cityHash64(key_id)))), 8, '0')) AS key_prefix,
      ${texts(MODELS.map(({ id }) => id))}[m] AS model,
      ${texts(['chat-completions', 'chat-completions', 'messages', 'responses', 'generate-content'])}[1 + d8 % 5] AS protocol,
      NOT is_media AND d6 % 100 < 60 AS stream,
      ${codes}[1 + e] AS error_code,
      ${messages}[1 + e] AS error_message,
      toUInt64(0) AS cache_write_tokens,
      toUInt64(0) AS server_tool_calls,
      if(is_charged, 'upstream', 'none') AS usage_source,
      if(status IN ('success', 'interrupted'), intDiv(latency_ms, 4), NULL) AS ttfb_ms,
      if(status = 'rejected', '', ${texts(['first', 'second', 'third'])}[1 + d5 % 3]) AS channel_id,
      concat('req_', ${ulid('submitted_ms', 'd7', 'd8')}) AS request_id,
      if(is_media AND status != 'rejected', concat(${unitTexts('taskPrefix')}[m], '_', ${ulid('submitted_ms', 'd8', 'd1')}), '') AS task_id,
      is_media AND status = 'success' AS has_result,
      if(has_result, [concat('https://files.example.com/results/', task_id, '.', ${unitTexts('extension')}[m])], []) AS result_urls,
      if(has_result, ${instant(`created_ms + ${RESULT_LIFETIME_MS}`)}, NULL) AS result_expires_at,
      toUInt32(multiIf(status = 'rejected', 0, status = 'success' AND d1 % 40 = 0, 2, 1)) AS attempts_count,
      ${ATTEMPTS} AS attempts,
      ${DETAIL} AS detail
    FROM (${facts(wanted)})`
}

/** The columns of the call log, all of which `rowsSql` has. */
export const COLUMNS = [
  'id',
  'account_id',
  'created_at',
  'submitted_at',
  'key_id',
  'key_name',
  'key_prefix',
  'model',
  'protocol',
  'stream',
  'status',
  'error_code',
  'error_message',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'server_tool_calls',
  'unit_count',
  'unit_type',
  'cost',
  'estimate',
  'usage_source',
  'latency_ms',
  'ttfb_ms',
  'channel_id',
  'request_id',
  'task_id',
  'result_urls',
  'result_expires_at',
  'attempts_count',
  'attempts',
  'detail',
] as const
