import root, { type Test } from 'tap'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { emptySettlement } from '../../../src/core/call-log/settlement.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { generateMasterKey } from '../../../src/core/keys/material.ts'
import type { Reservations } from '../../../src/postgres/billing/repository.ts'
import type { Sql } from '../../../src/postgres/connection.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import { SERVICE_PASSWORD } from '../../support/clusters.ts'
import { connectTo } from '../../support/connections.ts'
import { migratedDatabase, startEngines, type TestEngines } from '../../support/engines.ts'

export interface TestDatabase {
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

let shared: Promise<TestEngines> | null = null

/** The PostgreSQL of all tests of this process. One that is stopped or killed is a test's own. */
export function sharePostgres(): Promise<TestEngines> {
  shared ??= startEngines(root, { only: ['postgres'] })
  return shared
}

/** A migrated database in it. */
export const startDatabase = async (t: Test): Promise<TestDatabase> => openFresh(t, await sharePostgres())

/** One more migrated database in the same PostgreSQL. */
export async function openFresh(t: Test, engines: TestEngines): Promise<TestDatabase> {
  const url = await migratedDatabase(engines.databaseUrl)
  const serviceUrl = toServiceUrl(url)
  const masterKey = generateMasterKey()
  const openAnother = async () => {
    const database = await openDatabase({ url: serviceUrl, masterKey })
    t.teardown(() => database.close())
    return database
  }
  const sql = connectTo(t, url, 2)
  return { url, serviceUrl, masterKey, sql, openAnother, database: await openAnother() }
}

function toServiceUrl(ownerUrl: string): string {
  const url = new URL(ownerUrl)
  url.username = 'tollgate_service'
  url.password = SERVICE_PASSWORD
  return url.href
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
