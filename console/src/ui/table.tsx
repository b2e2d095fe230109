/** Tables of records, and lists in all their states. */
import { Settings2 } from 'lucide-react'
import { lazy, type PointerEvent, type ReactNode, Suspense, useState } from 'react'
import { nameInZone } from '../format.ts'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'
import {
  SelectAll,
  type Selection,
  SelectionBar,
  SelectRow,
  type Selects,
  useSelection,
} from './selection.tsx'
import { EmptyState, type EmptyStateProps, Panel, type Query, QueryState } from './states.tsx'
import {
  AS_GIVEN,
  arrange,
  MIN_WIDTH_PX,
  storeLayout,
  type TableLayout,
  useCompact,
  useLayout,
} from './table-layout.ts'
import { SCROLLED_BY_KEYS } from './text.tsx'

/** The least width of a table at which a column is shown: on a narrower page the more important ones have the room. */
const SHOWN_FROM = {
  medium: 'hidden @2xl:table-cell',
  wide: 'hidden @4xl:table-cell',
  widest: 'hidden @min-[73rem]:table-cell',
} as const

export interface Column<Row> {
  readonly name: string
  readonly isNumber?: boolean
  /** True if its cells are times: the heading then names their time zone. */
  readonly isTime?: boolean
  /** True if its texts are long and wrap. */
  readonly isText?: boolean
  /** Default: always shown. */
  readonly from?: keyof typeof SHOWN_FROM
  /** In pixels. If one column has a width, the others share what is left, and texts are cut. */
  readonly width?: number
  cell(row: Row): ReactNode
}

interface TableProps<Row> {
  /** Read by screen readers. The reader's layout of the table is kept by it. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  /** Returns what tells rows apart; default: the id. */
  toKey?(row: Row): string
  readonly rows: readonly Row[]
  /** True if its reader may lay it out. */
  readonly isAdjustable?: boolean
  /** Given if rows can be selected. */
  readonly selection?: Selection<Row>
}

const readId = <Row,>(row: Row): string => String((row as { id: string | number }).id)

/** A longer table scrolls in its own box, below its head. */
const LONG_ROWS = 20

/** A table of records. Where it is wider than the page it scrolls sideways in its own box. */
export const Table = <Row,>(props: TableProps<Row>) => (
  <section
    {...SCROLLED_BY_KEYS}
    aria-label={props.caption}
    className={`scrolls-sideways @container isolate overflow-auto ${props.rows.length > LONG_ROWS ? 'max-h-[75vh]' : ''}`}
  >
    <Grid {...props} />
  </section>
)

interface GridProps<Row> extends TableProps<Row> {
  /** Of a list of which only the rows in view are rendered: the height of all others, and the number of all. */
  readonly unseen?: { readonly before: number; readonly after: number; readonly count: number }
}

/** A table without the box that it scrolls in. */
export function Grid<Row>({
  caption,
  columns: given,
  rows,
  toKey = readId,
  isAdjustable = false,
  selection,
  unseen,
}: GridProps<Row>) {
  const layout = useLayout(caption)
  const isCompact = useCompact()
  const columns = (isAdjustable ? arrange(given, layout) : given.map((column) => ({ column, isShown: null })))
    .filter(({ isShown }) => isShown !== false)
    .map(({ column, isShown }) => ({
      ...column,
      place: column.from === undefined || isShown === true ? '' : SHOWN_FROM[column.from],
    }))
  const { widths } = isAdjustable ? layout : AS_GIVEN
  const isSized = columns.some(({ name }) => name in widths)
  const isCut = isSized || columns.some(({ width }) => width !== undefined)
  const sum = columns.reduce((total, { name }) => total + (widths[name] ?? 0), 0)
  const height = isCompact ? 'py-0.5' : 'py-1.5'
  const last = columns.at(-1)
  const hasFiller = isAdjustable && (isSized || last?.isNumber === true)
  return (
    <table
      className={`w-full text-left ${isCut ? 'table-fixed' : ''}`}
      style={isSized ? { minWidth: sum } : undefined}
      aria-rowcount={unseen?.count}
    >
      <caption className="sr-only">{caption}</caption>
      <thead className="text-quiet text-xs">
        <tr>
          {selection !== undefined && (
            <td className={`${HEAD} w-10 pl-3`}>
              <SelectAll selection={selection} />
            </td>
          )}
          {columns.map(({ name, isNumber, isTime, place, width }) => (
            <th
              key={name}
              scope="col"
              data-column={name}
              style={{ width: widths[name] ?? width }}
              className={`${HEAD} px-3 ${isCut ? 'truncate' : ''} ${isNumber ? 'text-right' : ''} ${place}`}
            >
              {isTime ? nameInZone(name) : name}
              {isAdjustable && <WidthHandle table={caption} name={name} layout={layout} />}
            </th>
          ))}
          {isAdjustable && (
            <td className={`${HEAD} right-0 px-1 text-right ${isSized ? 'min-w-8' : 'w-8'}`}>
              <SettingsButton table={caption} columns={given} />
            </td>
          )}
        </tr>
      </thead>
      <tbody>
        {unseen !== undefined && <Space px={unseen.before} />}
        {rows.map((row) => (
          <tr
            key={toKey(row)}
            className={`relative border-line border-b transition-colors last:border-0 hover:bg-raised has-[a[aria-current=page]]:bg-accent-wash has-[td>input:checked]:bg-accent-wash ${unseen === undefined ? '' : isCompact ? 'h-8' : 'h-10'}`}
          >
            {selection !== undefined && (
              <td className="pl-3">
                <SelectRow selection={selection} row={row} />
              </td>
            )}
            {columns.map(({ name, isNumber, isText, place, cell }) => (
              <td
                key={name}
                // The last one is below the button too, unless it has to stay below its heading.
                colSpan={isAdjustable && !hasFiller && name === last?.name ? 2 : undefined}
                className={`px-3 ${unseen === undefined ? height : ''} ${isNumber ? 'text-right' : ''} ${isCut ? 'truncate' : isText ? 'min-w-40' : 'whitespace-nowrap'} ${place}`}
              >
                {cell(row)}
              </td>
            ))}
            {hasFiller && <td />}
          </tr>
        ))}
        {unseen !== undefined && <Space px={unseen.after} />}
      </tbody>
    </table>
  )
}

/** Stays in view while the rows scroll below it. */
const HEAD = 'sticky top-0 z-1 bg-surface py-2 font-medium shadow-[inset_0_-1px_0_var(--color-line)]'

/** Takes the space of rows that are not in view. */
const Space = ({ px }: { readonly px: number }) =>
  px > 0 && (
    <tr>
      <td style={{ height: px }} />
    </tr>
  )

interface WidthHandleProps {
  readonly table: string
  readonly name: string
  readonly layout: TableLayout
}

/** Returns the widths of the columns that are seen. If one is changed, all are kept, so that no other column moves. */
function measureColumns(inHead: Element): TableLayout['widths'] {
  const cells = [...(inHead.closest('tr')?.cells ?? [])]
  return Object.fromEntries(
    cells.flatMap(({ dataset, offsetWidth }) =>
      dataset.column !== undefined && offsetWidth > 0 ? [[dataset.column, offsetWidth] as const] : [],
    ),
  )
}

/** Changes the width of a column by dragging; the dialog of the table does so by keyboard. */
function WidthHandle({ table, name, layout }: WidthHandleProps) {
  const start = ({ currentTarget: handle, clientX, pointerId }: PointerEvent<HTMLSpanElement>) => {
    const widths = measureColumns(handle)
    handle.setPointerCapture(pointerId)
    handle.onpointermove = (event) => {
      const width = Math.max(MIN_WIDTH_PX, (widths[name] ?? 0) + event.clientX - clientX)
      storeLayout(table, { ...layout, widths: { ...widths, [name]: Math.round(width) } })
    }
    handle.onpointerup = () => {
      handle.onpointermove = null
    }
  }
  return (
    <span
      aria-hidden="true"
      className="absolute inset-y-1 right-0 w-2 cursor-col-resize touch-none border-transparent border-r-2 hover:border-accent"
      onPointerDown={start}
      onDoubleClick={() => storeLayout(table, { ...layout, widths: {} })}
    />
  )
}

const TableSettings = lazy(async () => ({ default: (await import('./table-settings.tsx')).TableSettings }))

interface SettingsButtonProps {
  readonly table: string
  readonly columns: readonly { readonly name: string }[]
}

function SettingsButton({ table, columns }: SettingsButtonProps) {
  const [measured, setMeasured] = useState<TableLayout['widths'] | null>(null)
  return (
    <>
      <button
        type="button"
        aria-label={t('Columns and rows of {table}', { table })}
        title={t('Columns and rows')}
        className="rounded p-0.5 align-middle hover:bg-raised hover:text-ink"
        onClick={({ currentTarget }) => setMeasured(measureColumns(currentTarget))}
      >
        <Settings2 aria-hidden size={16} />
      </button>
      {measured !== null && (
        <Suspense>
          <TableSettings
            table={table}
            columns={columns}
            measured={measured}
            onClose={() => setMeasured(null)}
          />
        </Suspense>
      )}
    </>
  )
}

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
  /** Given if rows can be selected. */
  readonly selects?: Selects<Row>
  /** Shown if there are no rows: a text, with what would add one below it, or more. */
  readonly empty: string | EmptyStateProps | null
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
    selects,
    ...table
  } = props
  const selection = useSelection(rows, table.toKey ?? readId, selects?.name ?? readId)
  return (
    <Panel title={title}>
      <QueryState query={list} />
      {!list.isPending && !list.error && rows.length === 0 && empty !== null && (
        <EmptyState {...(typeof empty === 'string' ? { title: empty } : empty)}>{children}</EmptyState>
      )}
      {selects !== undefined && selection.rows.length > 0 && (
        <SelectionBar selection={selection} selects={selects} />
      )}
      {rows.length > 0 && (
        <Table
          {...table}
          caption={caption}
          rows={rows}
          isAdjustable
          selection={selects === undefined ? undefined : selection}
        />
      )}
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
