/**
 * `npm run test:mutation`: Stryker changes the code of money and state, one operator or condition at a time, and runs the tests
 * that reach it. What no test notices is a survivor: it gets a test, goes, or is listed in `equivalents.ts` with a reason.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { UsageError } from '../../bench/harness/command-line.ts'
import { KEPT_ENGINES_VARIABLE } from '../support/engines.ts'
import { installPackages } from '../support/npm-packages.ts'
import { runTestProgram } from '../support/program-run.ts'
import { AREAS, type Area } from './areas.ts'
import { EQUIVALENTS } from './equivalents/equivalents.ts'
import type { Equivalent } from './equivalents/group.ts'

const USAGE = `npm run test:mutation -- [areas]

  ${AREAS.map(({ name }) => name).join(', ')}; all without an argument
`
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const HERE = fileURLToPath(new URL('.', import.meta.url))
const STRYKER = 'node_modules/@stryker-mutator/core/dist/src/index.js'
const REPORT = join(HERE, 'report.md')
const AIM_PERCENT = 95
/** More memory than loaded test files take is freed with their process. */
const RUNS_PER_PROCESS = 300
/** Of the simulations, which take many more in a run of tests. */
const SEEDS = '1-12'
const TEST_SECONDS = 10
const DRY_RUN_MINUTES = 20
/** Of a mutant, besides the usual time of its tests: long enough for a busy machine. Most loops end at a count before. */
const TIME_LIMIT_MS = 30_000
const SHOWN_CHARACTERS = 60

/** What Stryker says of a mutant, as far as it is read here. */
interface Mutant {
  readonly fileName: string
  readonly mutatorName: string
  readonly replacement: string
  readonly status: string
  readonly statusReason?: string
  readonly location: { readonly start: Position; readonly end: Position }
}

interface Position {
  readonly line: number
  readonly column: number
}

interface Survivor extends Omit<Equivalent, 'why'> {
  readonly line: number
}

interface Outcome {
  readonly area: Area
  readonly mutants: number
  /** Whether the runner has tried each mutant. Else the area does not count. */
  readonly isWhole: boolean
  readonly noticed: number
  readonly equivalent: number
  readonly survivors: readonly Survivor[]
  readonly unknown: readonly Equivalent[]
  readonly minutes: number
}

const say = (line: string) => void process.stdout.write(`${line}\n`)

function chooseAreas(words: readonly string[]): readonly Area[] {
  const unknown = words.find((word) => !AREAS.some(({ name }) => name === word))
  if (unknown !== undefined) throw new UsageError(`${unknown}: there is no such area`)
  return words.length === 0 ? AREAS : AREAS.filter(({ name }) => words.includes(name))
}

const shorten = (code: string): string => code.replace(/\s+/g, ' ').slice(0, SHOWN_CHARACTERS)

/** Names a mutant by what it changes, since lines move. */
function describe({ fileName, location, replacement }: Mutant): Survivor {
  const file = relative(ROOT, fileName)
  const lines = readFileSync(fileName, 'utf8')
    .split('\n')
    .slice(location.start.line - 1, location.end.line)
  const last = lines.length - 1
  lines[last] = lines[last]!.slice(0, location.end.column - 1)
  lines[0] = lines[0]!.slice(location.start.column - 1)
  return { file, line: location.start.line, code: shorten(lines.join('\n')), mutant: shorten(replacement) }
}

const isSame = (a: Omit<Equivalent, 'why'>, b: Omit<Equivalent, 'why'>): boolean =>
  a.file === b.file && a.code === b.code && a.mutant === b.mutant

async function testArea(stryker: string, area: Area): Promise<Outcome> {
  const { Stryker } = await import(pathToFileURL(stryker).href)
  const temporary = mkdtempSync(join(tmpdir(), 'tollgate-mutation-'))
  const startedAt = performance.now()
  try {
    const mutants: readonly Mutant[] = await new Stryker({
      mutate: area.code,
      plugins: [join(HERE, 'runner.ts')],
      testRunner: 'tap-in-process',
      testRunnerNodeArgs: ['--no-warnings'],
      tapInProcess: {
        files: area.tests,
        hasState: area.hasState === true,
        testMs: 1000 * (area.testSeconds ?? TEST_SECONDS),
      },
      coverageAnalysis: 'perTest',
      // Names and words: the types notice most of the names, and no rule depends on the words.
      mutator: { excludedMutations: ['StringLiteral'] },
      // Nothing is compiled, and Stryker knows no TypeScript 7.
      tsconfigFile: 'none',
      disableTypeChecks: false,
      concurrency: 1,
      maxTestRunnerReuse: RUNS_PER_PROCESS,
      dryRunTimeoutMinutes: DRY_RUN_MINUTES,
      timeoutMS: TIME_LIMIT_MS,
      tempDirName: temporary,
      reporters: ['progress-append-only', 'survivors'],
      logLevel: 'error',
      warnings: false,
    }).runMutationTest()
    const untested = mutants.filter(({ status }) => status === 'RuntimeError')
    for (const mutant of untested) {
      const { file, line, code, mutant: replacement } = describe(mutant)
      say(`untested  ${file}:${line}  ${code}  →  ${replacement}: ${shorten(mutant.statusReason ?? '')}`)
    }
    const valid = mutants.filter(({ status }) => status !== 'Ignored' && status !== 'CompileError')
    const missed = valid
      .filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
      .map(describe)
    const files = new Set(mutants.map(({ fileName }) => relative(ROOT, fileName)))
    const listed = EQUIVALENTS.filter(({ file }) => files.has(file))
    const survivors = missed.filter((one) => !listed.some((other) => isSame(one, other)))
    return {
      area,
      mutants: valid.length,
      isWhole: untested.length === 0,
      noticed: valid.length - missed.length,
      equivalent: missed.length - survivors.length,
      survivors,
      unknown: listed.filter((one) => !missed.some((other) => isSame(one, other))),
      minutes: Math.ceil((performance.now() - startedAt) / 60_000),
    }
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

const computeScore = ({ mutants, noticed, equivalent }: Outcome): number =>
  (100 * noticed) / (mutants - equivalent)

const formatRow = (outcome: Outcome): string =>
  `| ${[
    outcome.area.name,
    outcome.mutants,
    outcome.noticed,
    outcome.equivalent,
    outcome.survivors.length,
    `${computeScore(outcome).toFixed(1)} %`,
    outcome.minutes,
  ].join(' | ')} |`

/** Replaces the rows of the areas that ran. */
function writeReport(outcomes: readonly Outcome[]): void {
  const head = readFileSync(REPORT, 'utf8')
    .split('\n')
    .filter((line) => !AREAS.some(({ name }) => line.startsWith(`| ${name} |`)))
  const before = readFileSync(REPORT, 'utf8').split('\n')
  const rows = AREAS.flatMap(({ name }) => {
    const outcome = outcomes.find(({ area }) => area.name === name)
    return outcome === undefined
      ? before.filter((line) => line.startsWith(`| ${name} |`))
      : [formatRow(outcome)]
  })
  writeFileSync(REPORT, `${head.join('\n').trimEnd()}\n${rows.join('\n')}\n`)
}

async function main(words: readonly string[]): Promise<number> {
  if (words.includes('--help')) {
    say(USAGE)
    return 0
  }
  const areas = chooseAreas(words)
  const stryker = join(await installPackages(join(HERE, 'package.json')), STRYKER)
  process.env.TAP_TIMEOUT = '0'
  process.env[KEPT_ENGINES_VARIABLE] = 'yes'
  process.env.TOLLGATE_SEED = SEEDS
  const outcomes: Outcome[] = []
  for (const area of areas) {
    const outcome = await testArea(stryker, area)
    outcomes.push(outcome)
    for (const { file, line, code, mutant } of outcome.survivors)
      say(`survived  ${file}:${line}  ${code}  →  ${mutant}`)
    for (const { file, code, mutant } of outcome.unknown)
      say(`wrong     equivalents.ts lists a mutant that no run leaves: ${file}  ${code}  →  ${mutant}`)
    say(formatRow(outcome))
  }
  writeReport(outcomes.filter(({ isWhole }) => isWhole))
  const isEnough = (outcome: Outcome) =>
    outcome.isWhole && outcome.unknown.length === 0 && computeScore(outcome) >= AIM_PERCENT
  return outcomes.every(isEnough) ? 0 : 1
}

await runTestProgram(USAGE, (_, words) => main(words))
