/** The call log's rows as CSV. See docs/api-rules.md, "Call log CSV". */
import { type LogRow, logRow } from '../../../schemas/call-log/row.ts'
import { csvRecord } from './csv-records.ts'

/** Every row is a log, and attempts are a list: neither is a column. */
const COLUMNS = logRow.keyof().exclude(['object', 'attempts']).options
type Column = (typeof COLUMNS)[number]

const URL_SEPARATOR = '|'

const heading = (column: Column): string => (column === 'cost' ? 'cost_usd' : column)
const content = (row: LogRow, column: Column) =>
  column === 'result_urls' ? row.result_urls.join(URL_SEPARATOR) : row[column]

export const LOG_CSV_HEADER = csvRecord(COLUMNS.map(heading))

export const logCsvRecord = (row: LogRow): string => csvRecord(COLUMNS.map((column) => content(row, column)))
