/** Takes old months away. The function `retire_partition` does the work, and writes what replaces them. */
import { readVerified } from '../billing/verified.ts'
import { verifyWallets } from '../billing/verify.ts'
import type { Queryable, Sql } from '../connection.ts'
import { type PartitionedTable, untilLocked } from './make.ts'

export interface Retention {
  /** Full months to keep besides the current one; null: all. */
  readonly months: Readonly<Record<PartitionedTable, number | null>>
  /** Leaves a month as a table. */
  readonly detaches: boolean
}

interface Retired {
  readonly name: string
  readonly rows: bigint
}

export interface RetirementReport {
  readonly retired: readonly Retired[]
  /** Partitions that have to wait, with the reason. */
  readonly waiting: readonly { readonly name: string; readonly reason: string }[]
}

interface RetiredRow {
  readonly name: string | null
  readonly row_count: bigint | null
  readonly obstacle: string | null
}

/** Returns the instant at which the oldest month to keep begins. */
const findKeptFrom = (now: Date, months: number): Date =>
  new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months))

/** An audit of everything that is not older has read what is taken away. */
const FULL_AUDIT_MS = 24 * 60 * 60 * 1000

/**
 * Takes away the months beyond the retention, the oldest first, after an audit: where that finds a difference, nothing is
 * taken away. It reads everything, unless another one has on the day before.
 */
export async function retirePartitions(sql: Sql, { months, detaches }: Retention): Promise<RetirementReport> {
  const now = new Date()
  const due: { table: PartitionedTable; before: Date; names: string[] }[] = []
  for (const [table, kept] of Object.entries(months) as [PartitionedTable, number | null][]) {
    if (kept === null) continue
    const before = findKeptFrom(now, kept)
    const rows = await sql<{ name: string }[]>`
      SELECT name FROM partitions WHERE table_name = ${table} AND state = 'attached' AND ends_at <= ${before}`
    if (rows.length > 0) due.push({ table, before, names: rows.map(({ name }) => name) })
  }
  if (due.length === 0) return { retired: [], waiting: [] }
  const audited = await readVerified(sql)
  const isIncremental = audited !== null && Date.now() - audited.fullAt.getTime() < FULL_AUDIT_MS
  const { ok } = await verifyWallets(sql, undefined, { isIncremental })
  if (!ok) {
    const reason = 'the books differ: run `tollgate wallet verify --full`'
    return { retired: [], waiting: due.flatMap(({ names }) => names.map((name) => ({ name, reason }))) }
  }
  const retired: Retired[] = []
  const waiting: { name: string; reason: string }[] = []
  for (const { table, before } of due) {
    for (;;) {
      const [row] = await untilLocked(
        async () => sql<[RetiredRow]>`SELECT * FROM retire_partition(${table}, ${before}, ${detaches})`,
      )
      if (row.name === null) break
      if (row.obstacle !== null) {
        waiting.push({ name: row.name, reason: row.obstacle })
        break
      }
      retired.push({ name: row.name, rows: row.row_count ?? 0n })
    }
  }
  return { retired, waiting }
}

export interface Partition {
  readonly name: string
  readonly table: PartitionedTable
  /** Null: from the beginning. */
  readonly startsAt: Date | null
  readonly endsAt: Date
  readonly state: 'attached' | 'detached' | 'dropped'
  /** An estimate while it is attached. */
  readonly rows: bigint
  /** Bytes with its indexes; 0 once it is gone. */
  readonly bytes: bigint
  readonly retiredAt: Date | null
}

/** Lists partitions by table, the newest first. */
export async function listPartitions(sql: Queryable): Promise<Partition[]> {
  const rows = await sql<Partition[]>`
    SELECT p.name, p.table_name AS table, p.starts_at AS "startsAt", p.ends_at AS "endsAt", p.state,
      coalesce(p.row_count, greatest(c.reltuples, 0)::bigint, 0) AS rows,
      coalesce(pg_total_relation_size(c.oid), 0) AS bytes, p.retired_at AS "retiredAt"
    FROM partitions AS p LEFT JOIN pg_class AS c ON c.oid = to_regclass(p.name)
    ORDER BY p.table_name, p.ends_at DESC`
  return [...rows]
}
