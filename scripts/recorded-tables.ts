/** Tables of `docs` that come from recorded runs: of the bench, and of the commands of `docs/proof.md`. */
import { readText } from '../test/support/source-files.ts'
import { listClaims, listSections, readRecords, renderProof } from './proof.ts'

/** Null: prose, which the page has. */
export type Cell = string | null

export interface Table {
  readonly head: readonly string[]
  readonly rows: readonly (readonly Cell[])[]
  /** Its prose may be empty. */
  readonly mayBeEmpty?: true
  /** The page has only the rows that it describes; the names of the others say enough. */
  readonly isPartial?: true
}

export const code = (text: string | number): string => `\`${text}\``

export const splitCells = (row: string): string[] =>
  row
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim())

/** A table of a report of the bench, by the start of its heading. */
function copyBenchTable(heading: string, report = 'latest'): Table {
  const [, section = ''] = readText(`bench/results/${report}.md`).split(
    new RegExp(`\n## ${heading}[^\n]*\n\n`),
  )
  const [head = [], , ...rows] = section.split('\n\n')[0]!.trimEnd().split('\n').map(splitCells)
  return { head, rows, mayBeEmpty: true }
}

/** Returns the claims of a section, each with the last result of its command. */
function listProofs(section: string): Table {
  const records = readRecords()
  const rows = listClaims()
    .filter((claim) => claim.section === section)
    .map(({ name, command }): Cell[] => [code(name), null, null, ...renderProof(records[command])])
  return { head: ['name', 'claim', 'checked by', 'takes', 'last result'], rows }
}

export const RECORDED: Readonly<Record<string, Table>> = {
  ...Object.fromEntries(listSections().map((section) => [section, listProofs(section)])),
  'bench-aims': copyBenchTable('Aims: Tollgate with everything on'),
  'bench-settled': copyBenchTable('CPU of all processes and engines together, µs per settled call'),
  'comparison-speed': copyBenchTable('Side by side: speed', 'comparison'),
  'comparison-size': copyBenchTable('Side by side: work and size', 'comparison'),
}
