/**
 * Brings the tables up to date: the numbered files of `migrations`, in order, never edited. A file is one statement,
 * or a module for more than that. Each is safe to run twice and by two processes at once, so that neither two starts
 * at once nor an interrupted one does harm.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { ClickHouseClient } from '@clickhouse/client'
import { createRegister, type Migration, readRegister, register } from './tables/register.ts'

const FOLDER = new URL('./migrations/', import.meta.url)
const FILE_NAME = /^(\d{3})-[a-z0-9-]+\.(sql|ts)$/

/** Exports of a `.ts` file of the folder. */
interface MigrationModule {
  apply(client: ClickHouseClient): Promise<void>
}

function readApply(url: URL): Migration['apply'] {
  if (url.pathname.endsWith('.ts'))
    return async (client) => {
      const module: MigrationModule = await import(url.href)
      await module.apply(client)
    }
  return async (client) => {
    await client.command({ query: readFileSync(url, 'utf8') })
  }
}

/** Throws when a file is not named `NNN-what.sql` or `.ts`, or a number is missing or double. */
export function readMigrations(folder: URL = FOLDER): Migration[] {
  return readdirSync(folder)
    .sort()
    .map((file, index) => {
      const number = Number(FILE_NAME.exec(file)?.[1])
      if (number !== index + 1) throw new Error(`ClickHouse migration ${file} is not number ${index + 1}`)
      return { number, file, apply: readApply(new URL(file, folder)) }
    })
}

/** Returns the files that were applied now. */
export async function migrate(client: ClickHouseClient): Promise<string[]> {
  await createRegister(client)
  const migrations = readMigrations()
  const applied = await readRegister(client)
  const open = migrations.filter(({ file }) => !applied.has(file))
  for (const migration of open) {
    await migration.apply(client)
    await register(client, [migration])
  }
  return open.map(({ file }) => file)
}
