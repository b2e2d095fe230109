/** The whole service with embedded engines, in front of the simulated provider, and the accounts of the bench. */
import { join } from 'node:path'
import { parseCredits } from '../../schemas/money.ts'
import { USER } from '../../src/embedded/postgres/cluster.ts'
import { readPassword } from '../../src/embedded/private-file.ts'
import { connect, type Sql } from '../../src/postgres/connection.ts'
import { type Database, openDatabase } from '../../src/postgres/database.ts'
import { MASTER_KEY, startTollgate } from '../harness/service.ts'
import { tollgateProcesses } from '../subjects/tollgate-processes.ts'

export const MODEL = 'bench'
const CREDIT = parseCredits('1000000')
const CONNECTIONS = 8

const CONFIGURATION = {
  models: [{ id: MODEL, pricing: { unit: '1M_tokens', input: '1', output: '1' } }],
  channels: [
    {
      id: 'simulated',
      protocol: 'chat-completions',
      base_url: '${TOLLGATE_SIMULATOR_URL}/v1',
      api_key: 'bench',
      models: { [MODEL]: 'sim-bench@tokens=2' },
    },
  ],
}

export interface Caller {
  readonly accountId: string
  readonly key: string
}

export interface Service {
  readonly baseUrl: string
  readonly database: Database
  readonly sql: Sql
  processes(): ReturnType<typeof tollgateProcesses>
  /** Makes so many accounts with a key each. */
  newCallers(count: number): Promise<Caller[]>
  close(): Promise<void>
}

export async function startService(folder: string): Promise<Service> {
  const { child, record } = await startTollgate({
    folder,
    configuration: CONFIGURATION,
    env: { LOG_LEVEL: 'warn' },
  })
  const url = record.database_url!
  const database = await openDatabase({
    url,
    masterKey: MASTER_KEY,
    maxConnections: CONNECTIONS,
    name: 'bench',
  })
  // Triggers are the owner's to switch off.
  const owner = new URL(url)
  owner.username = USER
  owner.password = readPassword('postgres', join(folder, 'data'))
  const sql = connect(owner.href, { max: 1, name: 'bench fill' })
  const newCaller = async (): Promise<Caller> => {
    const { account } = await database.accounts.create({ name: 'bench', credit: CREDIT })
    const { raw } = await database.keys.create({ accountId: account.id, name: 'bench' })
    return { accountId: account.id, key: raw }
  }
  return {
    baseUrl: record.base_url!,
    database,
    sql,
    processes: () => tollgateProcesses(child.pid),
    async newCallers(count) {
      const callers: Caller[] = []
      let left = count
      const maker = async () => {
        while (left-- > 0) callers.push(await newCaller())
      }
      await Promise.all(Array.from({ length: CONNECTIONS }, maker))
      return callers
    },
    async close() {
      await sql.end({ timeout: 1 })
      await database.close()
      await child.stop()
    },
  }
}

/** Adds keys to an account as if each had been made long ago: nobody is notified, nothing is audited. */
export async function addOldKeys(sql: Sql, accountId: string, count: number): Promise<void> {
  await sql.begin(async (filling) => {
    await filling`ALTER TABLE api_keys DISABLE TRIGGER USER`
    await filling`
      INSERT INTO api_keys (id, account_id, name, kind, prefix, key_hash)
      SELECT 'key_' || lpad(n::text, 26, '0'), ${accountId}, 'key ' || n, 'console', rpad('sk-' || n, 20, 'x'),
        sha256(n::text::bytea)
      FROM generate_series(1, ${count}::integer) AS n`
    await filling`ALTER TABLE api_keys ENABLE TRIGGER USER`
  })
  await sql`ANALYZE api_keys`
}
