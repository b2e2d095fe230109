/** The calls of an account as they end, in front of those that the log has. */

import { useMemo, useState } from 'react'
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import type { LiveCall } from '../../../../schemas/management/live.ts'
import { linkTo } from '../../api/client.ts'
import { useKeyNames } from '../../api/key-names.ts'
import { type LiveState, useLive } from '../../api/live.ts'
import type { CallFilters } from './filters.tsx'
import { NOT_LOGGED } from './log.tsx'

/** The log has the others. */
const KEPT = 500

interface Tail {
  readonly state: LiveState
  /** The newest first. */
  readonly rows: readonly LogRow[]
}

interface TailProps {
  readonly accountId: string
  readonly filters: CallFilters
  readonly isOn: boolean
  /** Calls are missing: the log must be read again. */
  onGap(): void
}

/** Filters that the tail cannot apply switch it off. */
export const canTail = ({ from, to, ref, unit_type, error_code, session_id, order }: CallFilters): boolean =>
  [from, to, ref, unit_type, error_code, session_id].every((filter) => filter === undefined) &&
  order !== 'asc'

export function useTail({ accountId, filters, isOn, onGap }: TailProps): Tail {
  const [calls, setCalls] = useState<readonly LiveCall[]>([])
  const { key_id, model, status } = filters
  const url = linkTo('watchCalls', { account_id: accountId, key_id, model, status })
  const [watched, setWatched] = useState(url)
  if (watched !== url) {
    setWatched(url)
    setCalls([])
  }
  const keys = useKeyNames()
  const state = useLive(isOn ? url : null, ['call', 'gap'], (name, data) => {
    if (name === 'gap') onGap()
    else setCalls((before) => [data as LiveCall, ...before].slice(0, KEPT))
  })
  const rows = useMemo(() => {
    const byId = new Map(keys.data?.keys.map((key) => [key.id, key]))
    return calls.map(
      (call): LogRow => ({
        ...call,
        object: 'log',
        id: NOT_LOGGED,
        key_name: byId.get(call.key_id)?.name ?? call.key_id,
        key_prefix: byId.get(call.key_id)?.key_prefix ?? '',
        result_urls: [],
        result_expires_at: null,
      }),
    )
  }, [calls, keys.data])
  return { state, rows }
}
