/** Tables of records, and lists in all their states. */
import type { ReactNode } from 'react'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'
import { Panel, type Query, QueryState } from './states.tsx'

export interface Column<Row> {
  readonly name: string
  readonly isNumber?: boolean
  /** Its texts are long: they break into lines. */
  readonly isText?: boolean
  cell(row: Row): ReactNode
}

interface TableProps<Row> {
  /** Read by screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  keyOf(row: Row): string
}

export const Table = <Row,>({ caption, columns, rows, keyOf }: TableProps<Row>) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: without the focus a scrollable area cannot be scrolled by keyboard (axe, scrollable-region-focusable).
  <section tabIndex={0} aria-label={caption} className="scrolls-sideways overflow-x-auto">
    <table className="w-full text-left">
      <caption className="sr-only">{caption}</caption>
      <thead className="border-line border-b text-quiet text-sm">
        <tr>
          {columns.map(({ name, isNumber }) => (
            <th key={name} scope="col" className={`px-3 py-2 font-medium ${isNumber ? 'text-right' : ''}`}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} className="border-line border-b last:border-0 hover:bg-raised">
            {columns.map(({ name, isNumber, isText, cell }) => (
              <td
                key={name}
                className={`px-3 py-2 ${isNumber ? 'text-right' : ''} ${isText ? 'min-w-40' : 'whitespace-nowrap'}`}
              >
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </section>
)

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
