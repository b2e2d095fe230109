/** Tables of records, and lists in all their states. */
import type { ReactNode } from 'react'
import { nameInZone } from '../format.ts'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'
import { EmptyState, Panel, type Query, QueryState } from './states.tsx'
import { SCROLLED_BY_KEYS } from './text.tsx'

export interface Column<Row> {
  readonly name: string
  readonly isNumber?: boolean
  /** True if its cells are times: the heading then names their time zone. */
  readonly isTime?: boolean
  /** True if its texts are long and wrap. */
  readonly isText?: boolean
  cell(row: Row): ReactNode
}

interface TableProps<Row> {
  /** Read by screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  /** Returns what tells rows apart; default: the id. */
  toKey?(row: Row): string
  readonly rows: readonly Row[]
}

const readId = <Row,>(row: Row): string => String((row as { id: string | number }).id)

/** A table of records. On a narrow screen it scrolls sideways in its own box. */
export const Table = <Row,>({ caption, columns, rows, toKey = readId }: TableProps<Row>) => (
  <section {...SCROLLED_BY_KEYS} aria-label={caption} className="scrolls-sideways overflow-x-auto">
    <table className="w-full text-left">
      <caption className="sr-only">{caption}</caption>
      <thead className="border-line border-b text-quiet text-xs">
        <tr>
          {columns.map(({ name, isNumber, isTime }) => (
            <th
              key={name}
              scope="col"
              className={`px-3 py-2 font-medium tracking-wide ${isNumber ? 'text-right' : ''}`}
            >
              {isTime ? nameInZone(name) : name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr
            key={toKey(row)}
            className="border-line border-b last:border-0 transition-colors hover:bg-raised"
          >
            {columns.map(({ name, isNumber, isText, cell }) => (
              <td
                key={name}
                className={`px-3 py-1.5 ${isNumber ? 'text-right' : ''} ${isText ? 'min-w-40' : 'whitespace-nowrap'}`}
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

/** A list that is read whole or page by page. */
interface List<Row> extends Query {
  readonly rows?: readonly Row[]
  readonly data?: unknown
  readonly hasNextPage?: boolean
  readonly isFetchingNextPage?: boolean
  fetchNextPage?(): unknown
}

interface ListPanelProps<Row> {
  readonly title?: string
  /** Read by screen readers; default: the title. */
  readonly caption?: string
  readonly list: List<Row>
  /** Default: those of the list. */
  readonly rows?: readonly Row[]
  readonly columns: readonly Column<Row>[]
  /** Returns what tells rows apart; default: the id. */
  toKey?(row: Row): string
  /** Shown if there are no rows: a text, and below it what would add one. */
  readonly empty: string | null
  readonly children?: ReactNode
  /** At the end of the panel. */
  readonly foot?: ReactNode
}

/** A list in all its states: loading, failed, empty, with more to read. */
export function ListPanel<Row>(props: ListPanelProps<Row>) {
  const {
    title,
    caption = title ?? '',
    list,
    rows = list.rows ?? [],
    empty,
    children,
    foot,
    ...table
  } = props
  return (
    <Panel title={title}>
      <QueryState query={list} />
      {!list.isPending && !list.error && rows.length === 0 && empty !== null && (
        <EmptyState title={empty}>{children}</EmptyState>
      )}
      {rows.length > 0 && <Table {...table} caption={caption} rows={rows} />}
      {list.hasNextPage && (
        <div className="border-line border-t p-3 text-center">
          <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage?.()}>
            {t('Show more')}
          </Button>
        </div>
      )}
      {foot && <div className="border-line border-t p-3">{foot}</div>}
    </Panel>
  )
}
