/** The call log of an account. */
import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useEffect, useMemo, useRef } from 'react'
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import { LOG_CSV_HEADER, printLogCsvRecord } from '../../../../src/core/call-log/csv.ts'
import { useKeyNames } from '../../api/key-names.ts'
import { useGet, useList } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Drawer } from '../../ui/dialog.tsx'
import { EmptyState, PageHeader, Panel, QueryState } from '../../ui/states.tsx'
import { NONE } from '../../ui/text.tsx'
import { CsvExport } from '../csv-export.tsx'
import { FirstCall } from '../first-call/first-call.tsx'
import { SavedViews } from '../saved-views.tsx'
import { Charts } from './charts.tsx'
import { CallDetail } from './detail.tsx'
import { describeStatuses, Filters, toCallQuery } from './filters.tsx'
import { Log, NOT_LOGGED } from './log.tsx'
import { canTail, useTail } from './tail.ts'

const PAGE_ROWS = 100

const route = getRouteApi('/signed-in/calls')

/** Opens the next call with j and the previous one with k, while one is open. */
function useSteps(isOpen: boolean, step: (by: 1 | -1) => void): void {
  const latest = useRef(step)
  latest.current = step
  useEffect(() => {
    if (!isOpen) return
    const onKey = ({ key, target, ctrlKey, metaKey, altKey }: KeyboardEvent) => {
      if (ctrlKey || metaKey || altKey) return
      if (target instanceof Element && target.closest('input, textarea, select') !== null) return
      if (key === 'j') latest.current(1)
      if (key === 'k') latest.current(-1)
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [isOpen])
}

interface CallDrawerProps {
  readonly accountId: string
  readonly id: string | undefined
  /** The rows of the page, in their order. */
  readonly rows: readonly LogRow[]
}

/** A call in full, with the way to its neighbors in the list. */
function CallDrawer({ accountId, id, rows }: CallDrawerProps) {
  const change = useChangeSearch()
  const isOpen = id !== undefined
  const logged = rows.filter((row) => row.id !== NOT_LOGGED)
  const at = logged.findIndex((row) => String(row.id) === id)
  const { data } = useGet('showCall', { id: Number(id), account_id: accountId }, { enabled: isOpen })
  const call = logged[at] ?? data?.call
  const find = (by: 1 | -1) => (at === -1 ? undefined : logged[at + by])
  const step = (by: 1 | -1) => {
    const next = find(by)
    if (next !== undefined) change({ call: String(next.id) }, { isReplaced: true })
  }
  useSteps(isOpen, step)
  const title =
    call === undefined
      ? t('Call')
      : t('Call · {model} · {status}', {
          model: call.model || NONE,
          status: describeStatuses()[call.status][1],
        })
  return (
    <Drawer title={title} isOpen={isOpen} onClose={() => change({ call: undefined })}>
      {at !== -1 && (
        <div className="flex gap-2">
          <Button aria-keyshortcuts="k" disabled={find(-1) === undefined} onClick={() => step(-1)}>
            {t('Previous')} <kbd className="ml-1 text-quiet text-xs">k</kbd>
          </Button>
          <Button aria-keyshortcuts="j" disabled={find(1) === undefined} onClick={() => step(1)}>
            {t('Next')} <kbd className="ml-1 text-quiet text-xs">j</kbd>
          </Button>
        </div>
      )}
      {isOpen && <CallDetail key={id} accountId={accountId} id={id} />}
    </Drawer>
  )
}

export function Calls() {
  const { account_id: accountId } = useAccount()
  const { call, live, account: _, ...filters } = route.useSearch()
  const query = toCallQuery(filters)
  const list = useList('listCalls', { account_id: accountId, limit: PAGE_ROWS, ...query } as never)
  const keys = useKeyNames()
  const keyNames = useMemo(() => new Map(keys.data?.keys.map(({ id, name }) => [id, name])), [keys.data])
  const { fetchNextPage } = list
  const isTailed = live !== undefined && canTail(filters)
  const tail = useTail({ accountId, filters, isOn: isTailed, onGap: () => void list.refetch() })
  const rows = useMemo(() => {
    if (!isTailed) return list.rows
    const logged = new Set(list.rows.map(({ request_id }) => request_id))
    return [...tail.rows.filter(({ request_id }) => !logged.has(request_id)), ...list.rows]
  }, [isTailed, tail.rows, list.rows])
  const change = useChangeSearch()
  const more = useCallback(() => void fetchNextPage(), [fetchNextPage])
  return (
    <>
      <PageHeader
        title={t('Calls')}
        description={t('Every call of the account, newest first, with what it cost and why.')}
        actions={
          <>
            <Button
              aria-pressed={isTailed}
              kind={isTailed ? 'primary' : 'plain'}
              disabled={!canTail(filters)}
              onClick={() => change({ live: live === undefined ? 'on' : undefined })}
            >
              {isTailed && tail.state === 'lost' ? t('Connection lost, trying again') : t('Live')}
            </Button>
            <CsvExport
              name="calls"
              operation="listCalls"
              input={{ account_id: accountId, ...query } as never}
              header={LOG_CSV_HEADER}
              toRecord={printLogCsvRecord}
            />
          </>
        }
      />
      <SavedViews page="calls" filters={{ ...filters }} />
      <Filters filters={filters} keyNames={keyNames} rows={rows} />
      {/* On a small screen the table comes first. */}
      <div className="flex flex-col gap-4 lg:flex-col-reverse">
        <Panel>
          <QueryState query={list} rows={12} />
          {list.isSuccess && rows.length === 0 && (
            <EmptyState title={t('No calls match.')}>
              <FirstCall accountId={accountId} isAwaited={false} />
            </EmptyState>
          )}
          {rows.length > 0 && (
            <Log rows={rows} hasMore={list.hasNextPage} isLoading={list.isFetchingNextPage} onEnd={more} />
          )}
        </Panel>
        {list.isSuccess && rows.length === 0 ? null : (
          <Charts isReady={!list.isPending} accountId={accountId} filters={filters} />
        )}
      </div>
      <CallDrawer accountId={accountId} id={call} rows={rows} />
    </>
  )
}
