/** The call log of an account, and that of all accounts. */

import { getRouteApi } from '@tanstack/react-router'
import { Logs, ScrollText } from 'lucide-react'
import { lazy, type ReactNode, Suspense, useCallback, useMemo, useRef } from 'react'
import { useKeyNames } from '../../api/key-names.ts'
import { useGet, useList } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { useShortcuts } from '../../ui/shortcuts.ts'
import { EmptyState, PageHeader, Panel, QueryState } from '../../ui/states.tsx'
import { CsvExport } from '../csv-export.tsx'
import { SavedViews } from '../saved-views.tsx'
import { ClearFilters, Filters, hasFilters } from './filters.tsx'
import { Log, NOT_LOGGED, toSearch } from './log.tsx'
import {
  ALL_CALLS_USUAL,
  type CallFilters,
  type ShownCall,
  toCallQuery,
  toListInput,
  toWholeListInput,
} from './query.ts'
import { canTail, useTail } from './tail.ts'

// What the first sight of the calls does not need comes after it.
const Charts = lazy(async () => ({ default: (await import('./charts.tsx')).Charts }))
const CallDrawer = lazy(async () => ({ default: (await import('./drawer.tsx')).CallDrawer }))
const FirstCall = lazy(async () => ({ default: (await import('../first-call/first-call.tsx')).FirstCall }))

/** So that the rows do not move when the charts come. */
const CHARTS_SPACE = <div className="h-65" />

const callsRoute = getRouteApi('/signed-in/calls')
const allCallsRoute = getRouteApi('/signed-in/all-calls')

export function Calls() {
  const { account_id: accountId } = useAccount()
  const { call, live, account: _, ...filters } = callsRoute.useSearch()
  const keys = useKeyNames(filters.key_id !== undefined)
  const idNames = useMemo(() => new Map(keys.data?.keys.map(({ id, name }) => [id, name])), [keys.data])
  return (
    <CallsPage
      title={t('Calls')}
      description={t('Every call of the account, newest first, with what it cost and why.')}
      accountId={accountId}
      filters={filters}
      list={useList('listCalls', toListInput(accountId, filters))}
      idNames={idNames}
      open={call === undefined ? undefined : { id: call, accountId }}
      isLive={live !== undefined}
    >
      <Suspense>
        <FirstCall accountId={accountId} isAwaited={false} />
      </Suspense>
    </CallsPage>
  )
}

export function AllCalls() {
  const { call, call_account: callAccount, live, account: _, ...chosen } = allCallsRoute.useSearch()
  const { account_id: id = '' } = chosen
  const list = useList('listAllCalls', toWholeListInput(chosen))
  const account = useGet('showAccount', { id }, { enabled: id !== '', refetchInterval: false }).data
  const idNames = new Map([
    ...list.rows.map(({ key_id, key_name }) => [key_id, key_name] as const),
    [id, account?.name ?? id] as const,
  ])
  return (
    <CallsPage
      title={t('All calls')}
      description={t('The calls of every account, newest first.')}
      filters={{ ...ALL_CALLS_USUAL, ...chosen }}
      usual={ALL_CALLS_USUAL}
      list={list}
      idNames={idNames}
      open={call === undefined ? undefined : { id: call, accountId: callAccount }}
      isLive={live !== undefined}
    />
  )
}

interface CallsPageProps {
  readonly title: string
  readonly description: string
  /** Undefined: the calls of all accounts. */
  readonly accountId?: string
  readonly filters: CallFilters
  /** What is filtered by without a choice. */
  readonly usual?: CallFilters
  readonly list: Pick<
    ReturnType<typeof useList<'listCalls'>>,
    'isPending' | 'isSuccess' | 'error' | 'refetch' | 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage'
  > & { readonly rows: readonly ShownCall[] }
  /** Names of keys and accounts by their ids. */
  readonly idNames: ReadonlyMap<string, string>
  /** The call that is read beside the list. */
  readonly open: { readonly id: string; readonly accountId: string | undefined } | undefined
  readonly isLive: boolean
  /** Below the text that no call matches. */
  readonly children?: ReactNode
}

/** Where a call is in the list, and the way to its neighbors. */
function useNeighbors(logged: readonly ShownCall[], open: CallsPageProps['open']) {
  const change = useChangeSearch()
  const at = logged.findIndex(
    (row) =>
      String(row.id) === open?.id && (row.account_id === undefined || row.account_id === open.accountId),
  )
  // While no call is open, the next one is the first.
  const find = (by: 1 | -1) => (at === -1 && (open !== undefined || by === -1) ? undefined : logged[at + by])
  const step = (by: 1 | -1) => {
    const next = find(by)
    if (next !== undefined) change(toSearch(next), { isReplaced: open !== undefined })
  }
  useShortcuts({ j: () => step(1), k: () => step(-1) })
  const neighbors = at === -1 ? null : { hasNext: find(1) !== undefined, hasPrevious: find(-1) !== undefined }
  return { row: logged[at], neighbors, step }
}

function CallsPage(props: CallsPageProps) {
  const { title, description, accountId, filters, usual, list, idNames, open, isLive, children } = props
  const isWhole = accountId === undefined
  const { fetchNextPage } = list
  const isTailed = isLive && canTail(filters)
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
  if (open !== undefined) hasOpened.current = true
  const change = useChangeSearch()
  const { row, neighbors, step } = useNeighbors(
    rows.filter(({ id }) => id !== NOT_LOGGED),
    open,
  )
  const more = useCallback(() => void fetchNextPage(), [fetchNextPage])
  const query = toCallQuery(filters)
  const isFiltered = hasFilters(filters, usual)
  return (
    <>
      <PageHeader
        title={title}
        description={description}
        actions={
          <>
            <Button
              aria-pressed={isTailed}
              kind={isTailed ? 'primary' : 'plain'}
              disabled={!canTail(filters)}
              onClick={() => change({ live: isLive ? undefined : 'on' })}
            >
              {isTailed && tail.state === 'lost' ? t('Connection lost, trying again') : t('Live')}
            </Button>
            <CsvExport<ShownCall>
              name={isWhole ? 'all-calls' : 'calls'}
              operation={isWhole ? 'listAllCalls' : 'listCalls'}
              input={isWhole ? query : { account_id: accountId, ...query }}
              loadFormat={async () => (await import('./csv.ts'))[isWhole ? 'ALL_CALLS_CSV' : 'CALLS_CSV']}
            />
          </>
        }
      />
      <SavedViews page={isWhole ? 'all-calls' : 'calls'} filters={{ ...filters }} />
      <Filters isWhole={isWhole} filters={filters} usual={usual} idNames={idNames} rows={rows} />
      {/* On a small screen the table comes first. */}
      <div className="flex flex-col gap-4 lg:flex-col-reverse">
        <Panel>
          <QueryState query={list} rows={12} />
          {list.isSuccess && rows.length === 0 && (
            <EmptyState
              title={t('No calls match.')}
              icon={isWhole ? Logs : ScrollText}
              docs={isFiltered ? undefined : 'getting-started.md'}
              action={isFiltered && <ClearFilters />}
            >
              {isFiltered ? null : children}
            </EmptyState>
          )}
          {rows.length > 0 && (
            <Log
              caption={title}
              isWhole={isWhole}
              rows={rows}
              hasMore={list.hasNextPage}
              isLoading={list.isFetchingNextPage}
              onEnd={more}
            />
          )}
        </Panel>
        {/* An account without calls has no charts; the filters of all calls are chosen by them. */}
        {list.isSuccess && rows.length === 0 && !isWhole ? null : hasRows.current || isWhole ? (
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
            accountId={open?.accountId}
            isWhole={isWhole}
            id={open?.id}
            row={row}
            neighbors={neighbors}
            onStep={step}
          />
        </Suspense>
      )}
    </>
  )
}
