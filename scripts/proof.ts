/**
 * `npm run proof -- NAME…` runs the commands that check claims of `docs/proof.md`, and records the results. The page is the list:
 * each row has a claim, as a link to the page that makes it, and its command.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describeCheckout, describeMachine, ROOT } from '../bench/harness/machine.ts'

const PAGE = join(ROOT, 'docs/proof.md')
const RECORDS = join(ROOT, 'docs/proof.json')
const SECTION = /^<!-- table: (proof-\w+) -->\n((?:\|.*\n)*)/gm
const ROW = /^\| `([\w-]+)` \| \[(.+)\]\(([^)\s]+)\) \| `([^`]+)`/gm
const SECONDS_PER_MINUTE = 60

export interface Claim {
  readonly section: string
  readonly name: string
  readonly text: string
  /** Of the page that makes it, from `docs`. */
  readonly link: string
  readonly command: string
}

export interface Proof {
  readonly result: 'passed' | 'failed' | 'skipped'
  /** Assertions, where the command runs tests. */
  readonly checks: string | null
  readonly seconds: number
  readonly date: string
  /** Version and commit. */
  readonly tollgate: string
  readonly machine: string
}

/** The last run of each command, by the command. */
type Records = Readonly<Record<string, Proof>>

export const listClaims = (): Claim[] =>
  [...readFileSync(PAGE, 'utf8').matchAll(SECTION)].flatMap(([, section = '', rows = '']) =>
    [...rows.matchAll(ROW)].map(([, name = '', text = '', link = '', command = '']) => ({
      section,
      name,
      text,
      link,
      command,
    })),
  )

export const listSections = (): string[] => [...new Set(listClaims().map(({ section }) => section))]

export const readRecords = (): Records =>
  existsSync(RECORDS) ? JSON.parse(readFileSync(RECORDS, 'utf8')) : {}

const printTime = (seconds: number): string =>
  seconds < 2 * SECONDS_PER_MINUTE ? `${seconds} s` : `${Math.round(seconds / SECONDS_PER_MINUTE)} min`

/** Returns two cells: how long the command took, and its result. */
export function renderProof(proof: Proof | undefined): [takes: string, result: string] {
  if (proof === undefined) return ['not recorded', 'not recorded']
  const { result, checks, seconds, date, tollgate, machine } = proof
  const counted = checks === null ? result : `${result} (${checks})`
  return [printTime(seconds), `${counted}, ${date}, ${tollgate}, ${machine}`]
}

/** Runs a command with its output on the terminal. */
async function runCommand(command: string): Promise<Proof> {
  const { cpu, cores } = describeMachine()
  const tollgate = describeCheckout()
  const startedAt = performance.now()
  const child = spawn('bash', ['-c', command], { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (piece: Buffer) => {
    process.stdout.write(piece)
    output += piece
  })
  const [status] = await once(child, 'close')
  const isSkipped = status === 0 && /^skipped: /m.test(output)
  return {
    result: isSkipped ? 'skipped' : status === 0 ? 'passed' : 'failed',
    checks: output.match(/^\d+ passed, \d+ failed/gm)?.at(-1) ?? null,
    seconds: Math.round((performance.now() - startedAt) / 1000),
    date: new Date().toISOString().slice(0, 10),
    tollgate,
    machine: `${cpu}, ${cores} cores`,
  }
}

/** Writes each record as soon as it is known: a long list may be stopped. */
function record(command: string, proof: Proof): void {
  const all = Object.entries({ ...readRecords(), [command]: proof }).toSorted(([a], [b]) => (a < b ? -1 : 1))
  writeFileSync(RECORDS, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`)
  spawnSync(process.execPath, ['--no-warnings', 'scripts/docs.ts'], { cwd: ROOT, stdio: 'inherit' })
}

async function main(names: readonly string[]): Promise<number> {
  const claims = listClaims()
  const unknown = names.find((name) => !claims.some((claim) => claim.name === name))
  if (unknown !== undefined || names.length === 0) {
    const problem = unknown === undefined ? '' : `${unknown}: there is no such claim\n\n`
    const list = claims.map(({ name, command }) => `  ${name.padEnd(16)}${command}\n`).join('')
    process.stderr.write(`${problem}npm run proof -- NAME…\n\n${list}`)
    return 2
  }
  const chosen = claims.filter(({ name }) => names.includes(name))
  const results: string[] = []
  for (const command of new Set(chosen.map((claim) => claim.command))) {
    const proof = await runCommand(command)
    record(command, proof)
    results.push(`${proof.result}, ${printTime(proof.seconds)}: ${command}\n`)
  }
  process.stdout.write(`\n${results.join('')}`)
  return results.every((line) => line.startsWith('passed')) ? 0 : 1
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  process.exitCode = await main(process.argv.slice(2))
