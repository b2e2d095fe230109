/**
 * A process that reaches engines: its argument is a list of URLs by engine, its output what became of each, as JSON.
 * Authorities to trust are read by Node.js at its start, so each set of them needs a process.
 */
import type { ObjectStoreSettings } from '../../../schemas/config/settings.ts'
import { connect as connectClickHouse } from '../../../src/clickhouse/connection.ts'
import { fileLinks, linkKey } from '../../../src/core/media/file-link.ts'
import { describeTlsFailure } from '../../../src/core/tls-failure.ts'
import { Connection } from '../../../src/nats/connection.ts'
import { connect as connectPostgres } from '../../../src/postgres/connection.ts'
import { BucketStore } from '../../../src/storage/bucket-store.ts'

export type Reached = Readonly<Record<string, string>>
type Engine = (url: string) => Promise<void>

async function postgres(url: string): Promise<void> {
  const sql = connectPostgres(url, { max: 1, name: 'test of TLS' })
  try {
    const [row] = await sql<[{ ssl: boolean }]>`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`
    if (!row.ssl) throw new Error('the connection is not encrypted')
  } finally {
    await sql.end({ timeout: 1 })
  }
}

function nats(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const refused = (details: object) => {
      const { reason = '', remedy = '' } = details as { reason?: string; remedy?: string }
      reject(new Error(`${reason} ${remedy}`))
    }
    const connection = new Connection(url, 'test of TLS', { info() {}, warn: refused, error: refused })
    connection.use({ onConnected: () => resolve(), onDisconnected() {} })
  })
}

async function clickhouse(url: string): Promise<void> {
  const client = connectClickHouse(url)
  const result = await client.ping({ select: true })
  await client.close()
  if (!result.success) throw result.error
}

function bucket(endpoint: string): Promise<void> {
  const settings: ObjectStoreSettings = {
    endpoint,
    publicEndpoint: endpoint,
    region: 'us-east-1',
    bucket: 'media',
    accessKeyId: 'S3RVER',
    secretAccessKey: 'S3RVER',
  }
  return new BucketStore(settings, fileLinks(endpoint, linkKey(Buffer.alloc(32)))).ping()
}

const ENGINES: Readonly<Record<string, Engine>> = { postgres, nats, clickhouse, bucket }

const asked: Record<string, [engine: string, url: string]> = JSON.parse(process.argv[2] ?? '{}')
const reached: Record<string, string> = {}
for (const [name, [engine, url]] of Object.entries(asked)) {
  reached[name] = await ENGINES[engine]!(url).then(
    () => 'connected',
    (error: Error) => `refused: ${error.message} ${describeTlsFailure(name, error) ?? ''}`,
  )
}
process.stdout.write(JSON.stringify(reached), () => process.exit())
