/** The call log of an account. */
import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useEffect, useMemo, useRef } from 'react'
import { LOG_CSV_HEADER, printLogCsvRecord } from '../../../../src/core/call-log/csv.ts'
import { useList } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Drawer } from '../../ui/dialog.tsx'
import { EmptyState, PageHeader, Panel, QueryState } from '../../ui/states.tsx'
import { CsvExport } from '../csv-export.tsx'
import { FirstCall } from '../first-call/first-call.tsx'
import { SavedViews } from '../saved-views.tsx'
import { Charts } from './charts.tsx'
import { CallDetail } from './detail.tsx'
import { Filters } from './filters.tsx'
import { Log } from './log.tsx'
import { canTail, useTail } from './tail.ts'

const PAGE_ROWS = 100

const route = getRouteApi('/signed-in/calls')

/** A new call reaches the log after about a second: a link to it waits. */
const WAIT_MS = 1_000
const MAX_WAITS = 15

function useWaiting(isWanted: boolean, refetch: () => unknown): void {
  const waits = useRef(0)
  useEffect(() => {
    if (!isWanted) return
    const timer = setInterval(() => {
      waits.current += 1
      if (waits.current > MAX_WAITS) clearInterval(timer)
      else refetch()
    }, WAIT_MS)
    return () => clearInterval(timer)
  }, [isWanted, refetch])
}

export function Calls() {
  const { account_id: accountId } = useAccount()
  const { call, live, account: _, ...filters } = route.useSearch()
  const list = useList('listCalls', { account_id: accountId, limit: PAGE_ROWS, ...filters } as never)
  const { fetchNextPage } = list
  useWaiting(filters.ref !== undefined && list.isSuccess && list.rows.length === 0, list.refetch)
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
              input={{ account_id: accountId, ...filters }}
              header={LOG_CSV_HEADER}
              toRecord={printLogCsvRecord}
            />
          </>
        }
      />
      <SavedViews page="calls" filters={{ ...filters }} />
      <Filters filters={filters} />
      <Charts accountId={accountId} filters={filters} />
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
      <Drawer title={t('Call')} isOpen={call !== undefined} onClose={() => change({ call: undefined })}>
        {call !== undefined && <CallDetail accountId={accountId} id={call} />}
      </Drawer>
    </>
  )
}
