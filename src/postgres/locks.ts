/** Keys of PostgreSQL's advisory locks: one number space a database, shared by every process. */
export const LOCKS = {
  /** Held by the session that applies migrations. */
  migrations: 7_811_000,
  /** Held by the transaction that books; written out in `book_settlements`. */
  booking: 7_811_001,
  /** Held by the session of the one process that copies usage rows. */
  copying: 7_811_002,
  /** Held by the session of the one process that rebuilds the call log; written out in `retirement_obstacle`. */
  rebuilding: 7_811_003,
  /** Held by the transaction that replaces the master key; shared by those that seal with it. */
  masterKey: 7_811_004,
  /** Held by the transaction that makes or retires a partition; written out in `make_next_partition`. */
  partitions: 7_811_005,
} as const
