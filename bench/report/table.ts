/** Tables as text and as Markdown. */

export interface Table {
  title: string
  columns: string[]
  /** The first cell of a row is its name; the others are figures. */
  rows: string[][]
}

/** Formats a figure with three digits, and as an integer from 100 on. Null is a dash. */
export const figure = (value: number | null): string => {
  if (value === null || !Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 99.95) return Math.round(value).toLocaleString('en-US')
  return value.toFixed(size >= 9.995 ? 1 : 2)
}

/** Columns aligned: names to the left, figures to the right. */
export const toText = ({ title, columns, rows }: Table): string => {
  const widths = columns.map((column, i) =>
    Math.max(column.length, ...rows.map((row) => (row[i] ?? '').length)),
  )
  const line = (cells: string[]): string =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  ')
      .trimEnd()
  const rule = widths.map((width) => '─'.repeat(width)).join('──')
  return [title, rule, line(columns), rule, ...rows.map(line)].join('\n')
}

const escapeCell = (cell: string): string => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')

export const toMarkdown = ({ title, columns, rows }: Table): string => {
  const line = (cells: string[]): string => `| ${cells.map(escapeCell).join(' | ')} |`
  const rule = columns.map((_, i) => (i === 0 ? '---' : '---:'))
  return [`## ${title}`, '', line(columns), line(rule), ...rows.map(line)].join('\n')
}
