/** The call log of an account. */
import { getRouteApi } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useMemo, useRef } from 'react'
import { useKeyNames } from '../../api/key-names.ts'
import { useList } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { useShortcuts } from '../../ui/shortcuts.ts'
import { EmptyState, PageHeader, Panel, QueryState } from '../../ui/states.tsx'
import { CsvExport } from '../csv-export.tsx'
import { SavedViews } from '../saved-views.tsx'
import { Filters } from './filters.tsx'
import { Log, NOT_LOGGED } from './log.tsx'
import { toCallQuery, toListInput } from './query.ts'
import { canTail, useTail } from './tail.ts'

// What the first sight of the calls does not need comes after it.
const Charts = lazy(async () => ({ default: (await import('./charts.tsx')).Charts }))
const CallDrawer = lazy(async () => ({ default: (await import('./drawer.tsx')).CallDrawer }))
const FirstCall = lazy(async () => ({ default: (await import('../first-call/first-call.tsx')).FirstCall }))

/** So that the rows do not move when the charts come. */
const CHARTS_SPACE = <div className="h-65" />

const loadCsvFormat = async () => {
  const { LOG_CSV_HEADER, printLogCsvRecord } = await import('../../../../src/core/call-log/csv.ts')
  return { header: LOG_CSV_HEADER, toRecord: printLogCsvRecord }
}

const route = getRouteApi('/signed-in/calls')

export function Calls() {
  const { account_id: accountId } = useAccount()
  const { call, live, account: _, ...filters } = route.useSearch()
  const list = useList('listCalls', toListInput(accountId, filters))
  const keys = useKeyNames(filters.key_id !== undefined)
  const idNames = useMemo(() => new Map(keys.data?.keys.map(({ id, name }) => [id, name])), [keys.data])
  const { fetchNextPage } = list
  const isTailed = live !== undefined && canTail(filters)
  const tail = useTail({ accountId, filters, isOn: isTailed, onGap: () => void list.refetch() })
  const rows = useMemo(() => {
    if (!isTailed) return list.rows
    const logged = new Set(list.rows.map(({ request_id }) => request_id))
    return [...tail.rows.filter(({ request_id }) => !logged.has(request_id)), ...list.rows]
  }, [isTailed, tail.rows, list.rows])
  // The charts come after the first rows, and stay.
  const hasRows = useRef(false)
  if (rows.length > 0) hasRows.current = true
  const hasOpened = useRef(false)
  if (call !== undefined) hasOpened.current = true
  const change = useChangeSearch()
  const logged = rows.filter((row) => row.id !== NOT_LOGGED)
  const at = logged.findIndex((row) => String(row.id) === call)
  // While no call is open, the next one is the first.
  const find = (by: 1 | -1) => (at === -1 && (call !== undefined || by === -1) ? undefined : logged[at + by])
  const step = (by: 1 | -1) => {
    const next = find(by)
    if (next !== undefined) change({ call: String(next.id) }, { isReplaced: call !== undefined })
  }
  useShortcuts({ j: () => step(1), k: () => step(-1) })
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
              input={{ account_id: accountId, ...toCallQuery(filters) }}
              loadFormat={loadCsvFormat}
            />
          </>
        }
      />
      <SavedViews page="calls" filters={{ ...filters }} />
      <Filters filters={filters} idNames={idNames} rows={rows} />
      {/* On a small screen the table comes first. */}
      <div className="flex flex-col gap-4 lg:flex-col-reverse">
        <Panel>
          <QueryState query={list} rows={12} />
          {list.isSuccess && rows.length === 0 && (
            <EmptyState title={t('No calls match.')}>
              <Suspense>
                <FirstCall accountId={accountId} isAwaited={false} />
              </Suspense>
            </EmptyState>
          )}
          {rows.length > 0 && (
            <Log rows={rows} hasMore={list.hasNextPage} isLoading={list.isFetchingNextPage} onEnd={more} />
          )}
        </Panel>
        {list.isSuccess && rows.length === 0 ? null : hasRows.current ? (
          <Suspense fallback={CHARTS_SPACE}>
            <Charts isReady={!list.isPending} accountId={accountId} filters={filters} />
          </Suspense>
        ) : (
          CHARTS_SPACE
        )}
      </div>
      {hasOpened.current && (
        <Suspense>
          <CallDrawer
            accountId={accountId}
            id={call}
            row={logged[at]}
            neighbors={
              at === -1 ? null : { hasNext: find(1) !== undefined, hasPrevious: find(-1) !== undefined }
            }
            onStep={step}
          />
        </Suspense>
      )}
    </>
  )
}
