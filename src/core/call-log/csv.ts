/** The call log's rows as CSV. See docs/api-rules.md, "Call log CSV, summary and detail". */
import { CUSTOMER_COLUMNS, findColumn, type LogRow } from '../../../schemas/call-log/columns.ts'
import { type CsvValue, printCsvRecord } from './csv-records.ts'

export const LOG_CSV_COLUMNS = CUSTOMER_COLUMNS.filter((name) => findColumn(name).csv !== null)
const URL_SEPARATOR = '|'

export const LOG_CSV_HEADER = printCsvRecord(LOG_CSV_COLUMNS.map((name) => findColumn(name).csv ?? name))

/** Returns the cells of a row, without its end. */
export const toLogCsvCells = (row: LogRow): CsvValue[] =>
  LOG_CSV_COLUMNS.map((name) => {
    const value = row[name]
    return Array.isArray(value) ? value.join(URL_SEPARATOR) : (value as CsvValue)
  })

export const printLogCsvRecord = (row: LogRow): string => printCsvRecord(toLogCsvCells(row))
