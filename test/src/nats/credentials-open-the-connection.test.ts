/** A connection is opened with the seed of an nkey in a file, and not without it or with another. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import t from 'tap'
import { findNatsServer, INSTALLED_NATS_FOLDERS } from '../../../src/embedded/nats/binary.ts'
import { freePort } from '../../../src/embedded/ports.ts'
import { endWithUs, plainEnvironment } from '../../../src/embedded/programs.ts'
import { Connection } from '../../../src/nats/connection.ts'
import { eventually } from '../../support/eventually.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-nats-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const [user, stranger] = [nkeys.createUser(), nkeys.createUser()]
const port = await freePort()
const fileOf = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name)
  writeFileSync(path, content, { mode: 0o600 })
  return path
}
const configuration = fileOf(
  'nats.conf',
  `listen: "127.0.0.1:${port}"\nauthorization { users: [{ nkey: "${user.getPublicKey()}" }] }\n`,
)
const { path } = await findNatsServer(INSTALLED_NATS_FOLDERS)
const [program = '', ...args] = [...endWithUs('SIGKILL'), path, '-c', configuration]
const server = spawn(program, args, { env: plainEnvironment(), stdio: 'ignore' })
t.teardown(async () => {
  const gone = once(server, 'exit')
  server.kill('SIGKILL')
  await gone
})

const open = (query: string): Connection => {
  const quiet = { info() {}, warn() {}, error() {} }
  const connection = new Connection(`nats://127.0.0.1:${port}${query}`, 'test', quiet)
  t.teardown(() => connection.close())
  return connection
}
const isRefused = (connection: Connection) =>
  eventually('it is refused', () => {
    const { isConnected, lastError } = connection.health()
    return !isConnected && /authorization/i.test(lastError ?? '') ? true : undefined
  })

t.test('the seed of an nkey', async (t) => {
  const seed = fileOf('user.nk', user.getSeed())
  const right = open(`?credentials=${seed}`)
  t.ok(await eventually('it is connected', () => (right.health().isConnected ? true : undefined)))
  t.ok(await isRefused(open('')))
  t.ok(await isRefused(open(`?credentials=${fileOf('stranger.nk', stranger.getSeed())}`)))
  const late = open(`?credentials=${join(folder, 'late.nk')}`)
  await eventually('a missing file is named', () =>
    /late\.nk/.test(late.health().lastError ?? '') ? true : undefined,
  )
  fileOf('late.nk', `${Buffer.from(user.getSeed()).toString()}\n`)
  t.ok(await eventually('it is connected', () => (late.health().isConnected ? true : undefined)))
})
