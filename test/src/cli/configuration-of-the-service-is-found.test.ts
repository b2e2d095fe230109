import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findConfigFile } from '../../../src/cli/config/file.ts'
import { DEMONSTRATION_FILE } from '../../../src/config/demonstration.ts'
import { lockDataDir } from '../../../src/embedded/data-dir.ts'
import { testDataDir } from '../../support/engines.ts'
import { RUN_ADDRESS } from '../../support/run-address.ts'

const ELSEWHERE = { DATABASE_URL: 'postgres://u:p@127.0.0.1:9/x', TOLLGATE_MASTER_KEY: '00'.repeat(32) }

const dataDir = await testDataDir(t)
const env = { TOLLGATE_DATA_DIR: dataDir }
const file = join(dataDir, 'a.yaml')
writeFileSync(file, 'trial_credit: "1"\n')

t.test('a data directory without a past has the demonstration; a database elsewhere has none', async (t) => {
  t.equal(findConfigFile(env), DEMONSTRATION_FILE)
  t.throws(() => findConfigFile({ ...env, ...ELSEWHERE }), /runs elsewhere\. Set TOLLGATE_CONFIG/)
  t.equal(findConfigFile({ ...env, ...ELSEWHERE, TOLLGATE_CONFIG: file }), file)
})

t.test('a running service names its own, then the data directory remembers it', async (t) => {
  const lock = await lockDataDir(dataDir)
  t.teardown(() => lock.release())
  lock.writeRunFile({ ...RUN_ADDRESS, config_file: file })
  lock.rememberConfig(file)
  t.equal(findConfigFile(env), file)
  t.equal(findConfigFile({ ...env, ...ELSEWHERE }), file)
  t.equal(
    findConfigFile({ ...env, TOLLGATE_CONFIG: '/etc/other.yaml' }),
    '/etc/other.yaml',
    'unless one is named',
  )

  rmSync(file)
  const gone = (what: string) =>
    new RegExp(`${what} .*${file}, and there is no such file any more\\. Set TOLLGATE_CONFIG`)
  t.throws(() => findConfigFile(env), gone('that runs in'))
  writeFileSync(file, 'trial_credit: "1"\n')
  lock.release()
  t.equal(findConfigFile(env), file)
  rmSync(file)
  t.throws(() => findConfigFile(env), gone('that ran last in'))
})

t.test('a demonstration leaves no memory', async (t) => {
  const lock = await lockDataDir(dataDir)
  t.teardown(() => lock.release())
  lock.writeRunFile(RUN_ADDRESS)
  lock.rememberConfig(null)
  t.equal(findConfigFile(env), DEMONSTRATION_FILE)
  lock.release()
  t.equal(findConfigFile(env), DEMONSTRATION_FILE)
})
