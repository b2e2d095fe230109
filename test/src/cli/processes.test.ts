/** Commands on real engines, beside a running service and without one; processes of their own where that is the subject. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { BOOKED_COLUMNS, type Settlement } from '../../../schemas/call-log/columns.ts'
import { openEngines } from '../../../src/cli/engines.ts'
import { RealWiring } from '../../../src/cli/main.ts'
import { run } from '../../../src/cli/program.ts'
import type { Wiring } from '../../../src/cli/wiring.ts'
import { readSettings } from '../../../src/config/settings.ts'
import { lockDataDir } from '../../../src/embedded/data-dir.ts'
import { readMasterKey } from '../../../src/postgres/accounts/master-key.ts'
import { LOOK_BACK_ROWS, SINCE_ROWS } from '../../../src/postgres/call-log/calls.ts'
import { type Database, openDatabase } from '../../../src/postgres/database.ts'
import { migrate } from '../../../src/postgres/migrate.ts'
import { listExcess } from '../../../src/postgres/roles.ts'
import { startEngines, testDataDir } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import { RUN_ADDRESS } from '../../support/run-address.ts'
import { relayTo } from '../postgres/relay.ts'
import { newAccount, openFresh, settlement, type TestDatabase } from '../postgres/support.ts'
import { command, commandsOn, ENTRY, noEngines, tollgate } from './support.ts'

const engines = await startEngines(t, { only: ['postgres'] })

/** The command in this process: one of its own takes a second to start. */
const commandIn = (words: readonly string[], env: Record<string, string>) =>
  command(words, new RealWiring(env))

t.test('running service is used', async (t) => {
  // A running service, as far as the command line can tell: its engines, its lock and its run.json.
  await migrate(engines.databaseUrl)
  const masterKey = readMasterKey(engines.dataDir).toString('base64')
  const lock = await lockDataDir(engines.dataDir)
  const configFile = join(engines.dataDir, 'service.yaml')
  // A variable that only the service has.
  writeFileSync(
    configFile,
    `trial_credit: "77"
models:
  - { id: sonata-large, pricing: { unit: 1M_tokens, input: "1", output: "1" } }
channels:
  - { id: one, protocol: chat-completions, base_url: "\${NOWHERE_URL}", api_key: k, models: { sonata-large: b } }
`,
  )
  t.teardown(() => lock.release())
  lock.writeRunFile({ ...RUN_ADDRESS, database_url: engines.databaseUrl, config_file: configFile })
  const env = { TOLLGATE_DATA_DIR: engines.dataDir }
  const here = { TOLLGATE_DATA_DIR: '/proc/nowhere', DATABASE_URL: engines.databaseUrl }

  t.test('a command works on the database that run.json names', async (t) => {
    const created = await tollgate(['account', 'create', '--name', 'Acme', '--json'], env)
    t.match(created, { code: 0, stderr: '' })
    const { id, wallet } = JSON.parse(created.stdout)
    t.equal(wallet.remaining, '77', 'with the trial credit of the configuration that it names')
    const shown = await commandIn(['account', 'show', id, '--json'], {
      ...here,
      TOLLGATE_MASTER_KEY: masterKey,
    })
    t.match(shown, { code: 0, stdout: created.stdout }, 'and DATABASE_URL reaches the same')
    const { code, stdout } = await commandIn(['audit', '--account', id, '--json'], env)
    const actor = `operator:${userInfo().username}`
    t.equal(code, 0)
    t.match(JSON.parse(stdout).at(-1), {
      actor,
      action: 'account.create',
      subject_id: id,
      after: { name: 'Acme' },
    })
  })

  t.test('keys are checked against the models of the service', async (t) => {
    const [account] = JSON.parse((await commandIn(['account', 'list', '--json'], env)).stdout)
    const create = (models: string) =>
      commandIn(['key', 'create', '--account', account.id, '--name', 'a', '--models', models], env)
    t.match(await create('sonata-lagre'), { code: 1, stdout: '', stderr: /Did you mean "sonata-large"\?/ })
    t.match(await create('sonata-large'), { code: 0, stderr: '' })
  })

  t.test('a configuration that cannot be known is asked for', async (t) => {
    const elsewhere = { ...here, TOLLGATE_MASTER_KEY: masterKey }
    const refused = await commandIn(['account', 'create', '--name', 'Acme'], elsewhere)
    t.match(refused, {
      code: 1,
      stdout: '',
      stderr: /runs elsewhere\. Set TOLLGATE_CONFIG to the configuration/,
    })
    const named = { ...elsewhere, TOLLGATE_CONFIG: configFile }
    const { stdout } = await commandIn(['account', 'create', '--name', 'Acme', '--json'], named)
    t.equal(JSON.parse(stdout).wallet.remaining, '77')
  })

  t.test('another master key than the database was made with is named as the reason', async (t) => {
    const { code, stdout, stderr } = await commandIn(['account', 'list'], {
      ...env,
      TOLLGATE_MASTER_KEY: '00'.repeat(32),
    })
    t.match({ code, stdout, stderr }, { code: 1, stdout: '', stderr: /TOLLGATE_MASTER_KEY is not the one/ })
  })

  t.test('a database of one’s own needs its master key named', async (t) => {
    t.match(await commandIn(['account', 'list'], here), {
      code: 1,
      stderr: /TOLLGATE_MASTER_KEY is required/,
    })
  })

  t.test('an engine that does not answer is an error, not a wait', async (t) => {
    const away = { ...here, DATABASE_URL: 'postgres://u:p@127.0.0.1:9/x', TOLLGATE_MASTER_KEY: masterKey }
    t.match(await commandIn(['account', 'list'], away), { code: 1, stdout: '', stderr: /ECONNREFUSED/ })
    const audit = await commandIn(['wallet', 'verify', '--json'], env)
    t.match(audit, { code: 0, stderr: /call log/ }, 'the money is audited without the call log')
    t.match(JSON.parse(audit.stdout), { ok: true, call_log_not_compared: String })
  })
})

t.test('without service starts its own', async (t) => {
  const dir = await testDataDir(t)
  const env = { TOLLGATE_DATA_DIR: dir }

  t.test('three commands at once take their turns with one database and leave nothing running', async (t) => {
    const outcomes = await Promise.all(
      ['A', 'B', 'C'].map((name) => tollgate(['account', 'create', '--name', name, '--json'], env)),
    )
    for (const { code, stderr } of outcomes) t.same({ code, stderr }, { code: 0, stderr: '' })
    t.same(processesOf(dir), [])
    const { stdout } = await commandIn(['account', 'list', '--json'], env)
    const names = JSON.parse(stdout).map(({ name }: { name: string }) => name)
    t.same(names.sort(), ['A', 'B', 'C'])
    t.equal(statSync(join(dir, 'master-key')).mode & 0o777, 0o600)
    t.equal(readFileSync(join(dir, 'lock'), 'utf8'), '')
  })

  t.test('a command that creates the data directory says so', async (t) => {
    const missing = join(dir, 'misspelt')
    const { code, stdout, stderr } = await tollgate(['account', 'list'], { TOLLGATE_DATA_DIR: missing })
    t.same({ code, stdout }, { code: 0, stdout: 'none\n' })
    t.equal(
      stderr,
      `There was no data directory ${missing}: a new one is created, without any account. Set TOLLGATE_DATA_DIR if yours is elsewhere.\n`,
    )
  })

  t.test('a command has the role of the service in its own database', async (t) => {
    const { urls, close } = await openEngines(readSettings(env), ['postgres'])
    t.teardown(close)
    t.same(await listExcess(urls.databaseUrl ?? ''), [])
  })

  t.test('the audit starts what it needs and stops it again', async (t) => {
    const { code, stdout } = await commandIn(['wallet', 'verify', '--json'], env)
    t.equal(code, 0)
    t.same(JSON.parse(stdout), { ok: true, accounts: 3, entries: 3, differences: [] })
    t.same(processesOf(dir), [])
  })

  t.test('channels of the demonstration: the simulated provider is started to be asked', async (t) => {
    const { code, stdout } = await commandIn(['channels', '--json'], {
      ...env,
      TOLLGATE_CONFIG: demonstration(),
    })
    t.equal(code, 0)
    t.match(
      JSON.parse(stdout).map(({ id, health }: { id: string; health: string }) => [id, health]),
      [
        ['here', 'reachable'],
        ['gone', 'unreachable'],
        ['off', 'off'],
      ],
    )
    t.same(processesOf(dir), [])
  })

  t.test('config check lists every problem with its place and exits 1', async (t) => {
    const sound = await commandIn(['config', 'check', demonstration(), '--json'], env)
    t.equal(sound.code, 0)
    t.match(JSON.parse(sound.stdout), {
      ok: true,
      models: 1,
      channels: 3,
      problems: { length: 0 },
      warnings: { length: 0 },
    })
    const file = join(dir, 'broken.yaml')
    writeFileSync(file, 'models:\n  - id: a\n    pricing: { unit: parsec }\ntrial_credit: lots\n')
    const broken = await tollgate(['config', 'check', file, '--json'], env)
    t.equal(broken.code, 1)
    const { ok, problems } = JSON.parse(broken.stdout)
    t.equal(ok, false)
    t.match(
      problems.map(({ line, field }: { line: number; field: string }) => [line, field]),
      [
        [3, 'models[0].pricing.unit'],
        [4, 'trial_credit'],
      ],
    )
    const text = await commandIn(['config', 'check', file], env)
    t.equal(text.code, 1)
    t.match(text.stdout, `${file}:3:`)
  })

  function demonstration(): string {
    const file = join(dir, 'channels.yaml')
    const channel = (id: string, base: string, key: string) =>
      `  - { id: ${id}, protocol: chat-completions, base_url: "${base}", api_key: "${key}", models: { a: b } }\n`
    writeFileSync(
      file,
      'models:\n  - { id: a, pricing: { unit: 1M_tokens, input: "1", output: "1" } }\nchannels:\n' +
        channel('here', '${TOLLGATE_SIMULATOR_URL}/v1', 'k') +
        channel('gone', 'http://127.0.0.1:9/v1', 'k') +
        channel('off', 'http://127.0.0.1:9/v1', ''),
    )
    return file
  }

  /** Processes whose command line or working folder is in the data directory. */
  function processesOf(folder: string): string[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)
        } catch {
          return false
        }
      })
  }
})

t.test('logs tail', async (t) => {
  const first = await openFresh(t, engines)

  type Opened = Pick<TestDatabase, 'url' | 'masterKey' | 'database'>

  /** The command as it is, but for who starts the database and who stops the command. */
  function wiringOf({ url, masterKey, database }: Opened, stopped: AbortSignal): Wiring {
    return {
      ...noEngines,
      database: async () => database,
      async withServiceDatabase(work) {
        const own = await openDatabase({ url, masterKey, maxConnections: 1 })
        try {
          return await work(own)
        } finally {
          await own.close()
        }
      },
      untilStopped: (work) => work(stopped),
    }
  }

  /** A tail that runs beside the test, and what it has said so far. */
  function startTail(t: Test, opened: Opened, words: string[], more: Partial<Wiring> = {}) {
    const stop = new AbortController()
    const said = { calls: [] as { id: number; request_id: string }[], notices: [] as string[] }
    const wiring = { ...wiringOf(opened, stop.signal), ...more }
    const ended = run(['logs', 'tail', '--json', ...words], wiring, {
      answer: (text) =>
        said.calls.push(
          ...text
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line)),
        ),
      error: (text) => void said.notices.push(text.trimEnd()),
      isColoured: false,
    })
    const end = async () => {
      stop.abort()
      return ended
    }
    t.teardown(end)
    return { said, end }
  }

  const requestIds = (calls: readonly { request_id: string }[]): string[] =>
    calls.map(({ request_id }) => request_id)

  t.test('the newest, oldest of them first; filters narrow', async (t) => {
    const { database } = first
    const [mine, theirs] = [await newAccount(database), await newAccount(database)]
    const { key } = await database.keys.create({ accountId: mine, name: 'Laptop' })
    const calls = [
      settlement(mine, { key_id: key.id }),
      settlement(theirs, { status: 'error', error_code: 'upstream_error', error_message: 'Too busy.' }),
      settlement(mine, { model: 'sonata-small', status: 'rejected' }),
      settlement(mine, { key_id: key.id, model: 'sonata-small', status: 'interrupted' }),
    ]
    await database.bookings.book(calls)
    const { text, refused } = commandsOn(wiringOf(first, AbortSignal.abort()))
    const tail = async (...words: string[]): Promise<number[]> => {
      const lines = (await text('logs', 'tail', '--no-follow', '--json', ...words)).split('\n').slice(0, -1)
      // By their place in the order of booking.
      return lines.map(
        (line) => 1 + calls.findIndex((call) => call.request_id === JSON.parse(line).request_id),
      )
    }
    t.same(await tail(), [1, 2, 3, 4])
    t.same(await tail('-n', '2'), [3, 4])
    t.same(await tail('--lines', '0'), [])
    t.same(await tail('--account', mine), [1, 3, 4])
    t.same(await tail('--account', mine, '-n', '1'), [4])
    t.same(await tail('--key', key.id), [1, 4])
    t.same(await tail('--model', 'sonata-small,nothing'), [3, 4])
    t.same(await tail('--status', 'error,rejected'), [2, 3])
    t.same(await tail('--status', 'interrupted', '--account', theirs), [])
    const lines = (await text('logs', 'tail', '--no-follow')).split('\n')
    t.equal(lines.length, 5)
    t.match(lines[1], /^2025-10-09 08:53:21\.250 {2}error .*upstream_error: Too busy\. {2}req_/)
    t.match(lines[0], key.prefix)
    t.match(await refused('logs', 'tail', '--account', 'acc_x'), 'There is no account acc_x')
    t.match(await refused('logs', 'tail', '--key', 'key_x'), 'There is no key key_x')
  })

  t.test('a filter that finds little looks back only so far, and says so', async (t) => {
    const { database, sql, ...opened } = await openFresh(t, engines)
    const [rare, usual] = [await newAccount(database), await newAccount(database)]
    await database.bookings.book([settlement(rare)])
    await database.bookings.book([settlement(usual)])
    const others = sql.unsafe(BOOKED_COLUMNS.filter((name) => !['id', 'request_id'].includes(name)).join())
    await sql`
    INSERT INTO usage_rows (id, request_id, ${others})
    SELECT next_usage_row_id(), 'req_' || at, ${others}
    FROM usage_rows, generate_series(1, ${LOOK_BACK_ROWS}) AS at WHERE account_id = ${usual}`
    const { said } = startTail(t, { database, ...opened }, ['--no-follow', '--account', rare, '-n', '1'])
    await until('it says so', () => said.notices.length > 0)
    t.match(said, { calls: { length: 0 }, notices: [/^0 of the last 100000 calls match; /] })
    const all = startTail(t, { database, ...opened }, ['--no-follow', '-n', '1'])
    await until('the newest', () => all.said.calls.length > 0)
    t.same(all.said.notices, [])
  })

  t.test('writers side by side, transactions that stay open: each call once, in order of ids', async (t) => {
    const opened = await openFresh(t, engines)
    const { database, sql, openAnother } = opened
    const accountId = await newAccount(database)
    const before = [settlement(accountId), settlement(accountId)]
    await database.bookings.book(before)
    const { said, end } = startTail(t, opened, ['-n', '1'])
    await until('the newest is there', () => said.calls.length === 1)

    const writers = await Promise.all([openAnother(), openAnother(), openAnother()])
    const booked = await Promise.all(writers.map((writer, seed) => bookBatches(writer, accountId, seed)))
    // A writer that has its ids and takes its time to commit: the others wait for it.
    const slow = sql.begin(async (transaction) => {
      await transaction`SELECT pg_advisory_xact_lock(7811001)`
      await transaction`SELECT nextval(pg_get_serial_sequence('usage_rows', 'id')) FROM generate_series(1, 5)`
      await until('the writer behind waits for the lock', async () => {
        const [row] = await transaction<[{ waiting: boolean }]>`
          SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted) AS waiting`
        return row.waiting
      })
    })
    const [behind] = await Promise.all([bookBatches(writers[0]!, accountId, 9), slow])
    const all = 1 + [...booked, behind].flat().length
    await until('all are there', () => said.calls.length >= all)
    // What comes last has all before it: one that is shown twice would be among them.
    const last = settlement(accountId)
    await database.bookings.book([last])
    await until('the last is there', () => said.calls.at(-1)?.request_id === last.request_id)
    t.equal(await end(), 0)
    const rows = await sql<{ request_id: string }[]>`SELECT request_id FROM usage_rows ORDER BY id OFFSET 1`
    t.same(requestIds(said.calls), requestIds(rows))
    t.same(said.notices, [])
  })

  async function bookBatches(writer: Database, accountId: string, seed: number): Promise<Settlement[]> {
    const booked: Settlement[] = []
    for (let batch = 0; batch < 12; batch++) {
      const calls = Array.from({ length: 1 + ((batch * 7 + seed * 5) % 40) }, () => settlement(accountId))
      await writer.bookings.book(calls)
      // A second delivery burns ids.
      await writer.bookings.book(calls.slice(0, 3))
      booked.push(...calls)
      await sleep(batch % 3)
    }
    return booked
  }

  t.test('a filtered tail goes on past what it does not show', async (t) => {
    const opened = await openFresh(t, engines)
    const { database } = opened
    const [mine, theirs] = [await newAccount(database), await newAccount(database)]
    const { said } = startTail(t, opened, ['--account', mine, '--status', 'error'])
    for (let batch = 0; batch * 1000 <= SINCE_ROWS; batch++)
      await database.bookings.book(Array.from({ length: 1000 }, () => settlement(theirs, { cost: '0' })))
    const wanted = settlement(mine, { status: 'error' })
    await database.bookings.book([settlement(mine), settlement(theirs, { status: 'error' }), wanted])
    await until('it comes', () => said.calls.length > 0)
    t.same(requestIds(said.calls), [wanted.request_id])
  })

  t.test('without a service it waits for one', async (t) => {
    const opened = await openFresh(t, engines)
    const accountId = await newAccount(opened.database)
    let isThere = false
    const { withServiceDatabase } = wiringOf(opened, AbortSignal.abort())
    const { said } = startTail(t, opened, [], {
      withServiceDatabase: async (work) => (isThere ? withServiceDatabase(work) : null),
    })
    await until('it says so', () => said.notices.length > 0)
    isThere = true
    const call = settlement(accountId)
    await opened.database.bookings.book([call])
    await until('the call is there', () => said.calls.length > 0)
    t.same(said.notices, ['No service runs here: waiting for one.', 'The database answers again.'])
    t.same(requestIds(said.calls), [call.request_id])
  })
})

t.test('logs tail outlives the database', async (t) => {
  // `tollgate logs tail` as a process of its own, while its connections to PostgreSQL are lost in every way.
  /** With which a statement begins: to come behind the greeting and the password. */
  const PARSE_MESSAGE = 'P'.charCodeAt(0)

  /** A way to PostgreSQL that can be cut. */
  async function openWay(t: Test, databaseUrl: string) {
    const sockets = new Set<Socket>()
    let connections = 0
    let cutsLeft = 0
    const url = await relayTo(t, databaseUrl, (client, server) => {
      connections += 1
      for (const socket of [client, server]) {
        sockets.add(socket)
        socket.on('close', () => sockets.delete(socket))
      }
      client.on('data', (bytes) => {
        if (cutsLeft > 0 && bytes[0] === PARSE_MESSAGE) {
          cutsLeft -= 1
          client.resetAndDestroy()
        } else server.write(bytes)
      })
      server.on('data', (bytes) => client.write(bytes))
    })
    return {
      url,
      connections: () => connections,
      cutsLeft: () => cutsLeft,
      /** All connections are lost now, and so many of the next at their first statement. */
      cut(next: number) {
        cutsLeft = next
        for (const socket of sockets) socket.resetAndDestroy()
      },
    }
  }

  t.test('a tail goes on where it was, says what happened, and ends clean', async (t) => {
    const { database, masterKey, url } = await openFresh(t, engines)
    const way = await openWay(t, url)
    const accountId = await newAccount(database)
    const booked: string[] = []
    const book = async () => {
      const call = settlement(accountId)
      await database.bookings.book([call])
      booked.push(call.request_id)
    }

    await book()
    const tail = spawn(process.execPath, [ENTRY, 'logs', 'tail', '--json'], {
      env: {
        PATH: process.env.PATH ?? '',
        TOLLGATE_DATA_DIR: engines.dataDir,
        DATABASE_URL: way.url,
        TOLLGATE_MASTER_KEY: masterKey.toString('hex'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    t.teardown(() => tail.kill('SIGKILL'))
    let [answers, notices] = ['', '']
    tail.stdout.on('data', (text) => {
      answers += text
    })
    tail.stderr.on('data', (text) => {
      notices += text
    })
    const seen = () => answers.split('\n').slice(0, -1)
    const untilSeen = () =>
      until(`${booked.length} calls; stderr: ${notices}`, () => seen().length === booked.length)
    const timesBack = () => notices.split('The database answers again.').length - 1
    // Of one loss each reason is logged.
    const timesAway = () => notices.split('trying again').length - 1
    await untilSeen()

    way.cut(1)
    await until('a new connection is lost', () => way.cutsLeft() === 0)
    await book()
    await untilSeen()
    t.ok(way.connections() > 2, 'it reconnected')
    t.ok(timesBack() > 0, 'and says so')

    const [away, before] = [timesAway(), timesBack()]
    await engines.stopEngine('postgres')
    await until('it says so', () => timesAway() > away)
    await engines.startEngine('postgres')
    await book()
    await untilSeen()
    await until('it says so', () => timesBack() > before)

    const ended = once(tail, 'exit')
    tail.kill('SIGINT')
    t.same(await ended, [0, null], 'Ctrl-C ends it')
    t.same(
      seen().map((line) => JSON.parse(line).request_id),
      booked,
      'each call once',
    )
    t.notMatch(notices, /\n {4}at /, 'no stack')
    for (const line of notices.trimEnd().split('\n'))
      t.match(line, /^The database (answers again\.|does not answer, trying again: .)/)
  })
})
