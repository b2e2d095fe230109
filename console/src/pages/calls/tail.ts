/** The calls of an account, or of all, as they end: before the rows of the log. */

import { useMemo, useState } from 'react'
import type { LiveCall, LiveInstallationCall } from '../../../../schemas/management/live.ts'
import { linkTo } from '../../api/client.ts'
import { useKeyNames } from '../../api/key-names.ts'
import { type LiveState, useLive } from '../../api/live.ts'
import { NOT_LOGGED } from './log.tsx'
import type { CallFilters, ShownCall } from './query.ts'

/** Older ones are read from the log. */
const KEPT = 500

interface Tail {
  readonly state: LiveState
  /** Newest first. */
  readonly rows: readonly ShownCall[]
}

interface TailProps {
  /** Undefined: of all accounts. */
  readonly accountId: string | undefined
  readonly filters: CallFilters
  readonly isOn: boolean
  /** Called when calls may be missing, so that the log must be read again. */
  onGap(): void
}

/** What the tail can filter by, and what is no filter of it. */
const TAILED: ReadonlySet<string> = new Set([
  'account_id',
  'channel_id',
  'model',
  'status',
  'key_id',
  'period',
  'order',
])

/** Returns whether the tail can apply all these filters. */
export const canTail = (filters: CallFilters): boolean =>
  filters.order !== 'asc' &&
  Object.entries(filters).every(([name, value]) => value === undefined || TAILED.has(name))

export function useTail({ accountId, filters, isOn, onGap }: TailProps): Tail {
  const [calls, setCalls] = useState<readonly (LiveCall | LiveInstallationCall)[]>([])
  const { account_id, channel_id, key_id, model, status } = filters
  const url =
    accountId === undefined
      ? linkTo('watchAllCalls', { account_id, channel_id, key_id, model, status })
      : linkTo('watchCalls', { account_id: accountId, key_id, model, status })
  const [watched, setWatched] = useState(url)
  if (watched !== url) {
    setWatched(url)
    setCalls([])
  }
  const keys = useKeyNames(isOn && accountId !== undefined)
  const state = useLive(isOn ? url : null, ['call', 'gap'], (name, data) => {
    if (name === 'gap') onGap()
    else setCalls((before) => [data as LiveCall | LiveInstallationCall, ...before].slice(0, KEPT))
  })
  const rows = useMemo(() => {
    const byId = new Map(keys.data?.keys.map((key) => [key.id, key]))
    return calls.map(
      (call): ShownCall => ({
        ...call,
        object: 'log',
        id: NOT_LOGGED,
        key_name: ('key_name' in call ? call.key_name : byId.get(call.key_id)?.name) ?? call.key_id,
        key_prefix: byId.get(call.key_id)?.key_prefix ?? '',
        result_urls: [],
        result_expires_at: null,
      }),
    )
  }, [calls, keys.data])
  return { state, rows }
}
