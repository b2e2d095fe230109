/**
 * `npm run test:clients`: runs the clients of other vendors directly at a scripted upstream and through this service, checks
 * that both runs are alike and that every call is charged once, and writes the table of `report.md`.
 */
import { FLAG, givenOptions, TEXT, UsageError } from '../../bench/harness/command-line.ts'
import type { Teardown } from '../support/engines.ts'
import { findBookDifference, runTestProgram } from '../support/program-run.ts'
import { checkOutcome, checkRows, findDirectFailure, isFilled, listBilled } from './checks.ts'
import { CLIENTS, type Client } from './clients.ts'
import { installClient, type Program } from './install.ts'
import { type Place, runClient, startPlace } from './matrix.ts'
import { listScenarios } from './scenarios.ts'
import { type Row, writeTable } from './table.ts'

const USAGE = `npm run test:clients -- [options]

  --quick        short pauses and fewer clients; leaves the table as it is
  --only A,B     these clients
`
/** The last is longer than clients and proxies usually bear. Libraries wait for most of the time, so several run at once. */
const FULL = { pausesMs: [8_000, 20_000, 70_000], keepAliveSeconds: 5, librariesAtOnce: 8 }
const QUICK = { pausesMs: [2_500], keepAliveSeconds: 1, librariesAtOnce: 4 }
/** Each starts several large programs. */
const AGENTS_AT_ONCE = 3

const say = (line: string) => void process.stdout.write(`${line}\n`)

function chooseClients(only: string | undefined, isQuick: boolean): readonly Client[] {
  const names = only?.split(',')
  const unknown = names?.find((name) => !CLIENTS.some(({ id }) => id === name))
  if (unknown !== undefined) throw new UsageError(`${unknown}: there is no such client`)
  return CLIENTS.filter((client) => names?.includes(client.id) ?? (client.isQuick || !isQuick))
}

interface Result {
  readonly row: Row
  readonly wrong: readonly string[]
  readonly hasFilled: boolean
}

async function testClient(
  t: Teardown,
  place: Place,
  program: Program,
  client: Client,
  pausesMs: readonly number[],
): Promise<Result> {
  const { service, upstream } = place
  const { key, outcomes } = await runClient(t, place, program, client, pausesMs)
  const cells = outcomes.map((outcome) => ({
    scenario: outcome.scenario,
    wrong: checkOutcome(outcome, upstream.exchanges),
    directFailure: findDirectFailure(outcome),
  }))
  const calls = listBilled(outcomes, upstream.exchanges).length
  const rows = await service.logs(key, (found) => found.length >= calls)
  for (const { scenario, directFailure } of cells)
    if (directFailure !== null) say(`        ${client.id}, ${scenario.id}, fails directly: ${directFailure}`)
  const wrong = [
    ...cells.flatMap(({ scenario, wrong }) => wrong.map((what) => `${scenario.id}: ${what}`)),
    ...checkRows(outcomes, rows, upstream.exchanges),
  ]
  const hasFilled = outcomes.some(({ through }) => through.recorder.exchanges.some(isFilled))
  return { row: { client, version: program.version, cells }, wrong, hasFilled }
}

/** Returns the result of a client whose test itself has failed: it must not end the tests of the others. */
function toBroken(
  { version }: Program,
  client: Client,
  pausesMs: readonly number[],
  { message }: Error,
): Result {
  const wrong = [`its test broke off: ${message}`]
  const cells = listScenarios(client, pausesMs).map((scenario) => ({ scenario, wrong, directFailure: null }))
  return { row: { client, version, cells }, wrong, hasFilled: false }
}

/** Installs the clients. Python may be missing; what else is not there is a problem. */
async function installAll(clients: readonly Client[], problems: string[]): Promise<Map<Client, Program>> {
  const programs = new Map<Client, Program>()
  for (const client of clients) {
    const program = await installClient(client).catch((error: Error) => error)
    if (program instanceof Error) {
      const [line] = program.message.split('\n')
      problems.push(`${client.id} cannot be installed: ${line}`)
      say(`FAILED  ${problems.at(-1)}`)
    } else if ('reason' in program) say(`skipped  ${client.id}: ${program.reason}`)
    else programs.set(client, program)
  }
  return programs
}

async function main(t: Teardown, args: string[]): Promise<number> {
  const given = givenOptions(args, { help: FLAG, quick: FLAG, only: TEXT })
  if (given.help) {
    say(USAGE)
    return 0
  }
  const isQuick = given.quick === true
  const clients = chooseClients(given.only, isQuick)
  const { pausesMs, keepAliveSeconds, librariesAtOnce } = isQuick ? QUICK : FULL
  const problems: string[] = []
  const programs = await installAll(clients, problems)
  const place = await startPlace(t, keepAliveSeconds)
  const rows = new Map<Client, Row>()
  let filled = 0
  const runNext = async (waiting: Iterable<[Client, Program]>) => {
    for (const [client, program] of waiting) {
      const { row, wrong, hasFilled } = await testClient(t, place, program, client, pausesMs).catch(
        (error: Error) => toBroken(program, client, pausesMs, error),
      )
      rows.set(client, row)
      // A run that is ended early has written what it knows.
      if (!isQuick) writeTable([...rows.values()])
      filled += Number(hasFilled)
      say(`${wrong.length === 0 ? 'ok' : 'FAILED'}  ${client.id} ${row.version}`)
      for (const what of wrong) say(`        ${what}`)
      problems.push(...wrong)
    }
  }
  const libraries = [...programs].filter(([{ agent }]) => agent === undefined).values()
  const agents = [...programs].filter(([{ agent }]) => agent !== undefined).values()
  await Promise.all([
    ...Array.from({ length: librariesAtOnce }, () => runNext(libraries)),
    ...Array.from({ length: AGENTS_AT_ONCE }, () => runNext(agents)),
  ])
  // A slow machine may miss a short silence, but not all of them.
  if (filled === 0 && given.only === undefined) problems.push('no silence was filled')
  say(`${filled} of ${rows.size} clients met a silence that the service filled`)
  const difference = await findBookDifference(place.service)
  say(difference === null ? 'ok  the books agree' : `FAILED  wallet verify --full: ${difference}`)
  say(`${rows.size} of ${clients.length} clients ran, ${problems.length} problems`)
  return problems.length === 0 && difference === null ? 0 : 1
}

await runTestProgram(USAGE, main)
