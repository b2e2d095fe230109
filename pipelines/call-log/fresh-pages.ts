/**
 * Pages of the call log that have a call as soon as its answer has ended. What has ended is booked while ClickHouse
 * answers; then PostgreSQL adds what was booked after the id up to which ClickHouse had every call before it was asked. What
 * is copied meanwhile comes twice, and is kept once by its id.
 */
import type { LogRow } from '../../schemas/call-log/columns.ts'
import type { CallWithDetail } from '../../schemas/call-log/detail.ts'
import type {
  CallPosition,
  InstallationCall,
  InstallationPageQuery,
} from '../../schemas/call-log/page-query.ts'
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
  { order, limit }: InstallationPageQuery,
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

function joinRows<Row extends LogRow>(
  query: InstallationPageQuery,
  added: readonly Row[],
  { rows, hasMore }: { readonly rows: readonly Row[]; readonly hasMore: boolean },
) {
  const joined = joinPages(query, toPosition, added, { items: rows, hasMore })
  return { rows: [...joined.items], hasMore: joined.hasMore }
}

/** Returns what customers see. */
const toLogRow = ({ account_id: _, channel_id: __, ...row }: InstallationCall): LogRow => row

export function openFreshPages({ callLog, database, bookEnded, isAway }: FreshPagesDeps): CallPages {
  const { calls } = database
  const whileAway = async <Found>(instead: Found, read: () => Promise<Found>): Promise<Found> => {
    try {
      return await read()
    } catch (error) {
      if (isAway(error)) return instead
      throw error
    }
  }
  /** Reads a page of the log while what has ended is booked, then the calls that the log does not have yet. */
  const readBoth = async <Found>(query: InstallationPageQuery, read: () => Promise<Found>) => {
    const copiedUpto = await whileAway<bigint | null>(null, () => calls.readCopiedUpto())
    // Later pages go on behind calls that ended before.
    const [page] = await Promise.all([read(), query.after === null ? bookEnded() : null])
    if (copiedUpto === null) return { page, added: [] }
    return {
      page,
      added: await whileAway<InstallationCall[]>([], () => calls.listUncopied(query, copiedUpto)),
    }
  }
  return {
    async findCalls(query, caller) {
      const { page, added } = await readBoth(query, () => callLog.findCalls(query, caller))
      return joinRows<LogRow>(query, added.map(toLogRow), page)
    },
    async findInstallationCalls(query, caller) {
      const { page, added } = await readBoth(query, () => callLog.findInstallationCalls(query, caller))
      return joinRows(query, added, page)
    },
    async listPositions(query, caller) {
      const { page, added } = await readBoth(query, () => callLog.listPositions(query, caller))
      const logged = { items: page.positions, hasMore: page.hasMore }
      const joined = joinPages(query, (place) => place, added.map(toPosition), logged)
      return { positions: joined.items, hasMore: joined.hasMore }
    },
    async findCallsAt({ accountId, positions }, caller) {
      const ids = positions.map(({ id }) => id)
      const added = await whileAway<CallWithDetail[]>([], () => calls.listUncopiedById({ accountId, ids }))
      const rows = await callLog.findCallsAt({ accountId, positions }, caller)
      const byId = new Map<number, LogRow>([...added, ...rows].map((row) => [row.id, row]))
      return ids.flatMap((id) => byId.get(id) ?? [])
    },
    async findCall(query, caller) {
      const { accountId, keyId, id } = query
      const [added] = await whileAway<CallWithDetail[]>([], () =>
        calls.listUncopiedById({ accountId, ids: [id] }),
      )
      if (added === undefined) return callLog.findCall(query, caller)
      return keyId === null || added.key_id === keyId ? added : null
    },
  }
}
