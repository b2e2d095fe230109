/** The supervisor and its children. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { hashToken } from '../../../src/core/keys/bearer-token.ts'
import type { Boot } from '../../../src/server/messages.ts'
import { readReports } from '../../../src/server/process-reports.ts'
import { type BannerFacts, printBanner, printFactsJson } from '../../../src/server/supervisor/banner.ts'
import { ServiceChild } from '../../../src/server/supervisor/children.ts'
import { provideSignInToken } from '../../../src/server/supervisor/first-operator.ts'
import { until } from '../../support/eventually.ts'
import { startDatabase } from '../postgres/support.ts'

const BOOT = {} as Boot

t.test('a child that cannot begin is reported', async (t) => {
  // A machine that has no room for another process: no process begins, and none exits.
  t.test('it is an error of the start, and there is nothing to wait for at the end', async (t) => {
    t.intercept(process, 'execPath', { value: '/nowhere/node' })
    const child = new ServiceChild({
      role: 'settler',
      index: 0,
      log: { debug() {}, info() {}, error() {} },
      onMessage() {},
      onReady() {},
    })
    await t.rejects(child.start(BOOT), {
      message: 'settler-0 could not be started: spawn /nowhere/node ENOENT',
    })
    t.equal(child.pid, null)
    await child.drain(0)
  })
})

t.test('a late process is no second one', async (t) => {
  // A process that is ready the moment at which its supervisor gives it up.
  const READY_BOUND_MS = 30_000
  /** Long enough for another to be started. */
  const A_WHILE_MS = 2_000

  t.test('is replaced by one process, not by two', async (t) => {
    const folder = t.testdir({})
    process.env.LATE_CHILD_FOLDER = folder
    const program = process.argv[1]!
    process.argv[1] = fileURLToPath(new URL('./late-child.ts', import.meta.url))
    t.teardown(() => {
      process.argv[1] = program
    })
    let giveUp = () => {}
    const later = setTimeout
    t.intercept(globalThis, 'setTimeout', {
      value: (work: () => void, ms: number) => {
        if (ms === READY_BOUND_MS) giveUp = work
        return later(work, ms)
      },
    })
    const child = new ServiceChild({
      role: 'settler',
      index: 0,
      log: { debug() {}, info() {}, error() {} },
      onMessage() {},
      onReady() {},
    })
    t.teardown(() => child.drain(0))
    const started = () => readdirSync(folder).filter((name) => name.startsWith('process-')).length
    await child.start(BOOT)
    process.kill(child.pid!, 'SIGKILL')
    await until('another process is on its way', () => started() === 2)

    writeFileSync(join(folder, 'go'), '')
    // This process hears nothing meanwhile: what the child says is heard once it has been given up.
    while (!existsSync(join(folder, 'ready')));
    giveUp()
    await until('a third one is ready', () => started() >= 3 && child.isReady)
    await sleep(A_WHILE_MS)
    t.equal(started(), 3)
  })
})

t.test('reports of another version are left out', async (t) => {
  const report = {
    process: 'gateway 0',
    pid: 1,
    host: 'a',
    version: '0.1.0',
    started_at: new Date(0).toISOString(),
    engines: {},
    gauges: {},
    channels: [],
  }

  t.test('a report that cannot be read hides no other', async (t) => {
    const answers = [JSON.stringify({ ...report, pid: 'one' }), JSON.stringify(report)]
    t.same(readReports(answers), [report])
  })

  t.test('no answer is no empty list', async (t) => {
    t.equal(readReports(null), null)
    t.same(readReports([]), [])
  })
})

t.test('banner shows the key on a terminal alone', async (t) => {
  const KEY = `sk-tollgate-${'0'.repeat(64)}`
  const FACTS: BannerFacts = {
    version: '1',
    baseUrl: 'http://127.0.0.1:8080',
    publicUrl: null,
    consoleUrl: 'http://127.0.0.1:8787/console',
    signInUrl: 'http://127.0.0.1:8787/console/sign-in#link=secret-token',
    takenPort: null,
    startMs: 1,
    key: KEY,
    runFile: '/data/run.json',
    credit: '1',
    model: 'demo-chat',
    configPath: null,
    dataDir: '/data',
    engines: [],
  }

  t.test('on a terminal the key stands in the lines to copy; elsewhere they read it from its file', (t) => {
    const shown = printBanner(FACTS, true)
    t.equal(shown.split(KEY).length, 4)
    t.notMatch(shown, 'TOLLGATE_KEY')
    const kept = printBanner(FACTS, false)
    t.notMatch(kept, KEY)
    t.match(
      kept,
      /^export TOLLGATE_KEY=\$\(node -p 'JSON.parse\(fs.readFileSync\("\/data\/run.json"\)\).first_key'\)$/m,
    )
    t.match(shown, 'secret-token')
    t.notMatch(kept, 'secret-token')
    t.equal(kept.split('"Authorization: Bearer $TOLLGATE_KEY"').length, 3)
    t.end()
  })

  t.test('the console comes first, and each agent has its command', (t) => {
    const places = ['sign-in#link=', 'Base URL', 'API key', 'connect claude', 'connect codex', 'curl -N'].map(
      (text) => printBanner(FACTS, true).indexOf(text),
    )
    t.notOk(places.includes(-1))
    t.same(
      places,
      places.toSorted((a, b) => a - b),
    )
    t.notMatch(printBanner({ ...FACTS, model: null }, true), 'connect')
    t.end()
  })

  t.test('the same for a program', (t) => {
    t.match(JSON.parse(printFactsJson(FACTS, true)), { key: KEY, run_file: '/data/run.json' })
    t.match(JSON.parse(printFactsJson(FACTS, false)), {
      key: null,
      sign_in_url: null,
      run_file: '/data/run.json',
    })
    t.end()
  })
})

t.test('one operator of services that start at once', async (t) => {
  // Services that start at once on an empty database: one makes the first operator, and the others start all the same.
  const SERVICES = 3

  t.test('one sign-in token comes out, and it signs in', async (t) => {
    const { database } = await startDatabase(t)
    let waiting = 0
    const allLooked = Promise.withResolvers<void>()
    /** Waits until every service has looked for users: none of them finds one. */
    const list = async () => {
      const users = await database.users.list()
      if (++waiting === SERVICES) allLooked.resolve()
      await allLooked.promise
      return users
    }
    const tokens = await Promise.all(
      Array.from({ length: SERVICES }, () =>
        provideSignInToken({ ...database, users: { ...database.users, list } }),
      ),
    )
    const [token = '', ...others] = tokens.filter((one) => one !== null)
    t.same(others, [])
    t.equal((await database.users.list()).length, 1)
    t.equal((await database.accounts.list()).length, 1, 'no account of those that came too late')
    const session = { tokenHash: hashToken('a session'), address: '192.0.2.1', userAgent: 'a browser' }
    const { userId } = await database.sessions.signInByLink(hashToken(token), session)
    t.match(await database.users.show(userId), { installationRole: 'operator' })
  })
})
