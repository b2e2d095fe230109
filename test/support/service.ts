/** The whole service as its users have it, on real engines, for tests from the outside. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CHAT_PROTOCOLS } from '../../schemas/config/catalog.ts'
import { ROLES, type Role } from '../../schemas/config/settings.ts'
import { readRunning } from '../../src/embedded/data-dir.ts'
import { endWithUs } from '../../src/embedded/programs.ts'
import type { Database } from '../../src/postgres/database.ts'
import { openDatabase } from '../../src/postgres/database.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { descendantsOf, signalQuietly } from './descendants.ts'
import { startEngines, type Teardown, type TestEngines, testDataDir } from './engines.ts'
import { BOUND_MS, eventually } from './eventually.ts'
import { type LentService, ServiceClient } from './service-client.ts'

export { eventually, type LentService, type LogJson, until } from './service-client.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
export const TEST_MASTER_KEY = Buffer.alloc(32, 7)

/** One model of a test's catalog: what the simulated provider is to do, and what it costs per 1M tokens. */
export interface TestModel {
  /** Directives of simulator/README.md, such as `fault=reset:120,tps=50`. */
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

export interface TestService extends LentService {
  readonly engines: TestEngines
  readonly dataDir: string
  baseUrl: string
  /** Ends it as an operator does; answers with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** SIGKILL to the supervisor and to each of its own processes, at once. */
  kill(): Promise<void>
  /** `env` is added to what it was first started with, for this run alone. */
  start(env?: Readonly<Record<string, string>>): Promise<void>
}

/** A service whose channels speak protocols of chat alone, and keep no responses, has no jobs to look after. */
function rolesFor(config: string): readonly Role[] {
  if (config.includes('keeps_responses_days')) return ROLES
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
  const limit = limitFiles(options.maxOpenFiles)
  const service = new RunningService(engines, database, env.TOLLGATE_DATA_DIR, configPath, env, limit)
  t.teardown(() => service.kill())
  await service.start()
  return service
}

/** What a command needs that runs beside a service. */
export function commandEnv(
  service: Pick<LentService, 'engines' | 'configPath'> & { readonly dataDir?: string },
): Record<string, string> {
  const { engines, configPath, dataDir } = service
  return {
    DATABASE_URL: engines.databaseUrl,
    NATS_URL: engines.natsUrl,
    CLICKHOUSE_URL: engines.clickhouseUrl,
    TEST_SIMULATOR_URL: engines.simulatorUrl,
    TOLLGATE_MASTER_KEY: TEST_MASTER_KEY.toString('hex'),
    TOLLGATE_CONFIG: configPath,
    ...(dataDir !== undefined && { TOLLGATE_DATA_DIR: dataDir }),
  }
}

/** Where a service with its configuration there prints to. */
export const outputPathOf = (configPath: string): string => join(dirname(configPath), 'output.log')

/** Ends with the test however that ends; its own processes end with it. */
const serveCommand = () => [...endWithUs('SIGKILL'), process.execPath, MAIN, 'serve']

/** The shell gives way to the program: the pid is the service's own. */
const limitFiles = (maxOpenFiles: number | undefined): readonly string[] =>
  maxOpenFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${maxOpenFiles}; exec "$@"`, 'sh']

class RunningService extends ServiceClient implements TestService {
  readonly engines: TestEngines
  readonly dataDir: string
  readonly #env: NodeJS.ProcessEnv
  /** Comes before the command. */
  readonly #limit: readonly string[]
  #process: ChildProcess | null = null
  readonly #outputPath: string
  baseUrl = ''

  constructor(
    engines: TestEngines,
    database: Database,
    dataDir: string,
    configPath: string,
    env: NodeJS.ProcessEnv,
    limit: readonly string[],
  ) {
    super(database, configPath)
    this.engines = engines
    this.dataDir = dataDir
    this.#outputPath = outputPathOf(configPath)
    this.#env = env
    this.#limit = limit
  }

  output(): string {
    return existsSync(this.#outputPath) ? readFileSync(this.#outputPath, 'utf8') : ''
  }

  pid(): number {
    return this.#process!.pid!
  }

  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const all = { ...this.#env, ...env }
    const [program = '', ...args] = [...this.#limit, ...serveCommand()]
    const output = openSync(this.#outputPath, 'a', 0o600)
    const child = spawn(program, args, { env: all, stdio: ['ignore', output, output] })
    closeSync(output)
    this.#process = child
    const found = await eventually('the service runs', () => {
      if (child.exitCode !== null)
        throw new Error(`the service ended with ${child.exitCode}:\n${this.output()}`)
      const record = readRunning(this.dataDir)
      return record?.pid === child.pid ? record : undefined
    })
    this.baseUrl = found!.base_url ?? ''
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#process
    if (child === null || child.exitCode !== null) return child?.exitCode ?? null
    const gone = once(child, 'exit')
    child.kill(signal)
    const timer = setTimeout(() => void this.kill(), BOUND_MS)
    await gone
    clearTimeout(timer)
    return child.exitCode
  }

  async kill(): Promise<void> {
    const child = this.#process
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    const own = descendantsOf(child.pid)
    // Stopped, the supervisor restarts nothing, and nobody notices. Gateways are younger than the provider: one that
    // outlived it by a moment would charge, rightly, what came before.
    signalQuietly(child.pid, 'SIGSTOP')
    for (const pid of [...own.reverse(), child.pid]) signalQuietly(pid, 'SIGKILL')
    await gone
  }
}
