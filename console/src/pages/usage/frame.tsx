/** The frame of the usage pages: heading, saved views, filters, and the state of the report. */
import type { UseQueryResult } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { printCsvRecord } from '../../../../src/core/call-log/csv-records.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField } from '../../ui/form.tsx'
import { ErrorState, PageHeader, Skeleton } from '../../ui/states.tsx'
import { FilterPanel, type Period, PeriodFilter, ScopeFilter } from '../filters.tsx'
import { saveCsv } from '../save-csv.ts'
import { SavedViews } from '../saved-views.tsx'

const route = getRouteApi('/signed-in/usage')

type Dimension = 'account' | 'model' | 'key' | 'member' | 'session' | 'status' | 'channel'

export const nameDimensions = (): Readonly<Record<Dimension, string>> => ({
  account: t('Account'),
  model: t('Model'),
  key: t('Key'),
  member: t('Member'),
  session: t('Session'),
  status: t('Status'),
  channel: t('Channel'),
})

export const SUM_COLUMNS = ['requests', 'cost', 'input_tokens', 'output_tokens', 'cached_tokens'] as const

/** A report of an account: the input of its operation, and its frame. */
export interface AccountReportProps {
  readonly input: { readonly account_id: string; readonly key_id: string | undefined }
  /** False until the key is known that a member's report needs. */
  readonly isReady: boolean
  readonly frame: FrameFields<Dimension>
}

/** Reads the period from the URL. */
export function usePeriod(): Period {
  const { period, from, to } = route.useSearch()
  return { period, from, to }
}

const CSV_NAMES: Readonly<Record<string, string>> = {
  requests: 'calls',
  cost: 'cost_credits',
  revenue: 'revenue_credits',
  upstream_cost: 'provider_cost_credits',
  margin: 'margin_credits',
  requests_with_cost: 'calls_with_provider_cost',
}

/** Returns the header of columns in a file. */
export const nameCsvColumns = (columns: readonly string[]): string[] =>
  columns.map((column) => CSV_NAMES[column] ?? column)

type Line = readonly (string | number | null)[]

interface FrameFields<D extends Dimension> {
  readonly dimensions: readonly D[]
  /** More filters. */
  readonly fields?: ReactNode
}

interface UsageFrameProps<Data, D extends Dimension> extends FrameFields<D> {
  readonly by: D
  readonly query: UseQueryResult<Data>
  /** Returns the header and the records of the file; only the header if there is nothing to save. */
  toLines(data: Data): readonly Line[]
  readonly children: (data: Data) => ReactNode
}

export function UsageFrame<Data, D extends Dimension>({
  by,
  dimensions,
  query,
  fields,
  toLines,
  children,
}: UsageFrameProps<Data, D>) {
  const { by: given, key_id, scope } = route.useSearch()
  const period = usePeriod()
  const change = useChangeSearch()
  const { data } = query
  const lines = data === undefined ? [] : toLines(data)
  const save = () => saveCsv(`usage-by-${by}`, [lines.map(printCsvRecord).join('')])
  return (
    <>
      <PageHeader
        title={t('Usage')}
        actions={
          <Button disabled={lines.length < 2} onClick={save}>
            CSV
          </Button>
        }
      />
      <SavedViews page="usage" filters={{ by: given, key_id, scope, ...period }} />
      <FilterPanel>
        <PeriodFilter value={period} />
        <SelectField
          label={t('Group by')}
          value={by}
          onText={(text) => change({ by: text })}
          options={dimensions.map((name) => [name, nameDimensions()[name]] as const)}
        />
        {fields}
        <ScopeFilter value={scope} clears={['by', 'key_id']} />
      </FilterPanel>
      {query.isLoading && <Skeleton rows={8} />}
      {query.error && <ErrorState error={query.error} onRetry={() => void query.refetch()} />}
      {data !== undefined && children(data)}
    </>
  )
}
