/** Rows of a table that are selected, and what is done with all of them. */
import { type ReactNode, useRef, useState } from 'react'
import type { Changed } from '../api/read.ts'
import { printNumber } from '../format.ts'
import { t } from '../i18n.ts'
import { Button, type ButtonKind } from './button.tsx'
import { Action, type Question } from './dialog.tsx'

/** What a page offers for several rows. */
export interface Selects<Row> {
  /** Returns what a row is called. */
  name(row: Row): string
  /** The buttons for the selected rows; `onDone` ends the selection. */
  actions(rows: readonly Row[], onDone: () => void): ReactNode
}

export interface Selection<Row> {
  readonly rows: readonly Row[]
  readonly isWhole: boolean
  name(row: Row): string
  has(row: Row): boolean
  /** @param isRange true: with all rows from the one before on */
  toggle(row: Row, isRange: boolean): void
  toggleAll(): void
  clear(): void
}

/** Keeps which of the rows are selected, by their keys. A row that is no longer in the list is not selected either. */
export function useSelection<Row>(
  all: readonly Row[],
  toKey: (row: Row) => string,
  name: (row: Row) => string,
): Selection<Row> {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set())
  const last = useRef<string | null>(null)
  const rows = all.filter((row) => keys.has(toKey(row)))
  const isWhole = all.length > 0 && rows.length === all.length
  const set = (some: readonly Row[], isSelected: boolean) =>
    setKeys((before) => {
      const after = new Set(before)
      for (const row of some) after[isSelected ? 'add' : 'delete'](toKey(row))
      return after
    })
  return {
    rows,
    isWhole,
    name,
    has: (row) => keys.has(toKey(row)),
    toggle(row, isRange) {
      const at = all.indexOf(row)
      const before = isRange ? all.findIndex((one) => toKey(one) === last.current) : -1
      const from = before === -1 ? at : Math.min(at, before)
      set(all.slice(from, Math.max(at, before) + 1), !keys.has(toKey(row)))
      last.current = toKey(row)
    },
    toggleAll: () => set(all, !isWhole),
    clear: () => setKeys(new Set()),
  }
}

const BOX = 'block size-4 accent-accent'

/** Selects all rows, or none. */
export const SelectAll = <Row,>({ selection }: { readonly selection: Selection<Row> }) => (
  <input
    type="checkbox"
    aria-label={t('Select all rows')}
    className={BOX}
    checked={selection.isWhole}
    ref={(box) => {
      if (box !== null) box.indeterminate = selection.rows.length > 0 && !selection.isWhole
    }}
    onChange={selection.toggleAll}
  />
)

interface SelectRowProps<Row> {
  readonly selection: Selection<Row>
  readonly row: Row
}

/** Selects a row; with the shift key, also those between it and the one before. */
export const SelectRow = <Row,>({ selection, row }: SelectRowProps<Row>) => (
  <input
    type="checkbox"
    aria-label={t('Select {name}', { name: selection.name(row) })}
    className={BOX}
    checked={selection.has(row)}
    onChange={({ nativeEvent }) => selection.toggle(row, (nativeEvent as MouseEvent).shiftKey === true)}
  />
)

interface SelectionBarProps<Row> {
  readonly selection: Selection<Row>
  readonly selects: Selects<Row>
}

/** Says how many rows are selected, with what can be done with them. */
export const SelectionBar = <Row,>({ selection, selects }: SelectionBarProps<Row>) => (
  <section
    aria-label={t('Selected rows')}
    className="flex flex-wrap items-center gap-2 border-line border-b bg-accent-wash px-3 py-2"
  >
    <span aria-live="polite" className="mr-2 font-medium text-sm">
      {t('{count} selected', { count: printNumber(selection.rows.length) })}
    </span>
    {selects.actions(selection.rows, selection.clear)}
    <Button kind="quiet" onClick={selection.clear}>
      {t('Clear the selection')}
    </Button>
  </section>
)

/** Each request is small: more at once would only wait for each other. */
const AT_ONCE = 4

/** Runs an operation for every row. @throws Error that names the rows for which it was refused, and why */
async function runForEach<Row>(
  rows: readonly Row[],
  name: (row: Row) => string,
  run: (row: Row) => Promise<unknown>,
): Promise<void> {
  const waiting = [...rows]
  const refused: string[] = []
  const work = async () => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      const named = name(row)
      await run(row).catch((error: Error) => refused.push(`${named}: ${error.message}`))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  if (refused.length > 0)
    throw new Error(
      t('{failed} of {count} failed. {why}', {
        failed: refused.length,
        count: rows.length,
        why: refused.join(' '),
      }),
    )
}

interface ManyActionProps<Row> {
  /** Those that it applies to. Without one, there is no button. */
  readonly rows: readonly Row[]
  name(row: Row): string
  readonly kind?: ButtonKind
  /** What is asked first. */
  readonly confirm?: Question
  readonly done: string
  readonly changes: readonly Changed[]
  run(row: Row): Promise<unknown>
  onDone(): void
  readonly children: string
}

/** A button that runs an operation for every selected row to which it applies. */
export const ManyAction = <Row,>({ rows, name, confirm, run, ...rest }: ManyActionProps<Row>) =>
  rows.length > 0 && (
    <Action
      {...rest}
      confirm={confirm && { ...confirm, effects: [...(confirm.effects ?? []), listSome(rows.map(name))] }}
      run={() => runForEach(rows, name, run)}
    />
  )

const MAX_LISTED = 10

/** Lists names; of very many, the first. */
const listSome = (names: readonly string[]): string =>
  names.length <= MAX_LISTED
    ? names.join(', ')
    : t('{names} and {count} more', {
        names: names.slice(0, MAX_LISTED).join(', '),
        count: printNumber(names.length - MAX_LISTED),
      })
