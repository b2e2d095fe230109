import type { Test } from 'tap'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { emptySettlement } from '../../../src/core/call-log/settlement.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { generateMasterKey } from '../../../src/core/keys/material.ts'
import type { Reservations } from '../../../src/postgres/billing/repository.ts'
import type { Sql } from '../../../src/postgres/connection.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import { migrate } from '../../../src/postgres/migrate.ts'
import { grantService, makeServiceRole } from '../../../src/postgres/roles.ts'
import { connectTo } from '../../support/connections.ts'
import { migratedDatabase, startEngines, type TestEngines } from '../../support/engines.ts'

export interface TestDatabase {
  readonly engines: TestEngines
  readonly url: string
  /** The same database for the role of the service, as `database` uses it. */
  readonly serviceUrl: string
  readonly masterKey: Buffer
  readonly database: Database
  /** Beside the facade: to read rows, and to plant errors. */
  readonly sql: Sql
  /** Another process's view of the same database. */
  openAnother(): Promise<Database>
}

/** A migrated database in a PostgreSQL of its own. */
export async function startDatabase(t: Test): Promise<TestDatabase> {
  const engines = await startEngines(t, { only: ['postgres'] })
  return { engines, ...(await openMigrated(t, engines.databaseUrl)) }
}

/** One more migrated database in the same PostgreSQL. */
export async function openFresh(t: Test, engines: TestEngines): Promise<Omit<TestDatabase, 'engines'>> {
  return openMigrated(t, await migratedDatabase(engines.databaseUrl))
}

/** On a database that nobody used, migrated or not. */
export async function openMigrated(t: Test, url: string): Promise<Omit<TestDatabase, 'engines'>> {
  await migrate(url)
  const serviceUrl = await makeServiceRole(url, 'test')
  await grantService(url, serviceUrl)
  const masterKey = generateMasterKey()
  const openAnother = async () => {
    const database = await openDatabase({ url: serviceUrl, masterKey })
    t.teardown(() => database.close())
    return database
  }
  const sql = connectTo(t, url, 2)
  return { url, serviceUrl, masterKey, sql, openAnother, database: await openAnother() }
}

export async function newAccount(database: Database, credits = 1000n): Promise<string> {
  const { account } = await database.accounts.create({ name: 'Test', credit: credits * ONE_CREDIT })
  return account.id
}

/** Whether the amount is reserved within the limits of a key, for a call that is submitted now. */
export async function reserveCap(
  database: { readonly reservations: Pick<Reservations, 'reserveSpend'> },
  wanted: { readonly keyId: string; readonly requestId: string; readonly amount: bigint },
): Promise<boolean> {
  return (await database.reservations.reserveSpend({ ...wanted, submittedAt: Date.now() })) === null
}

export const settlement = (accountId: string, more: Partial<Settlement> = {}): Settlement => ({
  ...emptySettlement(
    {
      request_id: newId('req'),
      account_id: accountId,
      key_id: 'key_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
      model: 'sonata-large',
      protocol: 'chat-completions',
      stream: true,
      submitted_at: 1_760_000_000_000,
      estimate: '96000000',
      session_id: null,
    },
    1_760_000_001_250,
  ),
  status: 'success',
  input_tokens: 1200,
  output_tokens: 340,
  cached_tokens: 100,
  reasoning_tokens: 12,
  cost: '4900000',
  usage_source: 'upstream',
  ttfb_ms: 120,
  channel_id: 'primary',
  attempts_count: 1,
  ...more,
})
