/** The file that calls are exported into. */
import { LOG_CSV_COLUMNS, toLogCsvCells } from '../../../../src/core/call-log/csv.ts'
import { printCsvRecord } from '../../../../src/core/call-log/csv-records.ts'
import type { ShownCall } from './query.ts'

const HEADER = LOG_CSV_COLUMNS.map((name) => (name === 'cost' ? 'cost_credits' : name))

export const CALLS_CSV = {
  header: printCsvRecord(HEADER),
  toRecord: (call: ShownCall) => printCsvRecord(toLogCsvCells(call)),
}

export const ALL_CALLS_CSV = {
  header: printCsvRecord(['account_id', 'account_name', 'channel_id', ...HEADER]),
  toRecord: (call: ShownCall) => {
    const { account_id = null, account_name = null, channel_id = null } = call
    return printCsvRecord([account_id, account_name, channel_id, ...toLogCsvCells(call)])
  },
}
