/** What a newcomer does: start in an empty folder, copy the printed lines, stop, start again. On embedded engines. */
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { readRunning } from '../../../src/embedded/data-dir.ts'
import { readPrivateJson } from '../../../src/embedded/private-file.ts'
import { EngineRecord } from '../../../src/embedded/supervisor.ts'
import { testDataDir } from '../../support/engines.ts'
import { eventually, type LogJson, until } from '../../support/service.ts'
import { isRunning } from '../chaos/processes.ts'
import { NPM_START, type ServeProcess, serveProcess } from './serve-process.ts'

const run = promisify(execFile)
const STAND_IN = fileURLToPath(new URL('./curl-stand-in.ts', import.meta.url))
const USUAL_PORT = 8080

const STRIP_TYPES = fileURLToPath(new URL('../../../scripts/strip-types.ts', import.meta.url))

await run(process.execPath, [STRIP_TYPES])
const cwd = await testDataDir(t)
const dataDir = join(cwd, '.tollgate')

/** Runs a printed line as it is; behind everything on the PATH stands something that reads it like curl. */
const bin = t.testdir()
writeFileSync(join(bin, 'curl'), `#!/bin/sh\nexec '${process.execPath}' '${STAND_IN}' "$@"\n`)
chmodSync(join(bin, 'curl'), 0o755)
async function shell(line: string): Promise<string> {
  const key = readRunning(dataDir)?.first_key ?? ''
  const env = { ...process.env, TOLLGATE_KEY: key, PATH: `${process.env.PATH}${delimiter}${bin}` }
  return (await run('sh', ['-c', line], { env })).stdout
}

interface Banner {
  readonly baseUrl: string
  readonly key: string
  readonly balance: string
  readonly call: string
  readonly log: string
}

/** Starts it and waits for what it prints. */
async function start(env: Readonly<Record<string, string>> = {}): Promise<Banner & { serve: ServeProcess }> {
  const serve = serveProcess(t, { cwd, env, command: NPM_START })
  const text = await eventually('the banner', () =>
    serve.stdout().includes('Stop with Ctrl-C') ? serve.stdout() : undefined,
  ).catch((error: Error) => {
    throw new Error(`${error.message}\n${serve.stdout()}${serve.stderr()}`)
  })
  const find = (pattern: RegExp): string => {
    const found = pattern.exec(text)?.[1]
    if (found === undefined) throw new Error(`no ${pattern} in ${text}`)
    return found
  }
  return {
    serve,
    baseUrl: find(/Base URL\s+(http\S+)\/v1/),
    // No terminal: what is printed is kept in logs.
    key: await shell(`${find(/^(export TOLLGATE_KEY=.*)$/m)}; printf %s "$TOLLGATE_KEY"`),
    balance: find(/Balance\s+(\S+) credits/),
    call: find(/^(curl -N .*)$/m),
    log: find(/^(curl '.*)$/m),
  }
}

const lastRow = async (log: string): Promise<LogJson | undefined> =>
  (JSON.parse(await shell(log)) as { data: LogJson[] }).data[0]

/** The processes of the engines, as the service records them. */
const enginePids = (): number[] =>
  readdirSync(join(dataDir, 'engines'))
    .map((file) => readPrivateJson(join(dataDir, 'engines', file), EngineRecord)?.process?.pid)
    .filter((pid) => pid !== undefined)

const gauge = async (baseUrl: string, line: string): Promise<string | undefined> => {
  const text = await (await fetch(`${baseUrl}/metrics`)).text()
  return text
    .split('\n')
    .find((candidate) => candidate.startsWith(line))
    ?.slice(line.length)
    .trim()
}

const starting = start()
await until('engines are started', () => existsSync(join(dataDir, 'engines')))
/** Held by us, if nobody else has it; from before the next start on. */
const holder = createServer()
await new Promise<void>((resolve) => {
  holder.once('error', () => resolve())
  holder.listen(USUAL_PORT, '127.0.0.1', resolve)
})
t.teardown(() => holder.close())

const first = await starting
let { balance } = first

await t.test('with the usual port taken while it starts it takes another and says so', async (t) => {
  t.not(new URL(first.baseUrl).port, String(USUAL_PORT))
  t.match(first.serve.stdout(), `port ${USUAL_PORT} is taken`)
  t.match(readRunning(dataDir), { pid: first.serve.pid, base_url: first.baseUrl })
})

await t.test('the printed lines stream a call and show what it cost', async (t) => {
  const stream = await shell(first.call)
  t.match(stream, /^data: \{/)
  t.match(stream, /\ndata: \[DONE\]\n\n$/)
  const row = await eventually('the row is readable', () => lastRow(first.log))
  t.match(row, { status: 'success' })
  const answer = await fetch(`${first.baseUrl}/v1/key/balance`, {
    headers: { authorization: `Bearer ${first.key}` },
  })
  const { remaining } = (await answer.json()) as { remaining: string }
  t.equal(
    remaining,
    printCredits(parseCredits(balance) - parseCredits(row.cost)),
    'the balance fell by the cost of the row',
  )
  t.not(row.cost, '0')
  balance = remaining
})

await t.test('an engine that is killed is logged, comes back, and calls work', async (t) => {
  const up = () => gauge(first.baseUrl, 'tollgate_engine_up{engine="clickhouse"}')
  t.equal(await up(), '1')
  const record = join(dataDir, 'engines', 'clickhouse.json')
  // Each crash is answered more slowly: in the end it is down for long enough to be seen so.
  await until('metrics tell', async () => {
    const pid = readPrivateJson(record, EngineRecord)?.process?.pid
    if (pid !== undefined && isRunning(pid)) process.kill(pid, 'SIGKILL')
    return (await up()) === '0'
  })
  await until('the log tells', () => /"engine":"clickhouse","event":"crashed"/.test(first.serve.stderr()))
  t.match(await shell(first.call), /\[DONE\]/, 'calls go on')
  await until('it is back', async () => (await up()) === '1')
  const { request_id: before } = (await lastRow(first.log)) ?? {}
  t.match(await shell(first.call), /\[DONE\]/)
  await until('the log goes on', async () => (await lastRow(first.log))?.request_id !== before)
})

await t.test('Ctrl-C stops everything it started', async (t) => {
  const engines = enginePids()
  t.equal(engines.length, 4)
  first.serve.signalGroup('SIGINT')
  t.equal(await first.serve.ended, 0)
  t.same(engines.filter(isRunning), [])
  t.equal(readRunning(dataDir), null)
  t.notOk(readdirSync(dataDir).includes('run.json'))
  t.notMatch(
    first.serve.stdout() + first.serve.stderr(),
    readFileSync(join(dataDir, 'master-key'), 'utf8').trim(),
  )
})

await t.test('the next start finds all again, after kill -9 too', async (t) => {
  for (const end of ['SIGKILL', 'SIGTERM'] as const) {
    const next = await start({ TOLLGATE_PORT: '0' })
    t.equal(next.key, first.key)
    t.ok(parseCredits(next.balance) < parseCredits(balance), 'what was used stays used')
    balance = next.balance
    const before = await eventually('the rows of the run before are there', () => lastRow(next.log))
    t.match(await shell(next.call), /\[DONE\]/)
    await until('the row of this run is there', async () => {
      const row = await lastRow(next.log)
      return row?.request_id !== before.request_id && row?.status === 'success'
    })
    const engines = enginePids()
    process.kill(next.serve.pid, end)
    t.equal(await next.serve.ended, end === 'SIGKILL' ? null : 0)
    await until('its engines have ended', () => !engines.some(isRunning))
  }
})
