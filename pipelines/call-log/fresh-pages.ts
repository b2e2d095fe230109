/**
 * Pages of the call log that have a call as soon as its answer has ended. What has ended is booked while the reader waits,
 * and PostgreSQL adds what is booked and not yet in ClickHouse. PostgreSQL is read first: what is copied between the two
 * reads comes twice, and is dropped by its id; the other way around it would be missing.
 */
import type { LogRow } from '../../schemas/call-log/columns.ts'
import type { CallPageQuery, CallPosition } from '../../schemas/call-log/page-query.ts'
import type { CallPages } from '../../src/clickhouse/call-log.ts'
import type { UncopiedCalls } from '../../src/postgres/call-log/repository.ts'

interface FreshPagesDeps {
  readonly callLog: CallPages
  readonly database: { readonly calls: UncopiedCalls }
  /** Resolves when all calls that ended before are booked, or when the time to wait for them is over. */
  readonly bookEnded: () => Promise<void>
  /** PostgreSQL does not answer: the log is read without what it would add. */
  readonly isAway: (error: unknown) => boolean
}

const toPosition = ({ created_at, id }: LogRow): CallPosition => ({ createdAt: Date.parse(created_at), id })

interface Page<Item> {
  readonly items: readonly Item[]
  readonly hasMore: boolean
}

/** Joins two pages that answer the same query into one, in its order. */
function joinPages<Item>(
  { order, limit }: CallPageQuery,
  toPlace: (item: Item) => CallPosition,
  added: readonly Item[],
  page: Page<Item>,
): Page<Item> {
  if (added.length === 0) return page
  const byId = new Map([...added, ...page.items].map((item) => [toPlace(item).id, item]))
  const sign = order === 'asc' ? 1 : -1
  const items = [...byId.values()].sort((one, other) => {
    const [a, b] = [toPlace(one), toPlace(other)]
    return sign * (a.createdAt - b.createdAt || a.id - b.id)
  })
  return { items: items.slice(0, limit), hasMore: page.hasMore || items.length > limit }
}

export function openFreshPages({ callLog, database, bookEnded, isAway }: FreshPagesDeps): CallPages {
  const { calls } = database
  const readAdded = async <Row>(read: () => Promise<Row[]>): Promise<Row[]> => {
    try {
      return await read()
    } catch (error) {
      if (isAway(error)) return []
      throw error
    }
  }
  const listAdded = async (query: CallPageQuery): Promise<LogRow[]> => {
    // Later pages go on behind calls that ended before.
    if (query.after === null) await bookEnded()
    return readAdded(() => calls.listUncopied(query))
  }
  return {
    async findCalls(query, caller) {
      const added = await listAdded(query)
      const { rows, hasMore } = await callLog.findCalls(query, caller)
      const page = joinPages(query, toPosition, added, { items: rows, hasMore })
      return { rows: [...page.items], hasMore: page.hasMore }
    },
    async listPositions(query, caller) {
      const added = await listAdded(query)
      const { positions, hasMore } = await callLog.listPositions(query, caller)
      const page = joinPages(query, (place) => place, added.map(toPosition), { items: positions, hasMore })
      return { positions: page.items, hasMore: page.hasMore }
    },
    async findCallsAt({ accountId, positions }, caller) {
      const ids = positions.map(({ id }) => id)
      const added = await readAdded(() => calls.listUncopiedById({ accountId, ids }))
      const rows = await callLog.findCallsAt({ accountId, positions }, caller)
      const byId = new Map<number, LogRow>([...added, ...rows].map((row) => [row.id, row]))
      return ids.flatMap((id) => byId.get(id) ?? [])
    },
    async findCall(query, caller) {
      const { accountId, keyId, id } = query
      const [added] = await readAdded(() => calls.listUncopiedById({ accountId, ids: [id] }))
      if (added === undefined) return callLog.findCall(query, caller)
      return keyId === null || added.key_id === keyId ? added : null
    },
  }
}
