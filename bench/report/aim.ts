/** Figures that a run must not exceed. */
import { figure, type Table } from './table.ts'

export interface Aim {
  readonly title: string
  /** The figure must not be above this. */
  readonly limit: number
  readonly unit: string
  /** Null where this run did not measure it. */
  readonly value: number | null
}

/** Returns null where this run did not measure it. */
export const isMet = ({ value, limit }: Aim): boolean | null => (value === null ? null : value <= limit)

const decision = (aim: Aim): string => {
  const met = isMet(aim)
  if (met === null) return 'not measured'
  return met ? 'met' : 'MISSED'
}

const withUnit = (value: number | null, unit: string): string =>
  value === null ? '–' : `${figure(value)} ${unit}`

export const aimsTable = (title: string, aims: readonly Aim[]): Table => ({
  title,
  columns: ['', 'measured', 'at most', ''],
  rows: aims.map((aim) => [
    aim.title,
    withUnit(aim.value, aim.unit),
    withUnit(aim.limit, aim.unit),
    decision(aim),
  ]),
})
