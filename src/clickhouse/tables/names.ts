/** The tables of the log, and the views that fill those derived from the calls. */

/** Returns the tables: the calls, then those derived from them. Names are written into statements unchanged. */
const namesWith = (suffix: string) => ({
  calls: `calls${suffix}`,
  failed: `calls_failed${suffix}`,
  /** Sums by day, with keys and without. */
  byDay: `calls_by_day${suffix}`,
  byModel: `calls_by_model${suffix}`,
  /** Of the calls with a known upstream cost. */
  costs: `costs_by_day${suffix}`,
})

export type LogNames = ReturnType<typeof namesWith>

export const LIVE_NAMES = namesWith('')
/** A second log beside the live one. */
export const FRESH_NAMES = namesWith('_rebuilt')

export const listTables = (names: LogNames): string[] => Object.values(names)

/** Returns the name of the view that fills a derived table. */
export const nameView = (table: string): string => `${table}_view`

export const listViews = ({ calls, ...derived }: LogNames): string[] => Object.values(derived).map(nameView)
