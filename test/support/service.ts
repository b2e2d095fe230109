/** The whole service as its users have it, on real engines, for tests from the outside. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { CHAT_PROTOCOLS } from '../../schemas/catalog.ts'
import { parseCredits } from '../../schemas/money.ts'
import { ROLES, type Role } from '../../schemas/settings.ts'
import { readRunning } from '../../src/embedded/data-dir.ts'
import { endWithUs } from '../../src/embedded/programs.ts'
import { openDatabase } from '../../src/postgres/database.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import type { Database, NewKey } from '../../src/postgres/types.ts'
import { startEngines, type Teardown, type TestEngines, testDataDir } from './engines.ts'
import { NODE_OPTIONS } from './plain-children.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const START_BOUND_MS = 60_000
const STOP_BOUND_MS = 30_000
export const TEST_MASTER_KEY = Buffer.alloc(32, 7)

/** One model of a test's catalog: what the simulated provider is to do, and what it costs per 1M tokens. */
export interface TestModel {
  /** Directives of docs/simulator.md, such as `fault=reset:120,tps=50`. */
  readonly simulate?: string
  readonly input?: string
  readonly output?: string
  /** More lines of the model's entry, as YAML flow: `max_output_tokens: 100`. */
  readonly extra?: string
  /** false: no channel serves it. */
  readonly served?: boolean
}

/** A configuration whose one channel is the simulated provider. Prices default to 1 credit per prompt token and 2 per output token. */
export function testConfig(models: Readonly<Record<string, TestModel>>, extra = ''): string {
  const entries = Object.entries(models).map(
    ([id, { input = '1000000', output = '2000000', extra: more }]) => {
      const pricing = `pricing: { unit: 1M_tokens, input: "${input}", output: "${output}" }`
      return `  - { id: ${id}, ${pricing}${more === undefined ? '' : `, ${more}`} }`
    },
  )
  const served = Object.entries(models).filter(([, model]) => model.served !== false)
  const names = served.map(
    ([id, { simulate }]) =>
      `      ${id}: ${JSON.stringify(simulate === undefined ? `sim-${id}` : `sim-${id}@${simulate}`)}`,
  )
  return [
    extra,
    'models:',
    ...entries,
    'channels:',
    '  - id: simulated',
    '    protocol: chat-completions',
    '    base_url: ${TEST_SIMULATOR_URL}/v1',
    '    api_key: test',
    '    models:',
    ...names,
    '',
  ].join('\n')
}

export interface ServiceOptions {
  readonly config?: string
  readonly engines?: TestEngines
  readonly env?: Readonly<Record<string, string>>
  /** Files that each of its processes may have open; as many as we may by default. */
  readonly maxOpenFiles?: number
}

export interface TestService {
  readonly engines: TestEngines
  readonly database: Database
  readonly dataDir: string
  readonly configPath: string
  baseUrl: string
  /** What the service has printed so far, both streams. */
  output(): string
  /** The supervisor's pid. */
  pid(): number
  /** A new account with this credit, and a key of it. */
  newKey(credit: string, more?: Partial<NewKey>): Promise<{ accountId: string; keyId: string; key: string }>
  chat(key: string, body: object, init?: RequestInit): Promise<Response>
  get(key: string, path: string): Promise<Response>
  /** Ends it as an operator does; answers with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** SIGKILL to the supervisor and to each of its own processes, at once. */
  kill(): Promise<void>
  /** `env` is added to what it was first started with, for this run alone. */
  start(env?: Readonly<Record<string, string>>): Promise<void>
  /** The rows of the call log, newest first, once `enough` says so; throws after the bound. */
  logs(key: string, enough: (rows: LogJson[]) => boolean, query?: string): Promise<LogJson[]>
}

export type LogJson = Record<string, unknown> & {
  id: number
  request_id: string
  status: string
  cost: string
  model: string
  input_tokens: number
  output_tokens: number
  attempts_count: number | null
  error_code: string | null
}

/** A row is readable within 2 seconds of its end; on a machine under load a test waits longer before it gives up. */
const LOGS_BOUND_MS = 20_000
/** What is asked is often a program's work, and costs more than the wait: the gaps grow. */
const FIRST_POLL_MS = 25
/** Reading the call log is the most work of all, and rows come to it twice a second. */
const LONGEST_POLL_MS = 250
const POLL_GROWTH = 1.5
/** Below what a key may, some of which a test may need itself. */
const LOG_READS = 40

/** Polls until the check gives something; the error names what was waited for. */
export async function eventually<T>(
  what: string,
  check: () => Promise<T | undefined> | T | undefined,
  boundMs = LOGS_BOUND_MS,
  firstPollMs = FIRST_POLL_MS,
): Promise<T> {
  const deadline = Date.now() + boundMs
  for (let gapMs = firstPollMs; ; gapMs = Math.min(gapMs * POLL_GROWTH, LONGEST_POLL_MS)) {
    const found = await check()
    if (found !== undefined) return found
    if (Date.now() > deadline) throw new Error(`not within ${boundMs} ms: ${what}`)
    await sleep(gapMs)
  }
}

/** A service whose channels speak protocols of chat alone has no jobs to look after. */
function rolesFor(config: string): readonly Role[] {
  const protocols = [...config.matchAll(/\bprotocol: *([\w-]+)/g)].map(([, protocol = '']) => protocol)
  const isChat = protocols.every((protocol) => CHAT_PROTOCOLS.some((known) => known === protocol))
  return ROLES.filter((role) => role !== 'tasks' || !isChat)
}

export async function startService(t: Teardown, options: ServiceOptions = {}): Promise<TestService> {
  const engines = options.engines ?? (await startEngines(t))
  const dataDir = await testDataDir(t)
  const configPath = join(dataDir, 'tollgate.yaml')
  const config = options.config ?? testConfig({ fast: {} })
  await writeFile(configPath, config)
  await migrate(engines.databaseUrl)
  const database = await openDatabase({
    url: engines.databaseUrl,
    masterKey: TEST_MASTER_KEY,
    maxConnections: 2,
    name: 'test',
  })
  t.teardown(() => database.close())
  const env = {
    ...process.env,
    NODE_OPTIONS,
    DATABASE_URL: engines.databaseUrl,
    NATS_URL: engines.natsUrl,
    CLICKHOUSE_URL: engines.clickhouseUrl,
    TEST_SIMULATOR_URL: engines.simulatorUrl,
    TOLLGATE_MASTER_KEY: TEST_MASTER_KEY.toString('hex'),
    TOLLGATE_CONFIG: configPath,
    TOLLGATE_DATA_DIR: join(dataDir, 'service'),
    TOLLGATE_PORT: '0',
    TOLLGATE_ROLES: rolesFor(config).join(),
    ...options.env,
  }
  const command = commandWithLimit(options.maxOpenFiles)
  const service = new RunningService(engines, database, env.TOLLGATE_DATA_DIR, configPath, env, command)
  t.teardown(() => service.kill())
  await service.start()
  return service
}

/** Ends with the test however that ends; its own processes end with it. */
const SERVE = [...endWithUs('SIGKILL'), process.execPath, MAIN, 'serve']

/** The shell gives way to the program: the pid is the service's own. */
const commandWithLimit = (maxOpenFiles: number | undefined): readonly string[] =>
  maxOpenFiles === undefined ? SERVE : ['sh', '-c', `ulimit -n ${maxOpenFiles}; exec "$@"`, 'sh', ...SERVE]

class RunningService implements TestService {
  readonly engines: TestEngines
  readonly database: Database
  readonly dataDir: string
  readonly configPath: string
  readonly #env: NodeJS.ProcessEnv
  readonly #command: readonly string[]
  readonly #logReaders = new Map<string, { reader: string; scope: string; reads: number }>()
  #process: ChildProcess | null = null
  #output = ''
  baseUrl = ''

  constructor(
    engines: TestEngines,
    database: Database,
    dataDir: string,
    configPath: string,
    env: NodeJS.ProcessEnv,
    command: readonly string[],
  ) {
    this.engines = engines
    this.database = database
    this.dataDir = dataDir
    this.configPath = configPath
    this.#env = env
    this.#command = command
  }

  output(): string {
    return this.#output
  }

  pid(): number {
    return this.#process!.pid!
  }

  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const [program = '', ...args] = this.#command
    const child = spawn(program, args, {
      env: { ...this.#env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#process = child
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (this.#output += text))
    const found = await eventually(
      'the service runs',
      () => {
        if (child.exitCode !== null)
          throw new Error(`the service ended with ${child.exitCode}:\n${this.#output}`)
        const record = readRunning(this.dataDir)
        return record?.pid === child.pid ? record : undefined
      },
      START_BOUND_MS,
    )
    this.baseUrl = found!.base_url ?? ''
  }

  async newKey(credit: string, more: Partial<NewKey> = {}) {
    const { account } = await this.database.createAccount({ name: 'test', credit: parseCredits(credit) })
    const { key, raw } = await this.database.createKey({ name: 'test', accountId: account.id, ...more })
    return { accountId: account.id, keyId: key.id, key: raw }
  }

  chat(key: string, body: object, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(body),
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...init.headers },
    })
  }

  get(key: string, path: string): Promise<Response> {
    return fetch(this.baseUrl + path, { headers: { authorization: `Bearer ${key}` } })
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#process
    if (child === null || child.exitCode !== null) return child?.exitCode ?? null
    const gone = once(child, 'exit')
    child.kill(signal)
    const timer = setTimeout(() => void this.kill(), STOP_BOUND_MS)
    await gone
    clearTimeout(timer)
    return child.exitCode
  }

  async kill(): Promise<void> {
    const child = this.#process
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    const own = await childPids(child.pid)
    for (const pid of [child.pid, ...own]) killQuietly(pid)
    await gone
  }

  async logs(key: string, enough: (rows: LogJson[]) => boolean, query = ''): Promise<LogJson[]> {
    let seen: LogJson[] = []
    const read = async () => {
      const { reader, scope } = await this.#logReader(key)
      const response = await this.get(reader, `/v1/logs?limit=200${scope}${query}`)
      if (response.status !== 200)
        throw new Error(`logs answered ${response.status}: ${await response.text()}`)
      seen = ((await response.json()) as { data: LogJson[] }).data
      return enough(seen) ? seen : undefined
    }
    const what = 'the rows are in the call log'
    return eventually(what, read, LOGS_BOUND_MS, LONGEST_POLL_MS).catch((error: Error) => {
      throw new Error(`${error.message}; seen: ${JSON.stringify(seen).slice(0, 2000)}`)
    })
  }

  /** A test reads the log more often than a key may: every so many times with another key of the account. */
  async #logReader(key: string): Promise<{ reader: string; scope: string }> {
    const known = this.#logReaders.get(key) ?? { reader: key, scope: '', reads: 0 }
    this.#logReaders.set(key, known)
    if (++known.reads <= LOG_READS) return known
    const credential = await this.database.findCredential(this.database.lookupHash(key))
    if (credential === null) throw new Error('the log is read with a key that is none')
    const { account, key: own } = credential
    const { raw } = await this.database.createKey({
      name: 'reader',
      accountId: account.id,
      accountLogs: true,
    })
    const next = { reader: raw, scope: `&scope=account&key_id=${own.id}`, reads: 1 }
    this.#logReaders.set(key, next)
    return next
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // Gone already.
  }
}

/** The service's own processes: they end by themselves without the supervisor, but not at once. */
async function childPids(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return text.split(' ').filter(Boolean).map(Number)
}
