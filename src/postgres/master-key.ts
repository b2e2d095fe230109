import { randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KeyMaterial } from '../core/key-material.ts'
import { generateMasterKey } from '../core/key-material.ts'
import type { Sql } from './connection.ts'
import { Refusal } from './refusal.ts'

const FILE_NAME = 'master-key'
const OWNER_ONLY = 0o600
const HEX = /^[0-9a-f]{64}$/

/**
 * The master key of a data directory, made when first asked for: for an embedded PostgreSQL, whose data
 * lies beside it. Processes that ask at once get the same one.
 * @throws Error when the file is there and does not hold a key: a new one would not open what is stored
 */
export function keptMasterKey(dataDir: string): Buffer {
  const path = join(dataDir, FILE_NAME)
  const known = findMasterKey(dataDir)
  if (known !== null) return known
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const written = `${path}.${randomBytes(4).toString('hex')}`
  writeFileSync(written, `${generateMasterKey().toString('hex')}\n`, { mode: OWNER_ONLY, flag: 'wx' })
  try {
    linkSync(written, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(written, { force: true })
  }
  return keptMasterKey(dataDir)
}

/** The master key of a data directory; null when none was made there. */
export function findMasterKey(dataDir: string): Buffer | null {
  const path = join(dataDir, FILE_NAME)
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

/**
 * Remembers the master key's check value at first, and compares from then on.
 * @throws Refusal `wrong_master_key`
 */
export async function checkMasterKey(sql: Sql, material: KeyMaterial): Promise<void> {
  await sql`
    INSERT INTO master_key_check (check_value) VALUES (${material.checkValue}) ON CONFLICT DO NOTHING`
  const [row] = await sql<{ check_value: Buffer }[]>`SELECT check_value FROM master_key_check`
  if (row === undefined || !material.checkValue.equals(row.check_value)) {
    throw new Refusal(
      'wrong_master_key',
      'TOLLGATE_MASTER_KEY is not the one that this database was first used with: no API key would be found. ' +
        'Set the former one',
    )
  }
}
