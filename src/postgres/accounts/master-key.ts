import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { KeyMaterial } from '../../core/keys/material.ts'
import { deriveKeyMaterial, generateMasterKey } from '../../core/keys/material.ts'
import { Refusal } from '../billing/refusal.ts'
import { onConnection, type Queryable, type Sql } from '../connection.ts'
import { LOCKS } from '../locks.ts'
import { inTransaction } from '../transaction.ts'
import { recordOperation } from './audit-record.ts'

const FILE_NAME = 'master-key'
const NEXT_FILE_NAME = 'master-key.next'
const OWNER_ONLY = 0o600
const HEX = /^[0-9a-f]{64}$/

/**
 * Returns the master key of a data directory, created at its first use: for an embedded PostgreSQL with its data
 * there. Concurrent processes get the same one.
 * @throws Error when the file exists and has no key: a new one would not open the stored keys
 */
export const readMasterKey = (dataDir: string): Buffer => readKeyFile(dataDir, FILE_NAME)

/**
 * Returns the next master key of a data directory, created at its first use: an interrupted change continues with it.
 */
export const readNextMasterKey = (dataDir: string): Buffer => readKeyFile(dataDir, NEXT_FILE_NAME)

/** Replaces the master key of a data directory by the next one. A second time changes nothing. */
export function takeNextMasterKey(dataDir: string): void {
  try {
    renameSync(join(dataDir, NEXT_FILE_NAME), join(dataDir, FILE_NAME))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  syncFolder(dataDir)
}

/** Returns the master key of a data directory; null without one. */
export const findMasterKey = (dataDir: string): Buffer | null => findKey(dataDir, FILE_NAME)

/**
 * Completes a change of the master key that was cut off after the database had changed, and before the data directory
 * had: from then on `findMasterKey` finds the new one.
 */
export async function completeRotation(dataDir: string, databaseUrl: string): Promise<void> {
  const next = findKey(dataDir, NEXT_FILE_NAME)
  if (next === null) return
  await onConnection(databaseUrl, 'tollgate master key', async (sql) => {
    const current = await sql`
      SELECT FROM master_keys WHERE check_value = ${deriveKeyMaterial(next).checkValue} AND replaced_at IS NULL`
    if (current.length > 0) takeNextMasterKey(dataDir)
  })
}

function readKeyFile(dataDir: string, name: string): Buffer {
  const path = join(dataDir, name)
  const known = findKey(dataDir, name)
  if (known !== null) return known
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const written = `${path}.${randomBytes(4).toString('hex')}`
  const text = `${generateMasterKey().toString('hex')}\n`
  writeFileSync(written, text, { mode: OWNER_ONLY, flag: 'wx', flush: true })
  try {
    linkSync(written, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(written, { force: true })
  }
  syncFolder(dataDir)
  return readKeyFile(dataDir, name)
}

function findKey(dataDir: string, name: string): Buffer | null {
  const path = join(dataDir, name)
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  if (!HEX.test(text)) throw new Error(`${path} does not hold a master key of 64 hexadecimal digits`)
  return Buffer.from(text, 'hex')
}

/** Syncs a folder: a new name in it is on disk only after that. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

export interface KnownMasterKey {
  readonly material: KeyMaterial
  /** When another one took its place; null while it is the current one. */
  readonly replacedAt: Date | null
}

export interface MasterKeyRow {
  check_value: Buffer
  sealed_secrets: Buffer | null
  replaced_at: Date | null
}

export const isSameKey =
  ({ checkValue }: KeyMaterial) =>
  ({ check_value }: MasterKeyRow): boolean =>
    checkValue.equals(check_value)

/**
 * Remembers the first master key of a database, and finds this one among the known from then on. A former one still
 * finds keys and checks links, so that processes that run on with it do not fail.
 * @throws Refusal `wrong_master_key`
 */
export async function recognizeMasterKey(sql: Sql, material: KeyMaterial): Promise<KnownMasterKey> {
  await sql`
    INSERT INTO master_keys (check_value)
    SELECT ${material.checkValue}::bytea WHERE NOT EXISTS (SELECT FROM master_keys) ON CONFLICT DO NOTHING`
  const rows = await sql<MasterKeyRow[]>`SELECT check_value, sealed_secrets, replaced_at FROM master_keys`
  const row = rows.find(isSameKey(material))
  if (row === undefined) {
    throw new Refusal(
      'wrong_master_key',
      'TOLLGATE_MASTER_KEY is not the one that this database was first used with: no API key would be found. ' +
        'Set the former one',
    )
  }
  const { sealed_secrets: sealed, replaced_at: replacedAt } = row
  return {
    material: sealed === null ? material : material.withSecrets(material.openSecrets(sealed)),
    replacedAt,
  }
}

/**
 * Makes sure, to the end of the transaction, that what this master key seals can be opened by the current one.
 * @throws Refusal `wrong_master_key` when it was replaced
 */
export async function assertCurrent(sql: Queryable, material: KeyMaterial): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock_shared(${LOCKS.masterKey})`
  const [row] = await sql<
    MasterKeyRow[]
  >`SELECT * FROM master_keys WHERE check_value = ${material.checkValue}`
  if (row === undefined || row.replaced_at !== null) throw masterKeyReplaced()
}

export const masterKeyReplaced = (): Refusal =>
  new Refusal(
    'wrong_master_key',
    'The master key was replaced, and this process has the former one. Start it with the new TOLLGATE_MASTER_KEY; ' +
      'where the key is kept in the data directory, run `tollgate master-key rotate` again, which completes the change',
  )

/** Returns whether keys are kept only as hashes. */
export async function keepsHashesOnly(sql: Queryable): Promise<boolean> {
  const [row] = await sql<[{ hash_only: boolean }]>`SELECT hash_only FROM key_storage`
  return row.hash_only
}

/** Sets how every process stores keys from now on. */
export const setKeyStorage = (sql: Sql, hashOnly: boolean): Promise<void> =>
  inTransaction(sql, async (transaction) => {
    const changed = await transaction`
      UPDATE key_storage SET hash_only = ${hashOnly} WHERE hash_only <> ${hashOnly} RETURNING hash_only`
    if (changed.length === 0) return
    await recordOperation(transaction, {
      action: 'key_storage.update',
      accountId: null,
      subjectId: 'key_storage',
      before: { hash_only: !hashOnly },
      after: { hash_only: hashOnly },
    })
  })

/** Deletes the encrypted copies of all keys permanently. The keys still work. Returns their number. */
export const eraseSealedKeys = (sql: Sql): Promise<number> =>
  inTransaction(sql, async (transaction) => {
    const { count } = await transaction`UPDATE api_keys SET sealed_key = NULL WHERE sealed_key IS NOT NULL`
    if (count > 0)
      await recordOperation(transaction, {
        action: 'key.forget_all',
        accountId: null,
        subjectId: 'key_storage',
        after: { keys: count },
      })
    return count
  })
