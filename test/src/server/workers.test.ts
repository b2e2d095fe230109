/** Background work of the settler, the tasks and the knowledge process. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { mock } from 'node:test'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import type { Difference } from '../../../src/postgres/billing/audit-report.ts'
import type { MeteringReport } from '../../../src/postgres/metering.ts'
import type { Job } from '../../../src/postgres/operation/jobs.ts'
import { importJob } from '../../../src/server/knowledge/import-job.ts'
import type { Boot } from '../../../src/server/messages.ts'
import { logAudit, untilAudit } from '../../../src/server/settler/daily-audit.ts'
import { startLogMaintenance } from '../../../src/server/settler/log-retention.ts'
import { openTaskStorage } from '../../../src/server/tasks/storage.ts'
import { startSweeps } from '../../../src/server/tasks/sweeps.ts'
import { openStore } from '../../../src/storage/open-store.ts'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import { serveHttp } from '../../support/http-server.ts'
import { sourceFiles } from '../../support/source-files.ts'
import { usageText } from '../../support/usage-text.ts'
import { bookedCall } from '../clickhouse/support.ts'
import { newAccount, startDatabase } from '../postgres/support.ts'
import { bytesOf, folderStore } from '../storage/support.ts'

t.test('books are audited daily', async (t) => {
  // The line that the settler logs once a day, and when.
  const NONE: readonly never[] = []
  const DAY_MS = 24 * 60 * 60 * 1000
  const GROUP = { account_id: 'acc_a', model: 'fast', channel_id: 'primary', calls: 9 }
  const DIFFERENCE: Difference = { account_id: 'acc_a', kind: 'balance', expected: '1', found: '2' }

  async function lineOf(differences: readonly Difference[], metering: MeteringReport) {
    const lines: unknown[][] = []
    const write =
      (level: string) =>
      (...line: unknown[]) =>
        void lines.push([level, ...line])
    const audits = {
      verifyWallets: async () => ({ ok: differences.length === 0, accounts: 1, entries: 2, differences }),
      reportMetering: async () => metering,
      countNegativeBalances: async () => 0,
    }
    await logAudit({ audits }, { info: write('info'), warn: write('warn'), error: write('error') })
    t.equal(lines.length, 1)
    return lines[0]
  }

  t.test('the line says whether the books agree, and how calls were metered', async (t) => {
    const groups = [
      { ...GROUP, estimated: 3, suspect: 1, otherModel: 0 },
      { ...GROUP, estimated: 0, suspect: 1, otherModel: 4 },
    ]
    const counts = { estimated_calls: 3, suspect_calls: 2, other_model_calls: 4 }
    t.match(await lineOf(NONE, { groups, negative: NONE }), [
      'info',
      { ok: true, ...counts, negative_balances: 0 },
      /ok$/,
    ])
    const negative = [{ account_id: 'acc_a', balance: -150_000_000n }]
    t.match(await lineOf(NONE, { groups, negative }), [
      'warn',
      { ok: true, lowest_balances: [{ account_id: 'acc_a', balance: '-1.5' }] },
      /negative balances/,
    ])
    t.match(await lineOf([DIFFERENCE], { groups: NONE, negative }), [
      'error',
      { ok: false, differences: 1, named_differences: [DIFFERENCE] },
      /differ/,
    ])
  })

  t.test('it is planned for the same instant of each day', async (t) => {
    const first = Date.UTC(2026, 0, 1, 3, 17)
    for (const [now, waits] of [
      [first, DAY_MS],
      [first - 1, 1],
      [first + 1, DAY_MS - 1],
      [first + 5 * DAY_MS - 60_000, 60_000],
    ] as const)
      t.equal(untilAudit(now), waits)
  })
})

t.test('log kept as configured', async (t) => {
  // How long the call log keeps calls is taken from the configuration file, and from the file as it is changed.
  const DAY_MS = 86_400_000

  t.test('the call log is kept as configured', async (t) => {
    const engines = await startEngines(t, { only: ['clickhouse'], withCallLog: true })
    const callLog = callLogAt(t, engines.clickhouseUrl)
    const ages = [0, 100, 400]
    const calls = ages.map((age, index) => bookedCall(index + 1, { created_at: Date.now() - age * DAY_MS }))
    await callLog.insertCalls({ token: 'usage-1-3', text: usageText(calls) })
    const path = join(engines.dataDir, 'tollgate.yaml')
    const write = (text: string) => writeFileSync(path, text)
    const months = async () =>
      (await callLog.sumMonths({ from: 0n, upto: BigInt(ages.length), admittedSince: 0 })).length

    const told: string[] = []
    const tell = (_: object, message: string) => void told.push(message)
    const boot: Boot = {
      role: 'settler',
      index: 0,
      gatewayCount: 1,
      host: '127.0.0.1',
      port: 0,
      admin: null,
      tls: null,
      publicUrl: '',
      console: null,
      dataDir: engines.dataDir,
      configPath: path,
      databaseUrl: '',
      databasePoolUrl: null,
      databaseReadUrl: null,
      natsUrl: '',
      natsReplicas: null,
      clickhouseCluster: null,
      clickhouseUrl: engines.clickhouseUrl,
      simulatorUrl: null,
      objectStore: null,
      mail: null,
      payments: null,
      hasSimulatedCards: false,
      masterKey: '',
      logLevel: 'info',
    }
    write('logs: { retention_days: soon }\n')
    const keeper = startLogMaintenance(boot, callLog, {
      trace: tell,
      debug: tell,
      info: tell,
      warn: tell,
      error: tell,
      fatal: tell,
    })
    t.teardown(() => keeper.stop())

    write('logs: { retention_days: 300 }\n')
    await until('two months are left', async () => (await months()) === 2)
    write('logs: { retention_days: 0 }\n')
    await until('the configuration is refused', () =>
      told.some((message) => message.startsWith('Configuration refused')),
    )
    t.equal(await months(), 2, 'a broken file drops nothing')
    write('logs: { retention_days: 50 }\n')
    await until('one month is left', async () => (await months()) === 1)
    await keeper.stop()
    t.equal(told.filter((message) => message.includes('Dropped old months')).length, 2)
  })
})

t.test('results are copied guarded', async (t) => {
  const PNG = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100_000, 1)])
  const MP3 = Buffer.concat([Buffer.from('ID3\x04'), Buffer.alloc(1000)])
  /** A JPEG whose size comes after long metadata. */
  const PICTURE = Buffer.concat([
    Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0xff, 0xff]),
    Buffer.alloc(0xffff - 2, 1),
    Buffer.from([0xff, 0xc0, 0, 17, 8, 0, 32, 0, 48, 3]),
    Buffer.alloc(100),
  ])
  const FILES: Readonly<Record<string, Buffer | string>> = {
    '/a.png': PNG,
    '/b.jpg': PICTURE,
    '/odd': 'odd sound',
  }
  const LIMITS = { maxBytes: 1024 * 1024, timeoutMs: 5_000 }

  /** A server of the test's own on `address`, and its host as a URL has it. */
  const host = async (t: Test, answer: RequestListener, address?: string): Promise<string> =>
    new URL(await serveHttp(t, answer, address)).host

  async function storage(t: Test, isAllowed?: (address: string) => boolean) {
    const { store } = await folderStore(t)
    return { store, ...openTaskStorage({ store, ...(isAllowed && { isAllowed }) }) }
  }

  t.test('a result is copied from the channel’s own host; its first bytes say what it is', async (t) => {
    const own = await host(t, ({ url }, response) => {
      response.setHeader('content-type', 'application/octet-stream')
      if (url === '/odd') response.setHeader('content-type', 'audio/opus')
      response.end(FILES[url ?? ''] ?? MP3)
    })
    const { copy, store } = await storage(t)
    t.same(await copy(`http://${own}/a.png`, 'images/a.png', LIMITS, own), {
      bytes: PNG.length,
      mediaType: 'image/png',
      width: null,
      height: null,
    })
    t.ok((await bytesOf((await store.get('images/a.png'))!.stream)).equals(PNG))
    const picture = { bytes: PICTURE.length, mediaType: 'image/jpeg', width: 48, height: 32 }
    t.same(await copy(`http://${own}/b.jpg`, 'images/b.jpg', LIMITS, own), picture, 'and is so large')
    t.match(await copy(`http://${own}/song`, 'music/a.mp3', LIMITS, own), { mediaType: 'audio/mpeg' })
    t.match(await copy(`http://${own}/odd`, 'music/b.mp3', LIMITS, own), { mediaType: 'audio/opus' })
  })

  t.test('a result that its store serves compressed is kept as the file that it is', async (t) => {
    const own = await host(t, (_, response) => {
      response
        .writeHead(200, { 'content-type': 'image/png', 'content-encoding': 'gzip' })
        .end(gzipSync(PICTURE))
    })
    const { copy, store } = await storage(t)
    const picture = { bytes: PICTURE.length, mediaType: 'image/jpeg', width: 48, height: 32 }
    t.same(await copy(`http://${own}/b.jpg`, 'images/c.jpg', LIMITS, own), picture)
    t.ok((await bytesOf((await store.get('images/c.jpg'))!.stream)).equals(PICTURE))
  })

  t.test('no other host of an inner network, another port included, and none by a redirect', async (t) => {
    let secrets = 0
    const other = await host(t, (_, response) => {
      secrets++
      response.end(PNG)
    })
    const own = await host(t, ({ url }, response) => {
      if (url === '/a.png') response.end(PNG)
      else if (url === '/home') response.writeHead(302, { location: '/a.png' }).end()
      else response.writeHead(302, { location: `http://${other}/` }).end()
    })
    const { copy, store } = await storage(t)
    const notPublic = { message: /public address/ }
    await t.rejects(
      copy(`http://${own}/a.png`, 'images/a.png', LIMITS, null),
      notPublic,
      'a caller’s own link',
    )
    await t.rejects(copy(`http://${other}/`, 'images/a.png', LIMITS, own), notPublic)
    await t.rejects(copy(`http://${own}/away`, 'images/a.png', LIMITS, own), notPublic)
    await t.rejects(
      copy(`http://localhost:${own.split(':')[1]}/a.png`, 'images/a.png', LIMITS, own),
      notPublic,
    )
    t.equal(secrets, 0)
    t.equal(await store.head('images/a.png'), null)
    await t.resolves(copy(`http://${own}/home`, 'images/a.png', LIMITS, own), 'a redirect at home')
  })

  t.test('an address is resolved once, and the connection goes there', async (t) => {
    const own = await host(t, (_, response) => void response.end(PNG))
    const asked: string[] = []
    const { copy } = await storage(t, (address) => {
      asked.push(address)
      // As a name does that points elsewhere at its second look-up.
      return asked.filter((one) => one === address).length === 1
    })
    await copy(`http://localhost:${own.split(':')[1]}/a.png`, 'images/a.png', LIMITS, null).catch(
      () => undefined,
    )
    t.equal(new Set(asked).size, asked.length, 'no address was asked for twice')
  })

  t.test('what is no file of media is not kept', async (t) => {
    const own = await host(t, ({ url }, response) => {
      response.setHeader('content-type', url === '/svg' ? 'image/svg+xml' : 'text/html')
      if (url === '/gone') response.statusCode = 404
      response.end(url === '/empty' ? '' : '<svg>sorry</svg>')
    })
    const { copy, store } = await storage(t)
    for (const path of ['/page', '/svg', '/empty', '/gone'])
      await t.rejects(copy(`http://${own}${path}`, 'images/a.png', LIMITS, own), path)
    t.equal(await store.head('images/a.png'), null)
  })

  t.test('too large, too slow, cut or not wanted: nothing is kept, and the server is let go', async (t) => {
    let open = 0
    const own = await host(t, ({ url }, response) => {
      open++
      response.on('close', () => open--)
      if (url === '/told') response.writeHead(200, { 'content-length': LIMITS.maxBytes + 1 })
      if (url === '/cut') response.writeHead(200, { 'content-length': 200_000 })
      response.write(PNG)
      if (url === '/cut') setTimeout(() => response.destroy(), 20)
      if (url !== '/endless') return
      const send = (): void => {
        if (response.destroyed) return
        if (response.write(Buffer.alloc(65_536))) setImmediate(send)
        else response.once('drain', send)
      }
      send()
    })
    const { copy, store } = await storage(t)
    const from = (path: string, limits = LIMITS, signal?: AbortSignal) =>
      copy(`http://${own}${path}`, 'images/a.png', limits, own, signal)
    await t.rejects(from('/told'), { message: /larger than 1048576 bytes/ })
    await t.rejects(from('/endless'), { message: /larger than 1048576 bytes/ })
    await t.rejects(from('/silent', { ...LIMITS, timeoutMs: 80 }), { message: /in time/ })
    await t.rejects(from('/cut'))
    const abort = new AbortController()
    setTimeout(() => abort.abort(), 50)
    await t.rejects(from('/silent', LIMITS, abort.signal))
    t.equal(await store.head('images/a.png'), null)
    while (open > 0) await new Promise((resolve) => setTimeout(resolve, 2))
    t.pass('every connection is closed')
  })

  t.test('objects are read whole within a bound, or as they come', async (t) => {
    const { put, read, open, store, ...rest } = await storage(t)
    t.same(await put('speech/a.mp3', MP3, 'audio/mpeg'), { bytes: MP3.length, mediaType: 'audio/mpeg' })
    t.ok((await read('speech/a.mp3', MP3.length)).equals(MP3))
    t.ok((await bytesOf(await open('speech/a.mp3'))).equals(MP3))
    await t.rejects(read('speech/a.mp3', MP3.length - 1), { message: /more than/ })
    await t.rejects(read('speech/none.mp3', 1), { message: /no object/ })
    await t.rejects(open('speech/none.mp3'), { message: /no object/ })
    async function* failing() {
      yield MP3
      throw new Error('cut')
    }
    const cut = Object.assign(Object.create(store) as ObjectStore, {
      get: async () => ({ bytes: 9, mediaType: 'audio/mpeg', stream: Readable.from(failing()) }),
    })
    await t.rejects(openTaskStorage({ store: cut }).read('speech/a.mp3', 9), {
      name: 'StoreFailure',
      message: 'cut',
    })
    t.equal(rest.permanentLink('speech/a.mp3'), store.makePermanentLink('speech/a.mp3'))
    t.match(await rest.link('speech/a.mp3', Date.now() + 1000), 'expires=')
    await rest.delete(['speech/a.mp3'])
    t.equal(await store.head('speech/a.mp3'), null)
  })
})

t.test('sweeps of tasks and notices are repeated', async (t) => {
  // What a task worker repeats: every sweep of notices has a timer, and goes on after a failure.
  /** As long as the longest interval. */
  const MINUTE_MS = 60_000

  /** A function of the database that records events by what its rows say: no act and no call causes it. */
  const RECORDER = /export async function (record\w+)\(sql: \w+\): Promise<number>/g
  const recorders = sourceFiles('src/postgres')
    .filter(({ text }) => text.includes('SELECT record_event('))
    .flatMap(({ text }) => [...text.matchAll(RECORDER)].map(([, name]) => name!))
  /** The name of a function in its repository. */
  const methodOf = (recorder: string): string =>
    sourceFiles('src/postgres')
      .map(({ text }) => new RegExp(`(\\w+): (?:\\w+\\.)?${recorder}\\b`).exec(text)?.[1])
      .find((name) => name !== undefined) ?? recorder

  t.test('all run again and again', async (t) => {
    mock.timers.enable({ apis: ['setInterval'] })
    t.teardown(() => mock.timers.reset())
    const runs = new Map<string, number>()
    const failures: string[] = []
    /** Has every method: each is counted, and fails the first time. */
    const counting = (name: string) =>
      new Proxy({} as never, {
        get: (_, method) => async () => {
          const key = `${name}.${String(method)}`
          const run = (runs.get(key) ?? 0) + 1
          runs.set(key, run)
          if (run === 1) throw new Error(key)
        },
      })
    const log = { warn: (_: object, message: string) => failures.push(message) }
    startSweeps({
      work: counting('work'),
      sweep: counting('sweep'),
      followLost: async () => undefined,
      database: { journals: counting('database'), keys: counting('database') },
      log,
    } as never)
    for (let minute = 0; minute < 2; minute++) {
      mock.timers.tick(MINUTE_MS)
      await new Promise(setImmediate)
    }
    t.ok(recorders.length > 1)
    for (const name of [
      'work.touch',
      'sweep.tasks',
      'sweep.objects',
      ...recorders.map((one) => `database.${methodOf(one)}`),
    ])
      t.ok(runs.get(name)! >= 2, name)
    t.equal(failures.length, runs.size, 'each failure is logged')
    t.ok(failures.every((message) => /^Failed to .+; retrying$/.test(message)))
  })
})

t.test('imports run beside other work', async (t) => {
  /** Takes long to read: each list is read within the one around it. */
  const NESTED = Array.from({ length: 1_200 }, (_, level) => `${' '.repeat(level)}- a`).join('\n')
  /** Words of which each is a term of the index. */
  const WORDS = Array.from({ length: 20_000 }, (_, index) =>
    createHash('md5').update(`${index}`).digest('hex'),
  )

  const { database, serviceUrl, masterKey } = await startDatabase(t)
  const boot = {
    databaseUrl: serviceUrl,
    databasePoolUrl: null,
    masterKey: masterKey.toString('base64'),
    objectStore: null,
    dataDir: t.testdir(),
    publicUrl: 'http://127.0.0.1',
  }
  const store = await openStore({ ...boot, fileLinkKey: database.masterKey.fileLinkKey })
  const run = importJob({ boot, store })
  const { id: baseId } = await database.knowledge.defaultBase(await newAccount(database))

  async function jobOf(files: Record<string, string>): Promise<Job> {
    const uploads = Object.keys(files).map((path) => ({ key: `uploads/${path}`, path }))
    for (const { key, path } of uploads)
      await store.put(key, Readable.from([files[path]!]), { mediaType: 'text/plain', maxBytes: 10_000_000 })
    const input = { files: uploads, prune: false }
    await database.jobs.start({ kind: 'import', subjectId: baseId, input })
    return (await database.jobs.claim(['import']))!
  }

  t.test('an import delays nothing else of the process', async (t) => {
    const job = await jobOf({ 'nested.md': NESTED, 'words.md': WORDS.join(' ') })
    const [before, ownBefore] = [process.cpuUsage(), process.threadCpuUsage()]
    const { result, error, onEnded } = await run(job, async () => undefined)
    const [all, own] = [process.cpuUsage(before), process.threadCpuUsage(ownBefore)]
    t.match({ result, error }, { error: undefined, result: { report: { added: 2 } } })
    const share = (own.user + own.system) / (all.user + all.system)
    t.ok(share < 0.2, `this thread has ${Math.round(100 * share)} % of the work`)
    t.not(await store.get('uploads/words.md'), null)
    await onEnded!()
    t.equal(await store.get('uploads/words.md'), null)
    await database.jobs.end(job.id, {})
  })

  t.test('an import that is to stop ends, and changes nothing', async (t) => {
    const job = await jobOf({ 'first.md': '# First', 'nested.md': NESTED })
    const stop = () => Promise.reject(new Error('cancelled'))
    await t.rejects(run(job, stop), { message: 'cancelled' })
    t.same([...(await database.knowledge.readPageHashes(baseId)).keys()].sort(), ['nested.md', 'words.md'])
    await database.jobs.end(job.id, {})
  })

  t.test('an import that cannot be done says why', async (t) => {
    const job = await jobOf({ 'late.md': '# Late' })
    await store.delete(['uploads/late.md'])
    await t.rejects(
      run(job, async () => undefined),
      { message: /^The upload is gone: / },
    )
    await database.jobs.end(job.id, {})
  })
})
