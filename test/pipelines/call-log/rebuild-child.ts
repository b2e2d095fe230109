/** A rebuild in a process of its own, which the kernel kills at the point of its work that the environment names. */
import { createClient } from '@clickhouse/client'
import { rebuildLog } from '../../../pipelines/call-log/rebuild.ts'
import { openCallLog } from '../../../src/clickhouse/call-log.ts'
import { openDatabase } from '../../../src/postgres/database.ts'

export type RebuildKillPoint = 'half done' | 'one of two tables exchanged' | 'exchanged'

const setting = (name: string): string => {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}
/** Its parent is gone, or never reaches the point: it must not outlive the test. */
const MAX_LIFE_MS = 60_000
setTimeout(() => process.exit(3), MAX_LIFE_MS)

const dieAt = setting('DIE_AT') as RebuildKillPoint
const die = (): Promise<never> => {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}

const database = await openDatabase({
  url: setting('DATABASE_URL'),
  masterKey: Buffer.from(setting('MASTER_KEY'), 'hex'),
})
const callLog = openCallLog(setting('CLICKHOUSE_URL'))
const client = createClient({ url: setting('CLICKHOUSE_URL') })

await rebuildLog({
  database,
  callLog: {
    insertCalls: callLog.insertCalls,
    async createRebuildTables() {
      const fresh = await callLog.createRebuildTables()
      return {
        insertCalls: fresh.insertCalls,
        keepCallsBefore: fresh.keepCallsBefore,
        async swap() {
          if (dieAt === 'one of two tables exchanged') {
            await client.command({ query: 'EXCHANGE TABLES calls AND calls_rebuilt' })
            return die()
          }
          await fresh.swap()
          return die()
        },
        drop: fresh.drop,
      }
    },
  },
  onProgress: ({ rows, total }) => (dieAt === 'half done' && rows * 2 >= total ? die() : undefined),
  rangeRows: 20,
})
