/** Settings and secrets of the configuration. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { parse, parseDocument } from 'yaml'
import { hideSecrets, MASK, restoreSecrets } from '../../../src/config/secrets.ts'
import {
  findMisspelledSettings,
  localUrl,
  readSettings,
  SettingsError,
} from '../../../src/config/settings.ts'
import type { Environment } from '../../../src/config/source.ts'

t.test('settings read', async (t) => {
  const problemsOf = (env: Environment) => {
    try {
      readSettings(env, '/nowhere')
      return []
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      return error.problems.map(({ variable }) => variable)
    }
  }

  t.test('nothing set: everything embedded, in the working folder', async (t) => {
    const folder = t.testdir({})
    t.same(readSettings({ UNRELATED: 'x', DATABASE_URL: '', S3_BUCKET: ' ' }, folder), {
      host: '127.0.0.1',
      port: 8080,
      admin: null,
      tls: null,
      publicUrl: null,
      console: { host: null },
      dataDir: join(folder, '.tollgate'),
      configPath: null,
      masterKey: null,
      newMasterKey: null,
      keys: null,
      workers: 1,
      roles: ['gateway', 'settler', 'tasks'],
      databaseUrl: null,
      databaseOwnerUrl: null,
      databasePoolUrl: null,
      databaseReadUrl: null,
      natsUrl: null,
      clickhouseUrl: null,
      objectStore: null,
      mail: null,
      payments: null,
      logLevel: 'info',
    })
  })

  t.test('a listener for operators, and TLS for the other', async (t) => {
    t.same(readSettings({ TOLLGATE_ADMIN_PORT: '9000' }).admin, { host: '127.0.0.1', port: 9000 })
    t.match(readSettings({ TOLLGATE_ADMIN_PORT: '0', TOLLGATE_ADMIN_HOST: '::' }), {
      admin: { host: '::', port: 0 },
    })
    const both = { TOLLGATE_TLS_CERT: 'tls.crt', TOLLGATE_TLS_KEY: '/etc/tls.key' }
    t.same(readSettings(both, '/data').tls, { cert: '/data/tls.crt', key: '/etc/tls.key' })
    t.same(problemsOf({ TOLLGATE_TLS_CERT: 'tls.crt' }), ['TOLLGATE_TLS_KEY'])
    t.same(problemsOf({ TOLLGATE_TLS_KEY: 'tls.key' }), ['TOLLGATE_TLS_CERT'])
  })

  t.test('tollgate.yaml of the working folder is taken when it is there', async (t) => {
    const folder = t.testdir({ 'tollgate.yaml': '', 'other.yaml': '' })
    t.equal(readSettings({}, folder).configPath, join(folder, 'tollgate.yaml'))
    t.equal(readSettings({ TOLLGATE_CONFIG: 'other.yaml' }, folder).configPath, join(folder, 'other.yaml'))
    t.equal(readSettings({ TOLLGATE_CONFIG: '/etc/t.yaml' }, folder).configPath, '/etc/t.yaml')
  })

  t.test('everything set', async (t) => {
    const key = randomBytes(32)
    const settings = readSettings({
      TOLLGATE_HOST: '::',
      TOLLGATE_PORT: '0',
      TOLLGATE_PUBLIC_URL: 'https://gateway.example.com/',
      TOLLGATE_DATA_DIR: '/var/lib/tollgate',
      TOLLGATE_MASTER_KEY: key.toString('base64'),
      TOLLGATE_NEW_MASTER_KEY: key.toString('hex'),
      TOLLGATE_KEYS: 'hash',
      TOLLGATE_WORKERS: '4',
      TOLLGATE_ROLES: 'settler, gateway',
      DATABASE_URL: 'postgresql://u:p@one:5432,two:5432/tollgate',
      DATABASE_READ_URL:
        'postgresql://u:p@two:5432/tollgate?target_session_attrs=standby&sslmode=verify-full',
      TOLLGATE_DATABASE_OWNER_URL: 'postgresql://o:p@one/tollgate',
      NATS_URL: 'nats://one:4222,tls://two:4222',
      CLICKHOUSE_URL: 'http://u:p@clickhouse:8123',
      S3_ENDPOINT: 'http://minio:9000/',
      S3_BUCKET: 'b',
      S3_ACCESS_KEY_ID: 'i',
      S3_SECRET_ACCESS_KEY: 's',
      LOG_LEVEL: 'WARN',
    })
    t.match(settings, {
      host: '::',
      port: 0,
      publicUrl: 'https://gateway.example.com',
      console: { host: null },
      dataDir: '/var/lib/tollgate',
      keys: 'hash',
      workers: 4,
      roles: ['gateway', 'settler'],
      databaseUrl: 'postgresql://u:p@one:5432,two:5432/tollgate',
      databaseReadUrl: 'postgresql://u:p@two:5432/tollgate?target_session_attrs=standby&sslmode=verify-full',
      databaseOwnerUrl: 'postgresql://o:p@one/tollgate',
      natsUrl: 'nats://one:4222,tls://two:4222',
      objectStore: { endpoint: 'http://minio:9000', region: 'us-east-1', bucket: 'b' },
      logLevel: 'warn',
    })
    t.same(settings.masterKey, key)
    t.same(settings.newMasterKey, key)
    t.same(readSettings({ TOLLGATE_MASTER_KEY: key.toString('hex') }).masterKey, key)
  })

  t.test('every wrong variable is named, with what to do and without its value', async (t) => {
    const wrong = {
      TOLLGATE_HOST: 'a b',
      TOLLGATE_PORT: 'tcp://10.0.0.7:80',
      TOLLGATE_PUBLIC_URL: 'gateway.example.com',
      TOLLGATE_MASTER_KEY: 'planted-secret',
      TOLLGATE_NEW_MASTER_KEY: 'planted-secret',
      TOLLGATE_KEYS: 'planted-secret',
      TOLLGATE_WORKERS: '0',
      TOLLGATE_ROLES: 'gateway,poller',
      DATABASE_URL: 'mysql://u:planted-secret@x/y',
      TOLLGATE_DATABASE_OWNER_URL: 'mysql://u:planted-secret@x/y',
      NATS_URL: 'http://u:planted-secret@x',
      CLICKHOUSE_URL: 'clickhouse://u:planted-secret@x',
      S3_ENDPOINT: 'minio:9000',
      LOG_LEVEL: 'loud',
    }
    t.same(problemsOf(wrong), Object.keys(wrong))
    t.throws(() => readSettings(wrong), { message: /openssl rand -hex 32/ })
    t.throws(() => readSettings(wrong), { message: /^(?!.*planted-secret)/s })
    for (const port of ['65536', '-1', '0x10', '1.5', '1e3'])
      t.same(problemsOf({ TOLLGATE_PORT: port }), ['TOLLGATE_PORT'])
  })

  t.test('a standby is read where a primary is named, of servers of a known kind', async (t) => {
    const url = 'postgres://u:p@one,two/x'
    t.same(problemsOf({ DATABASE_READ_URL: url }), ['DATABASE_READ_URL'])
    const given = { DATABASE_URL: `${url}?target_session_attrs=slave`, TOLLGATE_MASTER_KEY: '00'.repeat(32) }
    t.same(problemsOf(given), ['DATABASE_URL'])
  })

  t.test('a database of your own needs a master key of your own', async (t) => {
    t.same(problemsOf({ DATABASE_URL: 'postgres://x/y' }), ['TOLLGATE_MASTER_KEY'])
  })

  t.test('a bucket needs all of its settings', async (t) => {
    t.same(problemsOf({ S3_REGION: 'eu-central-1' }), [])
    const bucket = {
      S3_ENDPOINT: 'http://minio:9000/',
      S3_BUCKET: 'b',
      S3_ACCESS_KEY_ID: 'id',
      S3_SECRET_ACCESS_KEY: 'secret',
    }
    const { objectStore } = readSettings(bucket)
    t.match(objectStore, { endpoint: 'http://minio:9000', publicEndpoint: 'http://minio:9000' })
    const behindProxy = readSettings({ ...bucket, S3_PUBLIC_ENDPOINT: 'https://files.example.com' })
    t.equal(behindProxy.objectStore?.publicEndpoint, 'https://files.example.com')
    t.same(problemsOf({ S3_BUCKET: 'b', S3_ENDPOINT: 'http://minio:9000' }), [
      'S3_ACCESS_KEY_ID',
      'S3_SECRET_ACCESS_KEY',
    ])
  })

  t.test('the address on this machine', async (t) => {
    t.equal(localUrl('127.0.0.1', 1), 'http://127.0.0.1:1')
    t.equal(localUrl('0.0.0.0', 1), 'http://127.0.0.1:1')
    t.equal(localUrl('::', 1), 'http://[::1]:1')
    t.equal(localUrl('fe80::1', 1), 'http://[fe80::1]:1')
    t.equal(localUrl('gateway', 1), 'http://gateway:1')
  })

  t.test('a variable that is called nearly as a setting is likely misspelt', async (t) => {
    const env = {
      TOLLGATE_PROT: '80',
      TOLLGATE_DATADIR: '/var/lib/tollgate',
      TOLLGATE_PORT: '8080',
      TOLLGATE_KEY: 'sk-tollgate-1',
      TOLLGATE_OPENAI_API_KEY: 'for the configuration',
      TOLLGATE_SERVICE_HOST: '10.0.0.7',
      TOLLGATE_PORT_8080_TCP: 'tcp://10.0.0.7:8080',
      NATS_URI: '',
    }
    t.same(findMisspelledSettings(env), [
      { variable: 'TOLLGATE_PROT', meant: 'TOLLGATE_PORT' },
      { variable: 'TOLLGATE_DATADIR', meant: 'TOLLGATE_DATA_DIR' },
    ])
  })
})

t.test('secrets are masked and put back', async (t) => {
  // Secrets of a configuration are never shown, and a masked one is put back where it was.
  const TEXT = `# prices are ours
metrics: { token: 'metrics-secret' }
channels:
  - id: one # the first
    api_key: sk-one
    headers: { x-tenant: tenant-secret }
  - id: two
    api_key: \${TWO_KEY}
    headers:
      authorization: "Bearer two"
  - id: three
    auth: { type: aws-sigv4, region: eu-west-1, access_key_id: access-id, secret_access_key: access-secret }
sign_in:
  oidc:
    - id: company
      client_secret: oidc-secret
`
  const SECRETS = [
    'metrics-secret',
    'sk-one',
    'tenant-secret',
    'Bearer two',
    'access-id',
    'access-secret',
    'oidc-secret',
  ]

  t.test('no secret is shown, and all else stays as it is written', async (t) => {
    const shown = hideSecrets(TEXT)
    for (const secret of SECRETS) t.notMatch(shown, secret)
    t.equal(shown.split(MASK).length - 1, SECRETS.length)
    for (const kept of ['# prices are ours', '# the first', '${TWO_KEY}', 'x-tenant'])
      t.ok(shown.includes(kept), kept)
  })

  t.test('a masked secret is put back, also where its entry has moved', async (t) => {
    const shown = hideSecrets(TEXT)
    const put = restoreSecrets(shown, TEXT)
    for (const secret of SECRETS) t.ok(put.includes(secret), secret)
    t.notOk(put.includes(MASK))
    const two = `channels:\n  - { id: two, headers: { authorization: "${MASK}" } }\n  - { id: one, api_key: "${MASK}" }\n`
    t.equal(
      restoreSecrets(two, TEXT),
      two.replace(`"${MASK}"`, '"Bearer two"').replace(`"${MASK}"`, '"sk-one"'),
    )
  })

  t.test('a secret of several lines is masked in one, and put back', async (t) => {
    const text = `channels:
  - id: one
    auth:
      type: google
      credentials: |
        {"type":
          "service_account"}
    models: { a: b }
  - id: two
    api_key: >-
      sk-two
`
    const shown = hideSecrets(text)
    t.same(parseDocument(shown).errors, [])
    t.notMatch(shown, 'service_account')
    t.same(parse(restoreSecrets(shown, text)), parse(text))
  })

  t.test('a list of secrets is put back as it was edited', async (t) => {
    const listed = (...keys: string[]) => `channels:\n  - id: one\n    api_keys: [${keys.join(', ')}]\n`
    const current = listed('sk-a', '${B_KEY}', 'sk-c', 'sk-d')
    const masked = /"[^"]+"/g
    const shown = hideSecrets(current)
    const [a = '', c = '', d = ''] = shown.match(masked) ?? []
    t.equal(shown, listed(a, '${B_KEY}', c, d))
    const put = (...keys: string[]) => restoreSecrets(listed(...keys), current)
    t.equal(put(a, '${B_KEY}', c, d), listed('"sk-a"', '${B_KEY}', '"sk-c"', '"sk-d"'), 'unchanged')
    t.equal(put(c, d), listed('"sk-c"', '"sk-d"'), 'the earlier ones are removed')
    t.equal(put(d, c, a), listed('"sk-d"', '"sk-c"', '"sk-a"'), 'moved')
    t.equal(put('sk-new', d, a), listed('sk-new', '"sk-d"', '"sk-a"'), 'one is added in front')
    t.equal(put(`"${MASK}"`), listed(`"${MASK}"`), 'a mask that names none of them stays')
    t.equal(put(`"${MASK}9"`), listed(`"${MASK}9"`), 'a mask of a key that is not there stays')
  })

  t.test('a secret below entries without an id is put back where its entry is now', async (t) => {
    const current = 'proxies:\n  - { name: a, token: one }\n  - { name: b, token: two }\n'
    const [, second = ''] = hideSecrets(current).match(/"[^"]+"/g) ?? []
    const text = `proxies:\n  - { name: b, token: ${second} }\n`
    t.equal(restoreSecrets(text, current), text.replace(second, '"two"'))
  })

  t.test('a mask without a secret in the file stays, and a new secret is taken', async (t) => {
    const text = `channels:\n  - { id: three, api_key: "${MASK}" }\n  - { id: one, api_key: sk-new }\n`
    t.equal(restoreSecrets(text, TEXT), text)
  })

  t.test('text that is no YAML is no error', async (t) => {
    for (const broken of ['{', 'a: [', '\t- x', '"', '']) t.equal(typeof hideSecrets(broken), 'string')
  })
})
