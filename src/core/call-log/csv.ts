/** The call log's rows as CSV. See docs/api-rules.md, "Call log CSV". */
import type { LogRow } from '../../../schemas/call-log/row.ts'
import { csvRecord } from './csv-records.ts'

type Column = Exclude<keyof LogRow, 'object' | 'attempts'>

/** Every row is a log, and attempts are a list: neither is a column. All others are, which the type checks. */
const POSITIONS: Readonly<Record<Column, true>> = {
  id: true,
  created_at: true,
  submitted_at: true,
  key_id: true,
  key_name: true,
  key_prefix: true,
  model: true,
  status: true,
  error_code: true,
  error_message: true,
  input_tokens: true,
  output_tokens: true,
  cached_tokens: true,
  cache_write_tokens: true,
  reasoning_tokens: true,
  server_tool_calls: true,
  unit_count: true,
  unit_type: true,
  cost: true,
  latency_ms: true,
  request_id: true,
  task_id: true,
  result_urls: true,
  result_expires_at: true,
  attempts_count: true,
  call_count: true,
}
const COLUMNS = Object.keys(POSITIONS) as Column[]

const URL_SEPARATOR = '|'

const heading = (column: Column): string => (column === 'cost' ? 'cost_usd' : column)
const content = (row: LogRow, column: Column) =>
  column === 'result_urls' ? row.result_urls.join(URL_SEPARATOR) : row[column]

export const LOG_CSV_HEADER = csvRecord(COLUMNS.map(heading))

export const logCsvRecord = (row: LogRow): string => csvRecord(COLUMNS.map((column) => content(row, column)))
