/** Each engine is reached by TLS where its URL says so, and only under a certificate of a trusted authority and its name. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { findNatsServer, INSTALLED_NATS_FOLDERS } from '../../../src/embedded/nats/binary.ts'
import { freePort, LOOPBACK } from '../../../src/embedded/ports.ts'
import { connect as connectPostgres } from '../../../src/postgres/connection.ts'
import { startEngines } from '../../support/engines.ts'
import { bucketStore } from '../storage/support.ts'
import type { Reached } from './reach.ts'

type Certificate = 'localhost' | 'other' | 'expired'

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../fixtures/tls/${name}`, import.meta.url))
const certOf = (name: Certificate): string => fixture(`test-only-${name}.crt`)
const keyOf = (name: Certificate): string => fixture(`test-only-${name}.key`)
const TEST_CA = fixture('test-only-ca.crt')
const REACH = fileURLToPath(new URL('./reach.ts', import.meta.url))

/** What a process that trusts this authority finds; null: no more than Node.js trusts by itself. */
async function reach(authority: string | null, asked: Record<string, [engine: string, url: string]>) {
  const { NODE_EXTRA_CA_CERTS: _, ...environment } = process.env
  const env = authority === null ? environment : { ...environment, NODE_EXTRA_CA_CERTS: authority }
  const args = [REACH, JSON.stringify(asked)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env })
  return JSON.parse(stdout) as Reached
}

const { databaseUrl, clickhouseUrl, dataDir } = await startEngines(t, {
  only: ['postgres', 'clickhouse'],
  withCallLog: false,
})
const { settings } = await bucketStore(t)

/** TLS in front of an engine that speaks HTTP: the URL that leads to it by way of TLS. */
async function behindTls(url: string, certificate: Certificate): Promise<string> {
  const sockets = new Set<Socket>()
  const target = new URL(url)
  const enginePort = Number(target.port)
  const credentials = { cert: readFileSync(certOf(certificate)), key: readFileSync(keyOf(certificate)) }
  const server = createServer(credentials, (socket) => {
    const engine = connect(enginePort, LOOPBACK)
    for (const [from, to] of [[socket, engine] as const, [engine, socket] as const]) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
      from.pipe(to)
    }
  })
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  await once(server.listen(0, LOOPBACK), 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  target.protocol = 'https:'
  target.hostname = 'localhost'
  target.port = String((server.address() as AddressInfo).port)
  return target.href
}

/** A NATS server with this certificate, or without TLS. */
async function startNats(certificate: Certificate | null): Promise<string> {
  const { path } = await findNatsServer(INSTALLED_NATS_FOLDERS)
  const port = await freePort()
  const configuration = join(dataDir, `nats-${port}.conf`)
  // The time for a handshake is half a second by itself, too little on a machine that runs other tests.
  const tls =
    certificate &&
    `tls { cert_file: "${certOf(certificate)}", key_file: "${keyOf(certificate)}", timeout: 30 }`
  writeFileSync(configuration, `listen: "${LOOPBACK}:${port}"\n${tls ?? ''}\n`)
  const server = spawn(path, ['--config', configuration])
  const ended = once(server, 'exit')
  t.teardown(() => {
    server.kill()
    return ended
  })
  await new Promise<void>((resolve, reject) => {
    let output = ''
    server.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      if (output.includes('Server is ready')) resolve()
    })
    server.once('exit', () => reject(new Error(output)))
  })
  return `tls://localhost:${port}`
}

const cluster = join(dataDir, 'postgres')
const postgres = new URL(databaseUrl)
postgres.hostname = 'localhost'
postgres.searchParams.set('sslmode', 'verify-full')

/** Files of certificates that are PostgreSQL's alone. */
function withFiles(files: Readonly<Record<string, string>>): string {
  const url = new URL(postgres)
  for (const [name, path] of Object.entries(files)) url.searchParams.set(name, path)
  return url.href
}

async function postgresShows(certificate: Certificate): Promise<void> {
  const { uid, gid } = statSync(join(cluster, 'PG_VERSION'))
  const key = join(cluster, 'test.key')
  copyFileSync(keyOf(certificate), key)
  chmodSync(key, 0o600)
  chownSync(key, uid, gid)
  const cert = join(cluster, `${certificate}.crt`)
  copyFileSync(certOf(certificate), cert)
  const sql = connectPostgres(databaseUrl, { max: 1, name: 'test' })
  await sql.unsafe(`ALTER SYSTEM SET ssl_cert_file = '${cert}'`)
  await sql.unsafe(`ALTER SYSTEM SET ssl_key_file = '${key}'`)
  await sql`ALTER SYSTEM SET ssl = on`
  await sql`SELECT pg_reload_conf()`
  await sql.end()
  for (let shown = ''; shown !== cert; ) {
    // A new connection has what the server itself has read by then.
    const fresh = connectPostgres(databaseUrl, { max: 1, name: 'test' })
    const [row] = await fresh<[{ ssl_cert_file: string }]>`SHOW ssl_cert_file`
    shown = row.ssl_cert_file
    await fresh.end()
  }
}

t.test('an engine without TLS is not reached by a URL that asks for it', async (t) => {
  const found = await reach(TEST_CA, {
    postgres: ['postgres', postgres.href],
    nats: ['nats', await startNats(null)],
    clickhouse: ['clickhouse', clickhouseUrl.replace('http:', 'https:')],
    bucket: ['bucket', settings.endpoint.replace('http:', 'https:')],
  })
  for (const [name, outcome] of Object.entries(found)) t.match(outcome, /^refused: /, name)
})

t.test('an engine is reached by TLS under its name, of an authority of NODE_EXTRA_CA_CERTS', async (t) => {
  await postgresShows('localhost')
  const engines: Record<string, [string, string]> = {
    postgres: ['postgres', postgres.href],
    nats: ['nats', await startNats('localhost')],
    clickhouse: ['clickhouse', await behindTls(clickhouseUrl, 'localhost')],
    bucket: ['bucket', await behindTls(settings.endpoint, 'localhost')],
  }
  const [trusting, other] = await Promise.all([reach(TEST_CA, engines), reach(null, engines)])
  for (const name of Object.keys(engines)) {
    t.equal(trusting[name], 'connected', name)
    t.match(
      other[name],
      /^refused: .*The certificate of \w+ is not of a trusted authority: set NODE_EXTRA_CA_CERTS/,
      `${name} without the authority`,
    )
  }
  const [named] = Object.values(
    await reach(null, { postgres: ['postgres', withFiles({ sslrootcert: TEST_CA })] }),
  )
  t.equal(named, 'connected', 'an authority of PostgreSQL alone')
  const [another] = Object.values(
    await reach(TEST_CA, { postgres: ['postgres', withFiles({ sslrootcert: certOf('expired') })] }),
  )
  t.match(another, /^refused: .*not of a trusted authority/, 'which then is the only one')
  const [missing] = Object.values(
    await reach(TEST_CA, { postgres: ['postgres', withFiles({ sslrootcert: '/none' })] }),
  )
  t.match(missing, /^refused: The file of sslrootcert .* cannot be read: ENOENT/)
  const byAddress = new URL(postgres)
  byAddress.hostname = LOOPBACK
  const [addressed] = Object.values(await reach(TEST_CA, { postgres: ['postgres', byAddress.href] }))
  t.equal(addressed, 'connected', 'an address that the certificate names')
})

t.test('an expired certificate is refused', async (t) => {
  await postgresShows('expired')
  const found = await reach(certOf('expired'), {
    postgres: ['postgres', postgres.href],
    nats: ['nats', await startNats('expired')],
    clickhouse: ['clickhouse', await behindTls(clickhouseUrl, 'expired')],
    bucket: ['bucket', await behindTls(settings.endpoint, 'expired')],
  })
  for (const [name, outcome] of Object.entries(found))
    t.match(outcome, new RegExp(`^refused: .*The certificate of ${name} has expired`, 'i'), name)
})

t.test('an engine with the certificate of another name is refused', async (t) => {
  await postgresShows('other')
  const found = await reach(TEST_CA, {
    postgres: ['postgres', postgres.href],
    nats: ['nats', await startNats('other')],
    clickhouse: ['clickhouse', await behindTls(clickhouseUrl, 'other')],
    bucket: ['bucket', await behindTls(settings.endpoint, 'other')],
  })
  for (const [name, outcome] of Object.entries(found))
    t.match(outcome, /^refused: .*does not match certificate's altnames.* is for another name/, name)
  const byAddress = new URL(postgres)
  byAddress.hostname = LOOPBACK
  const [addressed] = Object.values(await reach(TEST_CA, { postgres: ['postgres', byAddress.href] }))
  t.match(addressed, /^refused: .*does not match/, 'nor at an address')
})
