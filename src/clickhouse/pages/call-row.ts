/** Rows of the table of calls as they are read, and as the call log gives them. */
import {
  COPIED_COLUMNS,
  type ColumnKind,
  type ColumnName,
  CUSTOMER_COLUMNS,
  type FullRow,
  findColumn,
  isNullable,
  type LogRow,
} from '../../../schemas/call-log/columns.ts'

/** Returns the expression that reads a column. */
function printExpression(name: ColumnName): string {
  switch (findColumn(name).kind) {
    case 'instant':
      return `toUnixTimestamp64Milli(${name})`
    case 'credits':
      return `toString(${name})`
    default:
      return name
  }
}

/** An expression has another name than its column, which conditions of the statement name. */
const printAlias = (name: ColumnName): string => (printExpression(name) === name ? name : `read_${name}`)

const printList = (names: readonly ColumnName[]): string =>
  names
    .map((name) => `${printExpression(name)} AS ${printAlias(name)}`.replace(/^(\w+) AS \1$/, '$1'))
    .join(', ')

/** The columns of a page, from any table of calls. */
export const PAGE_COLUMNS = printList(CUSTOMER_COLUMNS)
/** All columns, from `calls`. */
export const FULL_COLUMNS = printList(COPIED_COLUMNS)
/** Column of the table of failed calls with all fields of a page: reading scattered rows costs a third less. */
export const STORED_PAGE_COLUMN = 'page_row'
/**
 * The expression of that column: a JSON array. A migration that adds a column for customers modifies `page_row`; rows from
 * before then have no value at its end.
 */
export const STORED_PAGE_EXPRESSION = `formatRowNoNewline('JSONCompactEachRow', ${CUSTOMER_COLUMNS.map(printExpression).join(', ')})`

/** Values by the names of a list; 64-bit numbers are strings, or numbers when they come from the stored column. */
export type PageRow = Readonly<Record<string, unknown>>

/** Returns the row of `stored`, the value of `page_row`. */
export function parsePageRow(stored: string): PageRow {
  const values = JSON.parse(stored) as unknown[]
  return Object.fromEntries(CUSTOMER_COLUMNS.map((name, at) => [printAlias(name), values[at]]))
}

/** Returns the value of a row from the one that was read. */
const SHOW: Readonly<Record<ColumnKind, (value: unknown) => unknown>> = {
  text: (value) => value,
  count: Number,
  flag: (value) => value,
  instant: (epochMs) => new Date(Number(epochMs)).toISOString(),
  credits: (value) => value,
  links: (value) => value,
  attempts: (value) => (value === '' ? [] : JSON.parse(value as string)),
}

const NULLABLE = new Set(COPIED_COLUMNS.filter(isNullable))

/** Returns the values of the columns. An absent text is empty in the table. */
export const convertValues = (
  row: PageRow,
  names: readonly ColumnName[],
  convert: Readonly<Record<ColumnKind, (value: unknown) => unknown>>,
) =>
  names.map((name) => {
    const value = row[printAlias(name)] ?? null
    const isAbsent = value === null || (value === '' && NULLABLE.has(name))
    return [name, isAbsent ? null : convert[findColumn(name).kind](value)] as const
  })

export const toLogRow = (row: PageRow): LogRow =>
  ({ object: 'log', ...Object.fromEntries(convertValues(row, CUSTOMER_COLUMNS, SHOW)) }) as LogRow

/** Returns a row that was read with `FULL_COLUMNS`. */
export const toFullRow = (row: PageRow): Omit<FullRow, 'booked_at'> =>
  ({ object: 'log', ...Object.fromEntries(convertValues(row, COPIED_COLUMNS, SHOW)) }) as Omit<
    FullRow,
    'booked_at'
  >
