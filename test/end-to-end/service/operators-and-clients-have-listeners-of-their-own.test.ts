/** A service as strangers reach it: by TLS, and without what is for operators. */
import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import t from 'tap'
import { readRunning } from '../../../src/embedded/data-dir.ts'
import { testDataDir } from '../../support/engines.ts'
import { startService, testConfig, until } from '../../support/service.ts'
import { isHealthy } from './container-health.ts'

const FIXTURES = new URL('../../fixtures/tls/', import.meta.url)
const TOKEN = 'a-token-for-the-metrics'

const files = await testDataDir(t)
const cert = join(files, 'tls.crt')
const key = join(files, 'tls.key')
const install = (name: string) => {
  copyFileSync(new URL(`test-only-${name}.crt`, FIXTURES), cert)
  copyFileSync(new URL(`test-only-${name}.key`, FIXTURES), key)
}

/** Status and body, whichever authority signed the certificate. */
const ask = (url: string, headers: Record<string, string> = {}): Promise<string> =>
  new Promise((resolve, reject) => {
    const sent = request(
      url,
      { headers, ca: readFileSync(new URL('test-only-ca.crt', FIXTURES)) },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (piece) => {
          text += piece
        })
        response.on('end', () => resolve(`${response.statusCode} ${text}`))
      },
    )
    sent.on('error', reject)
    sent.end()
  })

function fingerprint(baseUrl: string): Promise<string> {
  const { hostname, port } = new URL(baseUrl)
  return new Promise((resolve, reject) => {
    const socket: TLSSocket = connect(
      { host: hostname, port: Number(port), rejectUnauthorized: false },
      () => {
        resolve(socket.getPeerCertificate().fingerprint256)
        socket.destroy()
      },
    )
    socket.on('error', reject)
  })
}

t.test('listeners', async (t) => {
  install('localhost')
  const service = await startService(t, {
    config: testConfig({ fast: {} }, 'profile: public\nmetrics: { token: "${TEST_METRICS_TOKEN}" }'),
    env: {
      TOLLGATE_ADMIN_PORT: '0',
      TOLLGATE_HOST: 'localhost',
      TOLLGATE_TLS_CERT: cert,
      TOLLGATE_TLS_KEY: key,
      TEST_METRICS_TOKEN: TOKEN,
    },
  })
  const record = readRunning(service.dataDir)
  const adminUrl = record?.admin_url ?? ''

  await t.test('clients are answered by TLS, and told nothing for operators', async (t) => {
    t.match(service.baseUrl, /^https:\/\/localhost:\d+$/)
    t.equal(await ask(`${service.baseUrl}/healthz`), '200 ok\n')
    // An engine may be slow to answer while others use the machine.
    await until('ready', async () => (await ask(`${service.baseUrl}/readyz`)) === '200 ready\n')
    t.match(await ask(`${service.baseUrl}/metrics`), /^401 /)
    t.match(
      await ask(`${service.baseUrl}/metrics`, { authorization: `Bearer ${TOKEN}` }),
      /^200 .*tollgate_draining/s,
    )
    t.match(await ask(`${service.baseUrl}/v1/key/balance`), /^401 /)
  })

  await t.test('operators have a listener on this machine, where nothing else is', async (t) => {
    t.match(adminUrl, /^http:\/\/127\.0\.0\.1:\d+$/)
    t.match(await (await fetch(`${adminUrl}/metrics`)).text(), /tollgate_draining 0/)
    for (const path of ['/healthz', '/docs', '/openapi.json'])
      t.equal((await fetch(adminUrl + path)).status, 200, path)
    t.equal((await fetch(`${adminUrl}/v1/key/balance`)).status, 404)
  })

  await t.test('a container runtime asks the listener for operators, else that for clients', async (t) => {
    t.ok(isHealthy(service.dataDir))
    const withoutAdmin = await testDataDir(t)
    const keep = (url: string) =>
      writeFileSync(join(withoutAdmin, 'run.json'), JSON.stringify({ admin_url: null, base_url: url }))
    keep(service.baseUrl)
    t.ok(isHealthy(withoutAdmin), 'by TLS')
    keep('https://localhost:1')
    t.notOk(isHealthy(withoutAdmin))
  })

  await t.test("the record of both is its owner's alone", (t) => {
    t.equal(statSync(join(service.dataDir, 'run.json')).mode & 0o777, 0o600)
    t.end()
  })

  await t.test('new accounts have the limits of the public profile', async (t) => {
    const account = await service.database.accounts.create({ name: 'stranger', credit: 1n })
    const { raw } = await service.database.keys.create({ accountId: account.account.id, name: 'key' })
    const answer = await fetchHead(`${service.baseUrl}/v1/models`, raw)
    t.match(answer, { 'x-ratelimit-limit-requests': '600', 'x-ratelimit-limit-concurrency': '64' })
  })

  await t.test('a renewed certificate is taken up, a broken one is not', async (t) => {
    const before = await fingerprint(service.baseUrl)
    copyFileSync(new URL('test-only-other.crt', FIXTURES), cert)
    await until('the refusal is logged', () => service.output().includes('Refused the TLS certificate'))
    t.equal(await fingerprint(service.baseUrl), before)
    install('other')
    // While the listener takes the certificate up it may cut a connection.
    await until(
      'the certificate is taken up',
      async () => ![before, null].includes(await fingerprint(service.baseUrl).catch(() => null)),
    )
  })
})

const fetchHead = (url: string, key: string): Promise<object> =>
  new Promise((resolve, reject) => {
    const options = { headers: { 'x-api-key': key }, ca: readFileSync(new URL('test-only-ca.crt', FIXTURES)) }
    const sent = request(url, options, (response) => {
      response.resume()
      resolve(response.headers)
    })
    sent.on('error', reject)
    sent.end()
  })
