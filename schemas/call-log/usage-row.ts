/**
 * A usage row as text, on its way from PostgreSQL, which prints it, to the call log in ClickHouse, which reads it; what
 * lies between reads nothing but the month. A row is a line, its columns are parted by tabs; `\N` is null, and a
 * backslash escapes as in PostgreSQL's COPY, which ClickHouse's TabSeparated understands. A list is `['a','b']`. The
 * columns are `COPIED_COLUMNS`. Instants are `2026-01-31 23:59:59.999` in UTC, amounts decimal credits; absent texts are
 * empty, other absent values null.
 */

/** The first and the last instant (epoch milliseconds) that the log holds; others are taken for the nearer of them. */
export const FIRST_LOG_INSTANT_MS = 0
export const LAST_LOG_INSTANT_MS = Date.UTC(2299, 0, 1)

/** Rows that are copied into the log at once, at most. */
export const MAX_RANGE_ROWS = 20_000
