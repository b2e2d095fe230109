/** How long the call log keeps calls is taken from the configuration file, and from the file as it is changed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Boot } from '../../../src/server/messages.ts'
import { startLogMaintenance } from '../../../src/server/settler/log-retention.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import { usageText } from '../../support/usage-text.ts'
import { bookedCall } from '../clickhouse/support.ts'

const DAY_MS = 86_400_000

t.test('the call log is kept as configured', async (t) => {
  const engines = await startEngines(t, { only: ['clickhouse'] })
  const callLog = callLogAt(t, engines.clickhouseUrl)
  const ages = [0, 100, 400]
  const calls = ages.map((age, index) => bookedCall(index + 1, { created_at: Date.now() - age * DAY_MS }))
  await callLog.insertCalls({ token: 'usage-1-3', text: usageText(calls) })
  const path = join(engines.dataDir, 'tollgate.yaml')
  const write = (text: string) => writeFileSync(path, text)
  const months = async () =>
    (await callLog.monthSums({ from: 0n, upto: BigInt(ages.length), admittedSince: 0 })).length

  const told: string[] = []
  const tell = (_: object, message: string) => void told.push(message)
  const boot: Boot = {
    role: 'settler',
    index: 0,
    gatewayCount: 1,
    host: '127.0.0.1',
    port: 0,
    admin: null,
    tls: null,
    publicUrl: '',
    console: null,
    dataDir: engines.dataDir,
    configPath: path,
    databaseUrl: '',
    databasePoolUrl: null,
    databaseReadUrl: null,
    natsUrl: '',
    natsReplicas: null,
    clickhouseCluster: null,
    clickhouseUrl: engines.clickhouseUrl,
    simulatorUrl: null,
    objectStore: null,
    mail: null,
    payments: null,
    hasSimulatedCards: false,
    masterKey: '',
    logLevel: 'info',
  }
  write('logs: { retention_days: soon }\n')
  const keeper = startLogMaintenance(boot, callLog, {
    trace: tell,
    debug: tell,
    info: tell,
    warn: tell,
    error: tell,
    fatal: tell,
  })
  t.teardown(() => keeper.stop())

  write('logs: { retention_days: 300 }\n')
  await until('two months are left', async () => (await months()) === 2)
  write('logs: { retention_days: 0 }\n')
  await until('the configuration is refused', () =>
    told.some((message) => message.startsWith('Configuration refused')),
  )
  t.equal(await months(), 2, 'a broken file drops nothing')
  write('logs: { retention_days: 50 }\n')
  await until('one month is left', async () => (await months()) === 1)
  await keeper.stop()
  t.equal(told.filter((message) => message.includes('Dropped old months')).length, 2)
})
