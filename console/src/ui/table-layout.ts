/** How a reader has laid out tables: order, choice and widths of columns by table, and the height of all rows. This browser keeps it. */
import { useSyncExternalStore } from 'react'

/** By the names of columns. */
export interface TableLayout {
  /** In the reader's order. A column that is not here comes last, and is shown. */
  readonly columns: readonly { readonly name: string; readonly isShown: boolean }[]
  /** In pixels. */
  readonly widths: Readonly<Record<string, number>>
}

export const AS_GIVEN: TableLayout = { columns: [], widths: {} }

/** A narrower column shows nothing. */
export const MIN_WIDTH_PX = 48

const STORED = 'tollgate-table '
const COMPACT = 'tollgate-compact-rows'

const listeners = new Set<() => void>()
const layouts = new Map<string, TableLayout>()

const onChange = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const tellAll = (): void => {
  for (const listener of listeners) listener()
}

function readLayout(table: string): TableLayout {
  const known = layouts.get(table)
  if (known !== undefined) return known
  const text = localStorage.getItem(STORED + table)
  const layout = text === null ? AS_GIVEN : (JSON.parse(text) as TableLayout)
  layouts.set(table, layout)
  return layout
}

/** Keeps the layout of a table. @param table its caption */
export function storeLayout(table: string, layout: TableLayout): void {
  layouts.set(table, layout)
  if (layout === AS_GIVEN) localStorage.removeItem(STORED + table)
  else localStorage.setItem(STORED + table, JSON.stringify(layout))
  tellAll()
}

export const useLayout = (table: string): TableLayout =>
  useSyncExternalStore(onChange, () => readLayout(table))

export function storeCompact(isCompact: boolean): void {
  if (isCompact) localStorage.setItem(COMPACT, 'true')
  else localStorage.removeItem(COMPACT)
  tellAll()
}

/** Returns whether rows are low. */
export const useCompact = (): boolean =>
  useSyncExternalStore(onChange, () => localStorage.getItem(COMPACT) !== null)

/** Returns all columns in the reader's order, each with whether it is shown; null where the page decides. */
export function arrange<Column extends { readonly name: string }>(
  columns: readonly Column[],
  { columns: chosen }: TableLayout,
): readonly { readonly column: Column; readonly isShown: boolean | null }[] {
  const places = new Map(chosen.map(({ name, isShown }, at) => [name, { at, isShown }]))
  return columns
    .map((column, at) => ({
      column,
      ...(places.get(column.name) ?? { at: columns.length + at, isShown: null }),
    }))
    .sort((one, other) => one.at - other.at)
}
