/** A list in all its states: loading, failed, empty, and with more to come. */
import { useLingui } from '@lingui/react'
import type { ReactNode } from 'react'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'
import { Panel, type Query, QueryState } from './states.tsx'
import { type Column, Table } from './table.tsx'

interface List<Row> extends Query {
  readonly rows: readonly Row[]
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
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
    <Panel title={title}>
      <QueryState query={list} />
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
