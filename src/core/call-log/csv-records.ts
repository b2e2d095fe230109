/**
 * Writes records of CSV (RFC 4180) with cells that a spreadsheet does not read as formulas. See docs/api-rules.md,
 * "Call log CSV, summary and detail".
 */

export type CsvValue = string | number | null

/** Characters at which a spreadsheet begins a formula. */
const FORMULA_BEGIN = /^[=+\-@\t\r]/
const NUMBER = /^-?\d+(?:\.\d+)?$/
const SPECIAL = /[",\r\n]/

function printCell(value: CsvValue): string {
  const text = value === null ? '' : String(value)
  const harmless = FORMULA_BEGIN.test(text) && !NUMBER.test(text) ? `'${text}` : text
  return SPECIAL.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/** Returns one line with its end; null is an empty cell. */
export const printCsvRecord = (values: readonly CsvValue[]): string =>
  `${values.map(printCell).join(',')}\r\n`
