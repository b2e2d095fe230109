/** A connection is opened with the seed of an nkey or a JWT in a file, and not without it or with another. */
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
import { eventually, until } from '../../support/eventually.ts'

type KeyPair = ReturnType<typeof nkeys.createUser>

const folder = mkdtempSync(join(tmpdir(), 'tollgate-nats-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const [user, stranger] = [nkeys.createUser(), nkeys.createUser()]
const port = await freePort()
const fileOf = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name)
  writeFileSync(path, content, { mode: 0o600 })
  return path
}
const { path } = await findNatsServer(INSTALLED_NATS_FOLDERS)
/** Starts a server at this port, which ends with the test. */
function serve(port: number, authorization: string): void {
  const configuration = fileOf(`nats-${port}.conf`, `listen: "127.0.0.1:${port}"\n${authorization}\n`)
  const [program = '', ...args] = [...endWithUs('SIGKILL'), path, '-c', configuration]
  const server = spawn(program, args, { env: plainEnvironment(), stdio: 'ignore' })
  t.teardown(async () => {
    const gone = once(server, 'exit')
    server.kill('SIGKILL')
    await gone
  })
}
serve(port, `authorization { users: [{ nkey: "${user.getPublicKey()}" }] }`)

const open = (query: string, at = port): Connection => {
  const quiet = { info() {}, warn() {}, error() {} }
  const connection = new Connection(`nats://127.0.0.1:${at}${query}`, 'test', quiet)
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
  await until('it is connected', () => right.health().isConnected)
  t.ok(await isRefused(open('')))
  t.ok(await isRefused(open(`?credentials=${fileOf('stranger.nk', stranger.getSeed())}`)))
  const late = open(`?credentials=${join(folder, 'late.nk')}`)
  await until('a missing file is named', () => /late\.nk/.test(late.health().lastError ?? ''))
  fileOf('late.nk', `${Buffer.from(user.getSeed()).toString()}\n`)
  await until('it is connected', () => late.health().isConnected)
})

/** A JWT as NATS has them: `about` is the public key of whom it names, signed by the one who answers for that. */
function jwt(about: string, nats: object, signer: KeyPair, expiresAt?: number): string {
  const part = (content: object) => Buffer.from(JSON.stringify(content)).toString('base64url')
  const claims = {
    jti: about,
    iat: Math.floor(Date.now() / 1000) - 60,
    iss: signer.getPublicKey(),
    name: 'test',
    sub: about,
    ...(expiresAt !== undefined && { exp: expiresAt }),
    nats: { version: 2, ...nats },
  }
  const text = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part(claims)}`
  return `${text}.${Buffer.from(signer.sign(Buffer.from(text))).toString('base64url')}`
}

const credsOf = (token: string, holder: KeyPair): string =>
  ['USER JWT', 'USER NKEY SEED']
    .map((title, index) => {
      const content = index === 0 ? token : Buffer.from(holder.getSeed()).toString()
      return `-----BEGIN ${index === 0 ? 'NATS ' : ''}${title}-----\n${content}\n------END ${index === 0 ? 'NATS ' : ''}${title}------\n`
    })
    .join('\n')

t.test('a .creds file with the JWT of a user', async (t) => {
  const [operator, account, otherAccount] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
  ]
  const unlimited = {
    subs: -1,
    data: -1,
    payload: -1,
    imports: -1,
    exports: -1,
    wildcards: true,
    conn: -1,
    leaf: -1,
  }
  const accountJwt = jwt(account.getPublicKey(), { type: 'account', limits: unlimited }, operator)
  const at = await freePort()
  const operatorJwt = jwt(operator.getPublicKey(), { type: 'operator' }, operator)
  serve(
    at,
    `operator = "${operatorJwt}"
resolver: MEMORY
resolver_preload { ${account.getPublicKey()}: "${accountJwt}" }`,
  )
  const userJwt = (signer: KeyPair, expiresAt?: number) =>
    jwt(user.getPublicKey(), { type: 'user', subs: -1, data: -1, payload: -1 }, signer, expiresAt)
  const file = (name: string, token: string, holder = user) =>
    `?credentials=${fileOf(name, credsOf(token, holder))}`
  const right = open(file('right.creds', userJwt(account)), at)
  await until('it is connected', () => right.health().isConnected)
  t.ok(await isRefused(open('', at)), 'without credentials')
  t.ok(await isRefused(open(file('other.creds', userJwt(otherAccount)), at)), 'of an unknown account')
  t.ok(
    await isRefused(open(file('stolen.creds', userJwt(account), stranger), at)),
    'without the seed of the user',
  )
  const past = Math.floor(Date.now() / 1000) - 10
  t.ok(await isRefused(open(file('expired.creds', userJwt(account, past)), at)), 'expired')
})
