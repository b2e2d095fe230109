/** A table of records. On a narrow screen it is scrolled sideways in its own box. */
import type { ReactNode } from 'react'

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
