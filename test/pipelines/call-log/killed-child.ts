/** A separate process with a copier or a rebuild. The kernel kills it at the point of its work that the environment names. */
import { createClient } from '@clickhouse/client'
import { rebuildLog } from '../../../pipelines/call-log/rebuild.ts'
import { usageCopier } from '../../../pipelines/call-log/usage-copy.ts'
import { openCallLog } from '../../../src/clickhouse/call-log.ts'
import type { CallRange } from '../../../src/clickhouse/tables/insert-calls.ts'
import type { CopyRange } from '../../../src/postgres/call-log/copy.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import type { DieAt } from './usage-copy-support.ts'

const setting = (name: string): string => {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}
/** Its parent is gone, or never reaches the point: it must not outlive the test. */
const MAX_LIFE_MS = 900_000
setTimeout(() => process.exit(3), MAX_LIFE_MS)

const dieAt = setting('DIE_AT') as DieAt
const die = (): Promise<never> => {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}

const database = await openDatabase({
  url: setting('DATABASE_URL'),
  masterKey: Buffer.from(setting('MASTER_KEY'), 'hex'),
})
const callLog = openCallLog(setting('CLICKHOUSE_URL'))

/** The rows that are in one insert with the first: their lines begin with the same month. */
function firstMonth({ text, ...range }: CallRange): CallRange {
  const lines = text.toString().split(/(?<=\n)/)
  const month = lines[0]?.slice(0, 7) ?? ''
  return { ...range, text: Buffer.from(lines.filter((line) => line.startsWith(month)).join('')) }
}

async function insertCalls(range: CallRange): Promise<number> {
  if (dieAt !== 'between months') return callLog.insertCalls(range)
  await callLog.insertCalls(firstMonth(range))
  return die()
}

async function finishRange(range: CopyRange): Promise<void> {
  if (dieAt === 'inserted') return die()
  await database.callCopy.finishRange(range)
}

const rebuild = () =>
  rebuildLog({
    database,
    callLog: {
      ...callLog,
      async createRebuildTables() {
        const fresh = await callLog.createRebuildTables()
        return {
          insertCalls: fresh.insertCalls,
          keepCallsBefore: fresh.keepCallsBefore,
          async swap() {
            if (dieAt === 'one of two tables exchanged') {
              await createClient({ url: setting('CLICKHOUSE_URL') }).command({
                query: 'EXCHANGE TABLES calls AND calls_rebuilt',
              })
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

const copy = () =>
  usageCopier({
    database: {
      callCopy: {
        ...database.callCopy,
        ...(dieAt === 'claimed' && { readRows: die }),
        finishRange,
      },
    },
    callLog: { ...callLog, insertCalls },
  }).start()

if (dieAt === 'half done' || dieAt === 'one of two tables exchanged' || dieAt === 'exchanged') await rebuild()
else copy()
