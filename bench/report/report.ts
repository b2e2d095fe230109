/** What a run has to tell: on a page, on a terminal, and as files. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RunFacts, Say } from '../harness/program.ts'
import { type Chart, toSvg } from './chart.ts'
import { type Table, toMarkdown, toText } from './table.ts'

export interface Report {
  readonly title: string
  readonly chart: Chart
  /** What the chart shows, for whoever cannot see it. */
  readonly chartText: string
  /** Of what the run was, on what, and when. */
  readonly run: readonly string[]
  readonly tables: readonly Table[]
  readonly remarks: readonly string[]
  /** What does not hold; none in a good run. */
  readonly failures: readonly string[]
  /** How the figures came about, in Markdown. */
  readonly method: string
}

/** The first lines of every report. `versions` are those of what was measured besides Tollgate, as a sentence goes on. */
export const runLines = (facts: RunFacts, run: string, versions = ''): string[] => {
  const { date, busyBeforePercent, machine, tollgate, node } = facts
  return [
    `${date}, ${run}; machine ${Math.round(busyBeforePercent)} % busy before`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}`,
    `Tollgate ${tollgate}, Node.js ${node}${versions}`,
  ]
}

/** The same below the title of a chart. */
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

/** Where results belong that the repository keeps. */
const RESULTS = fileURLToPath(new URL('../results', import.meta.url))

export interface Place {
  /** What the files of a full run are called; those of a partial one, which never take their place. */
  readonly names: readonly [full: string, partial: string]
  readonly isFull: boolean
  /** Where somebody wants them instead, called as those of a full run. */
  readonly out: string | null
}

/** To the terminal, and as JSON, chart and page to the disk. */
export const publish = async (
  results: unknown,
  report: Report,
  { names, isFull, out }: Place,
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
