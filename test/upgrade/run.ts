/**
 * `npm run upgrade -- --from REV`: a rolling upgrade from another version to this one, under load. The version of REV
 * serves on its own, both serve side by side on the same engines, then this one alone. Checks that no call fails, that
 * each is booked once, that the books agree, and that the former version refuses the database afterwards or serves it.
 * Needs REV in this clone, with the same dependencies. Ends with 1 when a check fails.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { connect } from '../../src/postgres/connection.ts'
import { callLogAt } from '../support/connections.ts'
import type { startEngines } from '../support/engines.ts'
import { eventually, startService, type TestService, testConfig, until } from '../support/service.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PHASE_MS = 10_000
const CALLERS = 8
const CREDIT = '1000000000'
const CONFIG = testConfig({ fast: { simulate: 'tokens=3' }, slow: { simulate: 'tokens=20,tps=20' } })

interface Made {
  calls: number
  failed: string[]
  longestMs: number
}

/** Calls without a pause, half of them streams, until `isOver`. */
async function callOn(services: readonly TestService[], key: string, isOver: () => boolean, made: Made) {
  for (let turn = 0; !isOver(); turn++) {
    const service = services[turn % services.length]!
    const body = { model: turn % 4 === 0 ? 'slow' : 'fast', stream: turn % 2 === 0, max_tokens: 50 }
    const begun = performance.now()
    try {
      const response = await service.chat(key, { ...body, messages: [{ role: 'user', content: 'Hello!' }] })
      const text = await response.text()
      if (response.status !== 200 || (body.stream && !text.includes('[DONE]')))
        made.failed.push(`${response.status} ${text.slice(-200)}`)
    } catch (error) {
      made.failed.push(String(error))
    }
    made.calls += 1
    made.longestMs = Math.max(made.longestMs, performance.now() - begun)
  }
}

const say = (line: string) => process.stdout.write(`${line}\n`)

const faults: string[] = []
function check(isSo: boolean, what: string): void {
  say(`${isSo ? 'ok' : 'FAILED'}  ${what}`)
  if (!isSo) faults.push(what)
}

const { from } = parseArgs({ options: { from: { type: 'string' } } }).values
if (from === undefined) throw new Error('Name the version to upgrade from: npm run upgrade -- --from REV')

const handlers: (() => unknown)[] = []
const t = { teardown: (handler: () => unknown) => void handlers.unshift(handler) }
try {
  const former = join(mkdtempSync(join(tmpdir(), 'tollgate-upgrade-')), 'former')
  execFileSync('git', ['worktree', 'add', '--detach', former, from], { cwd: ROOT, stdio: 'pipe' })
  t.teardown(() => execFileSync('git', ['worktree', 'remove', '--force', former], { cwd: ROOT }))
  symlinkSync(join(ROOT, 'node_modules'), join(former, 'node_modules'))

  const ofFormer = (module: string) => import(pathToFileURL(join(former, 'test/support', module)).href)
  const startFormerEngines: typeof startEngines = (await ofFormer('engines.ts')).startEngines
  const startFormer: typeof startService = (await ofFormer('service.ts')).startService
  const engines = await startFormerEngines(t)
  const old = await startFormer(t, { engines, config: CONFIG })
  const { key, accountId } = await old.newKey(CREDIT)

  const made: Made = { calls: 0, failed: [], longestMs: 0 }
  const phase = async (name: string, services: readonly TestService[], during: Promise<unknown>) => {
    const before = made.calls
    made.longestMs = 0
    let isOver = false
    const calling = Array.from({ length: CALLERS }, () => callOn(services, key, () => isOver, made))
    await Promise.all([sleep(PHASE_MS), during]).finally(() => (isOver = true))
    await Promise.all(calling)
    say(`    ${name}: ${made.calls - before} calls, the longest ${Math.round(made.longestMs)} ms`)
  }
  await phase('the former version', [old], Promise.resolve())
  let current: TestService | null = null
  await phase(
    'the former version, while this one migrates and starts',
    [old],
    startService(t, { engines, config: CONFIG }).then((service) => (current = service)),
  )
  const fresh = current as TestService | null
  if (fresh === null) throw new Error('this version did not start')
  await phase('both', [old, fresh], Promise.resolve())
  await phase('this version, while the former one stops', [fresh], old.stop())
  check(made.failed.length === 0, `${made.calls} calls, none failed ${made.failed.slice(0, 3).join('; ')}`)

  const sql = connect(engines.databaseUrl, { max: 1, name: 'upgrade' })
  t.teardown(() => sql.end())
  const booked = async () =>
    Number(
      (await sql<[{ n: bigint }]>`SELECT count(*) AS n FROM usage_rows WHERE account_id = ${accountId}`)[0].n,
    )
  await until('all calls are booked', async () => (await booked()) >= made.calls)
  check((await booked()) === made.calls, 'each call has one row')
  const callLog = callLogAt(t, engines.clickhouseUrl)
  const differences = await eventually('the log has all rows', async () => {
    const found = (await fresh.database.audits.verifyWallets(callLog)).differences
    return found.length === 0 ? found : undefined
  }).catch(async () => (await fresh.database.audits.verifyWallets(callLog)).differences)
  check(
    differences.length === 0,
    `wallets, ledger, calls and call log agree ${JSON.stringify(differences.slice(0, 3))}`,
  )

  const outcome = await old.start().then(
    () => 'serves',
    (error: Error) => (/newer version/.test(error.message) ? 'is refused' : error.message),
  )
  check(['serves', 'is refused'].includes(outcome), `the former version ${outcome}`)
} finally {
  for (const handler of handlers) await handler()
}
process.exit(faults.length > 0 ? 1 : 0)
