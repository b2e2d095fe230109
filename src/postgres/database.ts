/** Everything that the service does with PostgreSQL: the repositories of all domains, on the pools of one process. */
import type { KeyStorage } from '../../schemas/config/settings.ts'
import { deriveKeyMaterial } from '../core/keys/material.ts'
import { setActor } from './accounts/audit-record.ts'
import { type KnownMasterKey, recognizeMasterKey, setKeyStorage } from './accounts/master-key.ts'
import { type AccountRepositories, openAccounts } from './accounts/repository.ts'
import { type BillingRepositories, openBilling } from './billing/repository.ts'
import { type CallCopy, type Calls, openCallCopy, openCalls } from './call-log/repository.ts'
import { type Changes, openChanges } from './changes.ts'
import { type ConnectOptions, connect, dropConnections, type Sql } from './connection.ts'
import { isReadOnly } from './errors.ts'
import { type Knowledge, openKnowledge } from './knowledge/repository.ts'
import { type NotificationRepositories, openNotifications } from './notifications/repository.ts'
import { type OperationRepositories, openOperation } from './operation/repository.ts'
import { openPartitions, type Partitions } from './partitions/repository.ts'
import { openPayments, type Payments } from './payments/repository.ts'
import { openPeople, type PeopleRepositories } from './people/repository.ts'
import { toStandby } from './reading.ts'
import { onPool, type Pools, READ_DEADLINE_MS } from './repository.ts'
import {
  type IdempotencyRecords,
  openIdempotencyRecords,
  openStoredResponses,
  type StoredResponses,
} from './requests/repository.ts'
import { type LostSubmits, openLostSubmits, openTasks, type Tasks } from './tasks/repository.ts'
import { inTransaction } from './transaction.ts'

const DEFAULT_MAX_CONNECTIONS = 8
const STATEMENT_TIMEOUT_MS = 30_000
/** A search takes milliseconds; a longer one is cancelled. */
const SEARCH_TIMEOUT_MS = 2_000
const SEARCH_CONNECTIONS = 4
const READ_CONNECTIONS = 4
/** Each idle connection takes 5 MB of PostgreSQL. */
const IDLE_SECONDS = 60
const CLOSE_SECONDS = 5

interface DatabaseOptions {
  /** Straight to PostgreSQL or to a pooler in session mode: sessions hold locks and listen. */
  readonly url: string
  /** To a pooler in transaction mode, for all but sessions. Default: there is none. */
  readonly poolUrl?: string | null
  /** A standby for lists and logs. Default: the primary has them. */
  readonly readUrl?: string | null
  /** 32 bytes. */
  readonly masterKey: Buffer
  readonly maxConnections?: number
  /** Storage of keys by every process from now on. Default: the database's setting. */
  readonly keys?: KeyStorage | null
  /** Shown in `pg_stat_activity`. */
  readonly name?: string
  /** The actor named in the audit record. Default: the role of PostgreSQL. */
  readonly actor?: string
}

/** The repositories of all domains, on pools or in one transaction. */
export interface Repositories
  extends AccountRepositories,
    BillingRepositories,
    NotificationRepositories,
    OperationRepositories,
    PeopleRepositories {
  readonly calls: Calls
  readonly callCopy: CallCopy
  readonly idempotency: IdempotencyRecords
  readonly knowledge: Knowledge
  readonly lostSubmits: LostSubmits
  readonly partitions: Partitions
  readonly payments: Payments
  readonly storedResponses: StoredResponses
  readonly tasks: Tasks
}

export interface Database extends Repositories {
  readonly changes: Changes
  readonly installedAt: Date
  /** Throws when PostgreSQL does not answer. */
  ping(): Promise<void>
  /** Runs `work` on repositories of one transaction, whose entries in the audit record name `actor`. */
  transactAs<T>(actor: string, work: (database: Repositories) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/**
 * Opens a database that has this program's schema by `migrate`.
 * @throws Refusal `wrong_master_key` when its keys were sealed with another one
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const pools = openPools(options)
  const close = async () => {
    await Promise.all(listPools(pools).map((pool) => pool.end({ timeout: CLOSE_SECONDS })))
  }
  let masterKey: KnownMasterKey
  let installedAt: Date
  try {
    masterKey = await recognizeMasterKey(pools.main, deriveKeyMaterial(options.masterKey))
    if (options.keys) await setKeyStorage(pools.main, options.keys === 'hash')
    installedAt = await readInstalledAt(pools.main)
  } catch (error) {
    await close()
    throw error
  }
  const administration = {
    ...onPool(pools.rounds, { ping }, READ_DEADLINE_MS),
    transactAs: <T>(actor: string, work: (database: Repositories) => Promise<T>): Promise<T> =>
      inTransaction(pools.main, async (transaction) => {
        await setActor(transaction, actor)
        return work(
          openRepositories(
            { ...pools, main: transaction as never, rounds: transaction as never, standby: null },
            masterKey,
          ),
        )
      }),
  }
  const repositories = { ...openRepositories(pools, masterKey), changes: openChanges(pools) }
  const left = Object.entries(repositories).map(([name, one]) => [name, leaveReadOnly(pools, one)])
  return {
    ...(Object.fromEntries(left) as typeof repositories),
    ...leaveReadOnly(pools, administration),
    installedAt,
    close,
  }
}

/**
 * Ends all connections of the process after a statement that a read-only server refused: a pooler, a proxy or a name
 * led to a standby, or the server became one, and the connections would lead there as long as they live.
 */
function leaveReadOnly<Functions extends object>(pools: Pools, functions: Functions): Functions {
  const onError = (error: unknown): void => {
    if (isReadOnly(error)) for (const pool of listPools(pools)) dropConnections(pool)
  }
  const watch =
    (work: (...args: unknown[]) => unknown) =>
    (...args: unknown[]): unknown => {
      const answer = work(...args)
      if (answer instanceof Promise) answer.catch(onError)
      return answer
    }
  const entries = Object.entries(functions)
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === 'function' ? watch(value) : value]),
  ) as Functions
}

const openRepositories = (pools: Pools, masterKey: KnownMasterKey): Repositories => ({
  ...openAccounts(pools, masterKey),
  ...openBilling(pools),
  ...openNotifications(pools, masterKey),
  ...openOperation(pools),
  ...openPeople(pools, masterKey),
  calls: openCalls(pools),
  callCopy: openCallCopy(pools),
  idempotency: openIdempotencyRecords(pools, masterKey),
  knowledge: openKnowledge(pools),
  lostSubmits: openLostSubmits(pools),
  partitions: openPartitions(pools),
  payments: openPayments(pools),
  storedResponses: openStoredResponses(pools),
  tasks: openTasks(pools),
})

/** Reads when the first migration was applied. */
async function readInstalledAt(sql: Sql): Promise<Date> {
  const [row] = await sql<[{ at: Date }]>`SELECT min(applied_at) AS at FROM schema_migrations`
  return row.at
}

/** Throws when PostgreSQL does not answer. */
async function ping(sql: Sql): Promise<void> {
  await sql`SELECT 1`
}

function openPools(options: DatabaseOptions): Pools {
  const { url, poolUrl = null, readUrl = null, name = 'tollgate', actor } = options
  const pool = (more: ConnectOptions) => connect(poolUrl ?? url, { ...more, isPooled: poolUrl !== null })
  const main = pool({
    max: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
    name,
    idleSeconds: IDLE_SECONDS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    actor,
  })
  return {
    main,
    rounds: pool({ max: 1, name: `${name} rounds`, statementTimeoutMs: STATEMENT_TIMEOUT_MS, actor }),
    session: poolUrl === null ? main : connect(url, { max: 1, name: `${name} session` }),
    copying: connect(url, { max: 1, name: `${name} copying`, lifetimeSeconds: null }),
    rebuilding: connect(url, { max: 1, name: `${name} rebuild`, lifetimeSeconds: null }),
    auditing: pool({ max: 1, name: `${name} audit`, idleSeconds: IDLE_SECONDS, actor }),
    searching: pool({
      max: SEARCH_CONNECTIONS,
      name: `${name} search`,
      idleSeconds: IDLE_SECONDS,
      statementTimeoutMs: SEARCH_TIMEOUT_MS,
      // Searches differ only in size, and planning takes longer than a small search.
      plansOnce: true,
    }),
    standby:
      readUrl === null
        ? null
        : toStandby(
            connect(readUrl, {
              max: READ_CONNECTIONS,
              name: `${name} reading`,
              idleSeconds: IDLE_SECONDS,
              // It may lead to a pooler as well, which knows no parameters of a session.
              isPooled: true,
              isReading: true,
            }),
          ),
  }
}

const listPools = ({ standby, ...pools }: Pools): Sql[] => [
  ...new Set([...Object.values(pools), ...(standby === null ? [] : [standby.sql])]),
]
