/**
 * The bench of abuse: what one hostile client does to the memory of a gateway and to the calls of another customer, who
 * makes small calls at a steady rate meanwhile. The gateway is one process with billing on; the upstream answers at once.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { chooseCores, endAll, pin } from '../harness/children.ts'
import { FLAG, givenOptions, TEXT } from '../harness/command-line.ts'
import { ROOT } from '../harness/machine.ts'
import { openFilesLimit, residentBytes } from '../harness/proc.ts'
import { interruptible, type RunFacts, runProgram, sayOnStderr, withFacts } from '../harness/program.ts'
import { type Quantiles, quantilesOf } from '../harness/statistics.ts'
import { enterWorkFolder } from '../harness/work-folder.ts'
import { requestBody } from '../load/request.ts'
import type { RunningSubject } from '../subjects/subject.ts'
import { poorKeyOf, tollgate } from '../subjects/tollgate.ts'
import { startUpstream } from '../upstream/start.ts'
import type { Answers, AttackOrder } from './attacker.ts'
import { ATTACKS } from './attacks.ts'
import { longestTurns, type Turns, watchVariables } from './event-loop-delay.ts'

const ATTACK_MS = 6_000
const REST_MS = 1_500
const CALL_EVERY_MS = 20
const MEMORY_EVERY_MS = 50
const BYTES_PER_MB = 1e6
const NO_ATTACK = 'no attack'

interface Row extends Quantiles {
  readonly name: string
  readonly calls: number
  /** Of the customer's calls, those that were not answered with 200. */
  readonly failed: number
  readonly residentMb: number
  readonly longestTurns: Turns
  readonly answers: Answers
}

interface Results extends RunFacts {
  readonly rows: readonly Row[]
}

/** The customer's calls, one after another at a steady rate: a late one does not hold the next back. */
async function customerCalls(running: RunningSubject, forMs: number) {
  const { port, path, headers, modelSuffix } = running.plain
  const request = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }
  const body = requestBody('small', modelSuffix)
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
  return { ...quantilesOf(latencies), calls: latencies.length, failed }
}

interface Watched {
  readonly running: RunningSubject
  readonly delayFile: string
}

async function during({ running, delayFile }: Watched, name: string, attacker: Worker | null): Promise<Row> {
  const { gateway } = running.processes()
  await longestTurns(gateway[0]!, delayFile)
  let peak = 0
  const look = () => {
    peak = Math.max(peak, residentBytes(gateway))
  }
  const watch = setInterval(look, MEMORY_EVERY_MS)
  try {
    // The attack ends in time also where calls wait for much longer.
    const stopped = delay(ATTACK_MS).then(() => answersOf(attacker))
    const measured = await customerCalls(running, ATTACK_MS)
    const answers = await stopped
    const turns = await longestTurns(gateway[0]!, delayFile)
    return { name, ...measured, residentMb: peak / BYTES_PER_MB, longestTurns: turns, answers }
  } finally {
    clearInterval(watch)
  }
}

async function answersOf(attacker: Worker | null): Promise<Answers> {
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

async function measure(folder: string): Promise<{ rows: readonly Row[] }> {
  const cores = chooseCores()
  if (cores) pin(process.pid, cores.load)
  const pace = { chunks: 1, perSecond: 1 }
  const upstream = await startUpstream(
    { burst: pace, brief: pace, paced: pace, held: pace, tls: null },
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
  const watched = { running, delayFile }
  running.moveEngines?.(true)
  const { port, path, headers } = running.plain
  const rich = headers.authorization!.replace('Bearer ', '')
  const keys = { rich, poor: await poorKeyOf(folder), none: '' }
  await customerCalls(running, ATTACK_MS / 2)
  const rows = [await during(watched, NO_ATTACK, null)]
  for (const { name } of ATTACKS) {
    sayOnStderr(name)
    rows.push(await during(watched, name, await startAttacker({ port, path, keys, name })))
    await delay(REST_MS)
  }
  await running.stop()
  return { rows }
}

const answered = (answers: Answers): string =>
  Object.entries(answers)
    .map(([status, count]) => `${count} x ${status}`)
    .join(', ') || '–'

function tableOf({ rows, tollgate: version }: Results): string {
  const lines = rows.map(
    ({ name, p50Ms, p99Ms, maxMs, longestTurns, residentMb, failed, calls, answers }) =>
      `| ${name} | ${p50Ms.toFixed(1)} | ${p99Ms.toFixed(0)} | ${maxMs.toFixed(0)} | ${longestTurns.delayMs.toFixed(0)} | ${longestTurns.cpuMs.toFixed(0)} | ${failed} of ${calls} | ${residentMb.toFixed(0)} | ${answered(answers)} |`,
  )
  return `## ${version}

| attack | customer's p50 ms | p99 ms | longest ms | event loop late by ms, at most | longest turn of the loop, CPU ms | customer's calls that failed | gateway's memory MB | answers to the attacker |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
${lines.join('\n')}
`
}

function pageOf(results: Results, before: Results | null): string {
  const { date, machine, node } = results
  return `# What one hostile client does to others

One gateway process with billing on. A customer makes ${1000 / CALL_EVERY_MS} small calls a second while the attacker sends the same
request again and again over a few connections for ${ATTACK_MS / 1000} s. Memory is the most that was resident at any look, ${MEMORY_EVERY_MS} ms
apart; it is not given back at once, so a row may show what the one before it took.

- ${date}, ${machine.cpu}, ${machine.cores} cores, Node.js ${node}

${tableOf(results)}${before === null ? '' : `\n${tableOf(before)}`}`
}

const OPTIONS = { before: TEXT, out: TEXT, help: FLAG }

const USAGE = `npm run bench:abuse -- [options]

  --before FILE  results of another version, as abuse.json has them, for the same page
  --out DIR      write the results there
  --help         this text
`

interface Options {
  readonly before: string | null
  readonly out: string
  readonly help: boolean
}

const run = ({ before, out }: Options): Promise<number> =>
  interruptible(sayOnStderr, async () => {
    const work = await enterWorkFolder()
    try {
      const results: Results = await withFacts(sayOnStderr, () => measure(work.folder))
      const earlier = before === null ? null : (JSON.parse(readFileSync(before, 'utf8')) as Results)
      writeFileSync(join(out, 'abuse.json'), `${JSON.stringify(results, null, 2)}\n`)
      writeFileSync(join(out, 'abuse.md'), pageOf(results, earlier))
      process.stdout.write(tableOf(results))
      return 0
    } finally {
      await endAll()
      work.leave()
    }
  })

await runProgram(
  (args): Options => {
    const { before = null, out = join(ROOT, 'bench/results'), help = false } = givenOptions(args, OPTIONS)
    return { before, out, help }
  },
  () => USAGE,
  run,
)
