/** The report of a run: as a page, on the terminal, and as files. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RunFacts, Say } from '../harness/program.ts'
import { type Chart, toSvg } from './chart.ts'
import { type Table, toMarkdown, toText } from './table.ts'

export interface Report {
  readonly title: string
  readonly chart: Chart
  /** The alternative text of the chart. */
  readonly chartText: string
  /** Date, machine and versions. */
  readonly run: readonly string[]
  readonly tables: readonly Table[]
  readonly remarks: readonly string[]
  /** Failed checks; none in a good run. */
  readonly failures: readonly string[]
  /** How the bench measures, in Markdown. */
  readonly method: string
}

/** Returns the first lines of every report. `versions` continues the line with those of other programs. */
export const runLines = (facts: RunFacts, run: string, versions = ''): string[] => {
  const { date, busyBeforePercent, machine, tollgate, node } = facts
  return [
    `${date}, ${run}; machine ${Math.round(busyBeforePercent)} % busy before`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}`,
    `Tollgate ${tollgate}, Node.js ${node}${versions}`,
  ]
}

/** Returns the same for the subtitle of a chart. */
export const chartLine = ({ date, machine, tollgate }: RunFacts): string =>
  `${date} · ${machine.cpu}, ${machine.cores} cores · Tollgate ${tollgate}`

const listed = (lines: readonly string[]): string[] => lines.map((line) => `- ${line}`)

export const toPage = (report: Report, chartFile: string): string =>
  [
    `# ${report.title}`,
    '',
    `![${report.chartText}](${chartFile})`,
    '',
    ...listed(report.run),
    '',
    ...report.tables.flatMap((table) => [toMarkdown(table), '']),
    ...listed(report.remarks),
    ...listed(report.failures.map((failure) => `**Failed**: ${failure}`)),
    '',
    '## How it was measured',
    '',
    report.method,
    '',
  ].join('\n')

export const toTerminal = ({ run, tables, remarks, failures }: Report): string =>
  [
    listed(run).join('\n'),
    ...tables.map(toText),
    remarks.join('\n'),
    ...failures.map((failure) => `FAILED: ${failure}`),
  ]
    .filter((part) => part !== '')
    .join('\n\n')

/** The folder of results that the repository keeps. */
const RESULTS = fileURLToPath(new URL('../results', import.meta.url))

interface OutputFiles {
  /** File names of a full run, and of a partial one, which must not overwrite them. */
  readonly names: readonly [full: string, partial: string]
  readonly isFull: boolean
  /** Another folder for them, with the names of a full run. */
  readonly out: string | null
}

/** Writes the report to the terminal, and JSON, chart and page to files. */
export const publish = async (
  results: unknown,
  report: Report,
  { names, isFull, out }: OutputFiles,
  say: Say,
): Promise<void> => {
  process.stdout.write(`${toTerminal(report)}\n`)
  const folder = out ?? RESULTS
  const name = names[isFull || out !== null ? 0 : 1]
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(results, null, 2)}\n`)
  writeFileSync(join(folder, `${name}.svg`), await toSvg(report.chart))
  writeFileSync(join(folder, `${name}.md`), toPage(report, `${name}.svg`))
  say(`written: ${join(folder, name)}.{json,md,svg}`)
}
