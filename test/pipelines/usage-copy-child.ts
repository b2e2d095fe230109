/**
 * A copier in a process of its own, which the kernel kills at one point of its work. The point is named in the
 * environment: `inserted` is behind the insert of a range and before its end; `claimed` is before the insert.
 */
import { usageCopier } from '../../pipelines/usage-copy.ts'
import { openCallLog } from '../../src/clickhouse/call-log.ts'
import { openDatabase } from '../../src/postgres/database.ts'

const setting = (name: string): string => {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}
/** Its parent is gone, or never reaches the point: it must not outlive the test. */
const MAX_LIFE_MS = 20_000
setTimeout(() => process.exit(3), MAX_LIFE_MS)

const dieAt = setting('DIE_AT')
const die = (): Promise<never> => {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}

const database = await openDatabase({
  url: setting('DATABASE_URL'),
  masterKey: Buffer.from(setting('MASTER_KEY'), 'hex'),
})
const callLog = openCallLog(setting('CLICKHOUSE_URL'))
usageCopier({
  database: {
    claimCopyRange: database.claimCopyRange,
    readUsageRows: database.readUsageRows,
    finishCopyRange: dieAt === 'inserted' ? die : database.finishCopyRange,
  },
  callLog: { insertCalls: dieAt === 'claimed' ? die : callLog.insertCalls },
}).start()
