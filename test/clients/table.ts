/** The table of `report.md`: the scenarios that each client ran, and what failed. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CLIENTS, type Client } from './clients.ts'
import { listScenarios, type Scenario } from './scenarios.ts'

const PAGE = fileURLToPath(new URL('report.md', import.meta.url))
const MARKED = /(<!-- begin: matrix -->\n)([\s\S]*)(<!-- end: matrix -->)/

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

function renderCell({ cannot = {} }: Client, title: string, cells: readonly Cell[]): string {
  if (cannot[title] !== undefined) return 'cannot'
  if (cells.length === 0) return ''
  if (cells.some(({ wrong }) => wrong.length > 0)) return 'no'
  return cells.every(({ directFailure }) => directFailure === null) ? 'yes' : 'as directly'
}

/** Lists what fails, each with the names of the scenarios that fail in this way. */
function listNotes({ client, cells }: Row): string[] {
  const failures = [
    ...Object.entries(client.cannot ?? {}).map(([title, why]) => ({ name: title, what: why ?? '' })),
    ...cells.flatMap(({ scenario: { id }, wrong, directFailure }) => [
      ...wrong.map((what) => ({ name: id, what })),
      ...(directFailure === null ? [] : [{ name: id, what: `directly: ${directFailure}` }]),
    ]),
  ]
  return [...Map.groupBy(failures, ({ what }) => what)].map(
    ([what, notes]) => `${notes.map(({ name }) => name).join('; ')}: ${what}`,
  )
}

const printLanguage = ({ python }: Client): string => (python === undefined ? '' : ', Python')
const printName = (client: Client): string =>
  `- \`${client.package}\`${printLanguage(client)}, ${client.protocol}, `
/** Returns whether a line is the client's row of an earlier run. */
const isRow = (client: Client, line: string): boolean =>
  line.startsWith(`| \`${client.package}\` `) &&
  line.includes(` | ${client.protocol} | `) &&
  line.includes(', Python | ') === (client.python !== undefined)

const splitCells = (line: string): string[] => line.slice(2, -3).split(' | ')

/** Splits a row into one row per protocol. */
function splitRow(line: string): string[] {
  if (!line.startsWith('| `')) return [line]
  const [client = '', protocols = '', ...cells] = splitCells(line)
  return protocols.split(', ').map((protocol) => renderRow([client, protocol, ...cells]))
}

/** Makes one row of those of a client that differ only in their protocol. */
function mergeRows(lines: readonly string[]): string[] {
  const rows = lines.map(splitCells)
  const groups = Map.groupBy(rows, ([client, , ...cells]) => [client, ...cells].join())
  return [...groups.values()].map((group) => {
    const [[client = '', , ...cells] = []] = group
    return renderRow([client, group.map(([, protocol]) => protocol).join(', '), ...cells])
  })
}

/** Rows of clients that were not run stay as they were. */
function renderTable(rows: readonly Row[], former: string): string {
  const scenarios = CLIENTS.flatMap((client) => listScenarios(client, [0]))
  const titles = [...new Set(scenarios.map(({ title }) => title))]
  const lines = former.split(/(?<=\n)/).flatMap(splitRow)
  const head = ['client', 'protocol', ...titles]
  const parts = CLIENTS.map((client) => {
    const row = rows.find((one) => one.client === client)
    if (row === undefined)
      return {
        body: lines.filter((line) => isRow(client, line)),
        notes: lines.filter((line) => line.startsWith(printName(client))),
      }
    const findCells = (title: string) => row.cells.filter(({ scenario }) => scenario.title === title)
    return {
      body: [
        renderRow([
          `\`${client.package}\` ${row.version}${printLanguage(client)}`,
          client.protocol,
          ...titles.map((title) => renderCell(client, title, findCells(title))),
        ]),
      ],
      notes: listNotes(row).map((note) => `${printName(client)}${note.replaceAll(/\s+/g, ' ')}\n`),
    }
  })
  const body = mergeRows(parts.flatMap((part) => part.body))
  const notes = parts.flatMap((part) => part.notes)
  const table = [renderRow(head), renderRow(head.map(() => '---')), ...body].join('')
  return notes.length === 0 ? table : `${table}\n${notes.join('')}`
}

/** Writes the table between its marks. */
export function writeTable(rows: readonly Row[]): void {
  const page = readFileSync(PAGE, 'utf8')
  if (!MARKED.test(page)) throw new Error(`${PAGE} has lost its marks: ${MARKED}`)
  const render = (_: string, begin: string, former: string, end: string) =>
    begin + renderTable(rows, former) + end
  writeFileSync(PAGE, page.replace(MARKED, render))
}
