/** The time to which a list is limited. */
import type { Queryable } from './connection.ts'

/** An absent bound limits nothing. */
export interface TimeRange<Time = Date> {
  readonly since?: Time | null | undefined
  /** Not included. */
  readonly until?: Time | null | undefined
}

/** Narrows a query to rows whose column is in the range. */
export const inRange = (sql: Queryable, column: string, { since, until }: TimeRange<Date | number>) => sql`
  ${since == null ? sql`` : sql`AND ${sql(column)} >= ${since}`}
  ${until == null ? sql`` : sql`AND ${sql(column)} < ${until}`}`
