/**
 * Everything of a cluster on one machine, as real processes: three gateways and a settler with task workers, three NATS
 * servers, PostgreSQL with a standby and a pooler in front, ClickHouse, a bucket, the simulated provider.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, LOOPBACK } from '../../../src/embedded/ports.ts'
import { startEngines, type Teardown, type TestEngines, testDataDir } from '../../support/engines.ts'
import { startNatsCluster } from '../../support/nats-cluster.ts'
import { type PgBouncer, startPgBouncer } from '../../support/pgbouncer.ts'
import { Program } from '../../support/program.ts'
import { startService, type TestService } from '../../support/service.ts'
import { startPostgresPair } from '../../support/standby.ts'
import { CATALOG } from './catalog.ts'
import { Network } from './network.ts'

const GATEWAY_HOSTS = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const
/** The gateway whose answers wait for JetStream; those of the others do not. */
const STORED_FIRST = 1
const CLIENTS = 'clients'
const BUCKET_SERVER = new URL('./bucket-server.ts', import.meta.url).pathname
const BUCKET = {
  S3_BUCKET: 'media',
  S3_ACCESS_KEY_ID: 'S3RVER',
  S3_SECRET_ACCESS_KEY: 'S3RVER',
}

export interface Node {
  readonly name: string
  readonly service: TestService
  /** Where clients reach it; null where it serves none. */
  readonly url: string | null
}

export interface Installation {
  readonly nodes: readonly Node[]
  /** ClickHouse and the simulated provider. */
  readonly engines: TestEngines
  /** NATS servers, both PostgreSQL, the pooler where there is one, the bucket. */
  readonly programs: readonly Program[]
  readonly network: Network
  /** PostgreSQL itself. */
  readonly databaseUrl: string
  /** What a command needs. */
  readonly env: Readonly<Record<string, string>>
}

export interface InstallationOptions {
  /** Output of the engines is written there. */
  readonly logs: string
  readonly say: (line: string) => void
}

/** Starts everything; it ends with the test. */
export async function startInstallation(
  t: Teardown,
  { logs, say }: InstallationOptions,
): Promise<Installation> {
  mkdirSync(logs, { recursive: true })
  const network = new Network()
  t.teardown(() => network.close())
  const local = await startEngines(t, { only: ['clickhouse', 'simulator'], withCallLog: true })
  const nats = await startNatsCluster(t)
  const postgres = await startPostgresPair(t, { isSynchronous: false, logs })
  const databaseUrl = postgres.url('one')
  const pooler = await startPooler(t, await network.linkUrl('pgbouncer', 'postgres', databaseUrl), say)
  const bucket = await startBucket(t, logs)
  const engines: TestEngines = {
    dataDir: local.dataDir,
    events: local.events,
    readHealth: () => local.readHealth(),
    stopEngine: (name) => local.stopEngine(name),
    startEngine: (name) => local.startEngine(name),
    killEngine: (name) => local.killEngine(name),
    databaseUrl,
    natsUrl: nats.url,
    clickhouseUrl: local.clickhouseUrl,
    simulatorUrl: local.simulatorUrl,
  }
  const environmentOf = async (name: string): Promise<Record<string, string>> => {
    const link = (to: string, url: string) => network.linkUrl(name, to, url)
    const servers = nats.hosts.map((host, at) => link(`n${at + 1}`, `nats://${host}:${nats.port}`))
    const session = await link('postgres', databaseUrl)
    return {
      ...BUCKET,
      DATABASE_URL: pooler === null ? session : await link('pgbouncer', pooler.url),
      ...(pooler !== null && { DATABASE_SESSION_URL: session }),
      NATS_URL: (await Promise.all(servers)).join(),
      CLICKHOUSE_URL: await link('clickhouse', local.clickhouseUrl),
      TEST_SIMULATOR_URL: await link('provider', local.simulatorUrl),
      S3_ENDPOINT: await link('bucket', bucket.url),
    }
  }
  const start = async (
    name: string,
    roles: string,
    more: Record<string, string>,
    config = CATALOG,
  ): Promise<TestService> => {
    const env = { ...(await environmentOf(name)), ...more, TOLLGATE_ROLES: roles, TOLLGATE_CONSOLE: 'off' }
    return startService(t, { engines, config, env })
  }
  const gateway = async (host: string, at: number): Promise<Node> => {
    const name = `gateway-${at + 1}`
    const port = await freePort()
    const url = await network.linkUrl(CLIENTS, name, `http://${host}:${port}`)
    const listening = { TOLLGATE_HOST: host, TOLLGATE_PORT: String(port) }
    const config = at === STORED_FIRST ? `settlement: { durability: cluster }\n${CATALOG}` : CATALOG
    return { name, url, service: await start(name, 'gateway', listening, config) }
  }
  const nodes: Node[] = []
  for (const [at, host] of GATEWAY_HOSTS.entries()) nodes.push(await gateway(host, at))
  nodes.push({ name: 'workers', url: null, service: await start('workers', 'settler,tasks', {}) })
  return {
    nodes,
    engines,
    network,
    databaseUrl,
    env: await environmentOf('commands'),
    programs: [
      ...nats.servers.values(),
      postgres.servers.one,
      postgres.servers.two,
      bucket.program,
      ...(pooler === null ? [] : [pooler.program]),
    ],
  }
}

/** Null, and a word about it, where PgBouncer is not on the machine and cannot be downloaded. */
async function startPooler(
  t: Teardown,
  databaseUrl: string,
  say: (line: string) => void,
): Promise<PgBouncer | null> {
  try {
    return await startPgBouncer(t, databaseUrl)
  } catch (error) {
    say(`without PgBouncer, which does not run here: ${(error as Error).message}`)
    return null
  }
}

async function startBucket(t: Teardown, logs: string): Promise<{ program: Program; url: string }> {
  const folder = await testDataDir(t)
  const port = await freePort()
  const program = new Program({
    name: 'bucket',
    command: [process.execPath, BUCKET_SERVER, join(folder, 'bucket'), String(port)],
    outputPath: join(logs, 'bucket.log'),
    host: LOOPBACK,
    port,
  })
  t.teardown(() => program.kill())
  await program.start()
  return { program, url: `http://${LOOPBACK}:${port}` }
}
