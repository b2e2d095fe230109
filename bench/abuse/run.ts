/**
 * The bench of abuse: what one hostile client does to the memory of a gateway and to the calls of another customer, who
 * makes small calls at a steady rate meanwhile. The gateway is one process with billing on; the upstream answers at once.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { chooseCores, endAll, pin } from '../harness/children.ts'
import { FLAG, givenOptions, TEXT, UsageError, wholeNumber } from '../harness/command-line.ts'
import { ROOT } from '../harness/machine.ts'
import { openFilesLimit, residentBytes } from '../harness/proc.ts'
import { interruptible, type RunFacts, runProgram, sayOnStderr, withFacts } from '../harness/program.ts'
import { computeQuantiles, type Quantiles, quantile } from '../harness/statistics.ts'
import { enterWorkFolder } from '../harness/work-folder.ts'
import { requestBody } from '../load/request.ts'
import type { RunningSubject } from '../subjects/subject.ts'
import { createKey, tollgate } from '../subjects/tollgate.ts'
import { startUpstream } from '../upstream/start.ts'
import type { Answers, AttackOrder } from './attacker.ts'
import { ATTACKS, type Attack } from './attacks.ts'
import { longestTurns, type Turns, watchVariables } from './event-loop-delay.ts'

const DEFAULT_SECONDS = 6
const MS_PER_SECOND = 1000
/** What every attack is to stay within: the longest turn of the event loop, and what is added to the p99 of the customer. */
const AIM_TURN_MS = 50
const AIM_ABOVE_REST_MS = 50
const REST_MS = 1_500
const CALL_EVERY_MS = 20
const MEMORY_EVERY_MS = 50
const BYTES_PER_MB = 1e6
const NO_ATTACK = 'no attack'

interface Row extends Quantiles {
  readonly name: string
  readonly p90Ms: number
  readonly calls: number
  /** Of the customer's calls, those that were not answered with 200. */
  readonly failed: number
  readonly residentMb: number
  readonly longestTurns: Turns
  readonly answers: Answers
}

interface Results extends RunFacts {
  /** Of each attack. */
  readonly seconds: number
  readonly rows: readonly Row[]
}

interface Plan {
  readonly attackMs: number
  readonly attacks: readonly Attack[]
}

/** The customer's calls, one after another at a steady rate: a late one does not hold the next back. */
async function customerCalls(running: RunningSubject, forMs: number) {
  const { port, path, headers, model } = running.plain
  const request = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }
  const body = requestBody('small', model)
  const latencies: number[] = []
  let failed = 0
  const call = async () => {
    const startedAt = performance.now()
    const isAnswered = await fetch(`http://127.0.0.1:${port}${path}`, { ...request, body }).then(
      async (response) => response.ok && (await response.text()) !== '',
      () => false,
    )
    if (!isAnswered) failed++
    latencies.push(performance.now() - startedAt)
  }
  const calls: Promise<void>[] = []
  for (const endsAt = performance.now() + forMs; performance.now() < endsAt; await delay(CALL_EVERY_MS))
    calls.push(call())
  await Promise.all(calls)
  const p90Ms = quantile(
    latencies.toSorted((a, b) => a - b),
    0.9,
  )
  return { ...computeQuantiles(latencies), p90Ms, calls: latencies.length, failed }
}

interface Watched {
  readonly running: RunningSubject
  readonly delayFile: string
  readonly attackMs: number
}

async function during(
  { running, delayFile, attackMs }: Watched,
  name: string,
  attacker: Worker | null,
): Promise<Row> {
  const { gateway } = running.processes()
  await longestTurns(gateway[0]!, delayFile)
  let peak = 0
  const look = () => {
    peak = Math.max(peak, residentBytes(gateway))
  }
  const watch = setInterval(look, MEMORY_EVERY_MS)
  try {
    // The attack ends in time also where calls wait for much longer.
    const stopped = delay(attackMs).then(() => listAnswers(attacker))
    const measured = await customerCalls(running, attackMs)
    const answers = await stopped
    const turns = await longestTurns(gateway[0]!, delayFile)
    return { name, ...measured, residentMb: peak / BYTES_PER_MB, longestTurns: turns, answers }
  } finally {
    clearInterval(watch)
  }
}

async function listAnswers(attacker: Worker | null): Promise<Answers> {
  if (attacker === null) return {}
  const told = new Promise<Answers>((resolve) => attacker.once('message', resolve))
  attacker.postMessage('stop')
  const answers = await told
  await attacker.terminate()
  return answers
}

async function startAttacker(order: AttackOrder): Promise<Worker> {
  const worker = new Worker(new URL('attacker.ts', import.meta.url), { workerData: order })
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  return worker
}

async function measure(
  folder: string,
  { attackMs, attacks }: Plan,
): Promise<Pick<Results, 'seconds' | 'rows'>> {
  const cores = chooseCores()
  if (cores) pin(process.pid, cores.load)
  const pace = { chunks: 1, perSecond: 1 }
  const upstream = await startUpstream(
    { burst: pace, brief: pace, paced: pace, held: pace, tls: null, port: 0 },
    cores?.load ?? null,
  )
  const openFiles = openFilesLimit()
  const delayFile = join(folder, 'event-loop-delay')
  const [core, enginesCore] = [cores?.subject ?? null, cores?.engines ?? null]
  const running = await tollgate.start({
    upstream,
    certFile: null,
    folder,
    cache: folder,
    core,
    enginesCore,
    openFiles,
    env: watchVariables(delayFile),
  })
  const watched = { running, delayFile, attackMs }
  running.moveEngines?.(true)
  const { port, path } = running.plain
  const keys = {
    rich: await createKey(folder, 'rich'),
    poor: await createKey(folder, 'poor'),
    none: '',
  }
  await customerCalls(running, attackMs / 2)
  const rows: Row[] = []
  const atRest = async () => {
    await delay(REST_MS)
    rows.push(await during(watched, NO_ATTACK, null))
  }
  await atRest()
  for (const { name } of attacks) {
    sayOnStderr(name)
    rows.push(await during(watched, name, await startAttacker({ port, path, keys, name })))
    await delay(REST_MS)
  }
  await atRest()
  await running.stop()
  return { seconds: attackMs / MS_PER_SECOND, rows }
}

const answered = (answers: Answers): string =>
  Object.entries(answers)
    .map(([status, count]) => `${count} x ${status}`)
    .join(', ') || '–'

/** Returns the p99 of the customer without an attack: the slower of the times before and after them. */
const readRest = (rows: readonly Row[]): number =>
  Math.max(...rows.filter(({ name }) => name === NO_ATTACK).map(({ p99Ms }) => p99Ms))

function printTable({ rows, tollgate: version }: Results): string {
  const rest = readRest(rows)
  const lines = rows.map(
    ({ name, p50Ms, p90Ms, p99Ms, maxMs, longestTurns, residentMb, failed, calls, answers }) =>
      `| ${name} | ${p50Ms.toFixed(1)} | ${p90Ms.toFixed(1)} | ${p99Ms.toFixed(0)} | ${name === NO_ATTACK ? '' : (p99Ms - rest).toFixed(0)} | ${maxMs.toFixed(0)} | ${longestTurns.delayMs.toFixed(0)} | ${longestTurns.cpuMs.toFixed(0)} | ${failed} of ${calls} | ${residentMb.toFixed(0)} | ${answered(answers)} |`,
  )
  return `## ${version}

| attack | customer's p50 ms | p90 ms | p99 ms | p99 above rest, ms | longest ms | event loop late by ms, at most | longest turn of the loop, CPU ms | customer's calls that failed | gateway's memory MB | answers to the attacker |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
${lines.join('\n')}

${beyondAims(rows)}
`
}

function beyondAims(rows: readonly Row[]): string {
  const rest = readRest(rows)
  const beyond = rows.filter(
    ({ p99Ms, longestTurns }) => p99Ms > rest + AIM_ABOVE_REST_MS || longestTurns.cpuMs > AIM_TURN_MS,
  )
  const names = beyond.length === 0 ? 'none' : beyond.map(({ name }) => name).join('; ')
  return `The aims are a turn of at most ${AIM_TURN_MS} ms of CPU, and a p99 at most ${AIM_ABOVE_REST_MS} ms above rest. Beyond them: ${names}.`
}

function toPage(results: Results, before: Results | null): string {
  const { date, machine, node, seconds } = results
  return `# What one hostile client does to others

One gateway process with billing on. A customer makes ${MS_PER_SECOND / CALL_EVERY_MS} small calls a second while the attacker, with another
account or none, sends the same request again and again over a few connections for ${seconds} s. The customer's p99 at rest is the
slower one of the times before and after all attacks. Memory is the most that was resident at any look, ${MEMORY_EVERY_MS} ms
apart; it is not given back at once, so a row may show what the one before it took.

- ${date}, ${machine.cpu}, ${machine.cores} cores, Node.js ${node}

${printTable(results)}${before === null ? '' : `\n${printTable(before)}`}`
}

const OPTIONS = { before: TEXT, only: TEXT, out: TEXT, seconds: TEXT, help: FLAG }

const USAGE = `npm run bench:abuse -- [options]

  --before FILE  results of another version, as abuse.json has them, for the same page
  --only TEXT    only attacks whose names contain the text
  --out DIR      write the results there
  --seconds N    how long each attack lasts; ${DEFAULT_SECONDS} by default
  --help         this text
`

interface Options extends Plan {
  readonly before: string | null
  readonly out: string
  readonly help: boolean
}

const run = ({ before, out, ...plan }: Options): Promise<number> =>
  interruptible(sayOnStderr, async () => {
    const work = await enterWorkFolder()
    try {
      const results: Results = await withFacts(sayOnStderr, () => measure(work.folder, plan))
      const earlier = before === null ? null : (JSON.parse(readFileSync(before, 'utf8')) as Results)
      writeFileSync(join(out, 'abuse.json'), `${JSON.stringify(results, null, 2)}\n`)
      writeFileSync(join(out, 'abuse.md'), toPage(results, earlier))
      process.stdout.write(printTable(results))
      return 0
    } finally {
      await endAll()
      work.leave()
    }
  })

await runProgram(
  (args): Options => {
    const { before = null, help = false, ...given } = givenOptions(args, OPTIONS)
    const { only = '', out = join(ROOT, 'bench/results'), seconds = String(DEFAULT_SECONDS) } = given
    const attacks = ATTACKS.filter(({ name }) => name.includes(only))
    if (attacks.length === 0) throw new UsageError(`no attack has "${only}" in its name`)
    return { before, out, help, attacks, attackMs: wholeNumber('seconds', seconds, 1, 600) * MS_PER_SECOND }
  },
  () => USAGE,
  run,
)
