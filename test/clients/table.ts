/** The table of `docs/clients.md`: what each client was run through, and what failed. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Client } from './clients.ts'
import type { Scenario } from './scenarios.ts'

const PAGE = fileURLToPath(new URL('../../docs/clients.md', import.meta.url))
const MARKED = /(<!-- begin: matrix -->\n)[\s\S]*(<!-- end: matrix -->)/

interface Cell {
  readonly scenario: Scenario
  /** Of the call through the service. */
  readonly wrong: readonly string[]
  /** What the client fails at without the service. */
  readonly directFailure: string | null
}

export interface Row {
  readonly client: Client
  readonly version: string
  readonly cells: readonly Cell[]
}

const renderRow = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`

const renderCell = ({ wrong, directFailure }: Cell): string =>
  wrong.length > 0 ? 'no' : directFailure === null ? 'yes' : 'as directly'

function renderTable(rows: readonly Row[]): string {
  const titles = rows[0]!.cells.map(({ scenario }) => scenario.title)
  const head = ['client', 'protocol', ...titles]
  const body = rows.map(({ client, version, cells }) =>
    renderRow([`\`${client.package}\` ${version}`, client.protocol, ...cells.map(renderCell)]),
  )
  const failures = rows.flatMap(({ client, cells }) =>
    cells.flatMap(({ scenario, wrong, directFailure }) =>
      [...wrong, ...(directFailure === null ? [] : [`directly: ${directFailure}`])].map(
        (what) => `- \`${client.package}\`, ${client.protocol}, ${scenario.title}: ${what}\n`,
      ),
    ),
  )
  const table = [renderRow(head), renderRow(head.map(() => '---')), ...body].join('')
  return failures.length === 0 ? table : `${table}\n${failures.join('')}`
}

/** Writes the table between its marks. */
export function writeTable(rows: readonly Row[]): void {
  const page = readFileSync(PAGE, 'utf8')
  if (!MARKED.test(page)) throw new Error(`${PAGE} has lost its marks: ${MARKED}`)
  writeFileSync(
    PAGE,
    page.replace(MARKED, (_, begin: string, end: string) => begin + renderTable(rows) + end),
  )
}
