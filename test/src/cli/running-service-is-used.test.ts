import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { lockDataDir } from '../../../src/embedded/data-dir.ts'
import { currentMasterKey } from '../../../src/postgres/accounts/master-key.ts'
import { migrate } from '../../../src/postgres/migrate.ts'
import { startEngines } from '../../support/engines.ts'
import { RUN_ADDRESS } from '../../support/run-address.ts'
import { tollgate } from './support.ts'

// A running service, as far as the command line can tell: its engines, its lock and its run.json.
const engines = await startEngines(t, { only: ['postgres'] })
await migrate(engines.databaseUrl)
const masterKey = currentMasterKey(engines.dataDir).toString('base64')
const lock = await lockDataDir(engines.dataDir)
const configFile = join(engines.dataDir, 'service.yaml')
// A variable that only the service has.
writeFileSync(
  configFile,
  `trial_credit: "77"
models:
  - { id: sonata-large, pricing: { unit: 1M_tokens, input: "1", output: "1" } }
channels:
  - { id: one, protocol: chat-completions, base_url: "\${NOWHERE_URL}", api_key: k, models: { sonata-large: b } }
`,
)
t.teardown(() => lock.release())
lock.writeRunFile({ ...RUN_ADDRESS, database_url: engines.databaseUrl, config_file: configFile })
const env = { TOLLGATE_DATA_DIR: engines.dataDir }
const here = { TOLLGATE_DATA_DIR: '/proc/nowhere', DATABASE_URL: engines.databaseUrl }

t.test('a command works on the database that run.json names', async (t) => {
  const created = await tollgate(['account', 'create', '--name', 'Acme', '--json'], env)
  t.match(created, { code: 0, stderr: '' })
  const { id, wallet } = JSON.parse(created.stdout)
  t.equal(wallet.remaining, '77', 'with the trial credit of the configuration that it names')
  const shown = await tollgate(['account', 'show', id, '--json'], { ...here, TOLLGATE_MASTER_KEY: masterKey })
  t.match(shown, { code: 0, stdout: created.stdout }, 'and DATABASE_URL reaches the same')
  const { code, stdout } = await tollgate(['audit', '--account', id, '--json'], env)
  const actor = `operator:${userInfo().username}`
  t.equal(code, 0)
  t.match(JSON.parse(stdout).at(-1), {
    actor,
    action: 'account.create',
    subject_id: id,
    after: { name: 'Acme' },
  })
})

t.test('keys are checked against the models of the service', async (t) => {
  const [account] = JSON.parse((await tollgate(['account', 'list', '--json'], env)).stdout)
  const create = (models: string) =>
    tollgate(['key', 'create', '--account', account.id, '--name', 'a', '--models', models], env)
  t.match(await create('sonata-lagre'), { code: 1, stdout: '', stderr: /Did you mean "sonata-large"\?/ })
  t.match(await create('sonata-large'), { code: 0, stderr: '' })
})

t.test('a configuration that cannot be known is asked for', async (t) => {
  const elsewhere = { ...here, TOLLGATE_MASTER_KEY: masterKey }
  const refused = await tollgate(['account', 'create', '--name', 'Acme'], elsewhere)
  t.match(refused, {
    code: 1,
    stdout: '',
    stderr: /runs elsewhere\. Set TOLLGATE_CONFIG to the configuration/,
  })
  const named = { ...elsewhere, TOLLGATE_CONFIG: configFile }
  const { stdout } = await tollgate(['account', 'create', '--name', 'Acme', '--json'], named)
  t.equal(JSON.parse(stdout).wallet.remaining, '77')
})

t.test('another master key than the database was made with is named as the reason', async (t) => {
  const { code, stdout, stderr } = await tollgate(['account', 'list'], {
    ...env,
    TOLLGATE_MASTER_KEY: '00'.repeat(32),
  })
  t.match({ code, stdout, stderr }, { code: 1, stdout: '', stderr: /TOLLGATE_MASTER_KEY is not the one/ })
})

t.test('a database of one’s own needs its master key named', async (t) => {
  t.match(await tollgate(['account', 'list'], here), { code: 1, stderr: /TOLLGATE_MASTER_KEY is required/ })
})

t.test('an engine that does not answer is an error, not a wait', async (t) => {
  const away = { ...here, DATABASE_URL: 'postgres://u:p@127.0.0.1:9/x', TOLLGATE_MASTER_KEY: masterKey }
  t.match(await tollgate(['account', 'list'], away), { code: 1, stdout: '', stderr: /ECONNREFUSED/ })
  const audit = await tollgate(['wallet', 'verify', '--json'], env)
  t.match(audit, { code: 0, stderr: /call log/ }, 'the money is audited without the call log')
  t.match(JSON.parse(audit.stdout), { ok: true, call_log_not_compared: String })
})
