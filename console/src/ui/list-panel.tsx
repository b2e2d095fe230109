/** A list in all its states: loading, failed, empty, and with more to come. */
import { useLingui } from '@lingui/react'
import type { ReactNode } from 'react'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'
import { ErrorState, Panel, Skeleton } from './states.tsx'
import { type Column, Table } from './table.tsx'

interface List<Row> {
  readonly rows: readonly Row[]
  readonly isPending: boolean
  readonly error: Error | null
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  refetch(): unknown
  fetchNextPage(): unknown
}

interface ListPanelProps<Row> {
  readonly title?: string
  readonly caption: string
  readonly list: List<Row>
  readonly columns: readonly Column<Row>[]
  readonly empty: ReactNode
  keyOf(row: Row): string
}

export function ListPanel<Row>({ title, caption, list, columns, empty, keyOf }: ListPanelProps<Row>) {
  useLingui()
  return (
    <Panel {...(title !== undefined && { title })}>
      {list.isPending && <Skeleton />}
      {list.error && <ErrorState error={list.error} onRetry={() => void list.refetch()} />}
      {!list.isPending && !list.error && list.rows.length === 0 && empty}
      {list.rows.length > 0 && <Table caption={caption} columns={columns} rows={list.rows} keyOf={keyOf} />}
      {list.hasNextPage && (
        <div className="border-line border-t p-3 text-center">
          <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {t('Show more')}
          </Button>
        </div>
      )}
    </Panel>
  )
}
