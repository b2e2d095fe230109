/** The PostgreSQL server of the plain table, with settings for a large table. */
import { totalmem } from 'node:os'
import type { EmbeddedEngines } from '../../../src/embedded/start.ts'
import { connect } from '../../../src/postgres/connection.ts'

const MIB = 2 ** 20
/** A quarter of the memory is the usual advice; the file cache has the rest. */
const MEMORY_PART = 4
const MOST_BUFFERS_MIB = 2_048
const LEAST_BUFFERS_MIB = 128

const buffersMib = (): number =>
  Math.max(LEAST_BUFFERS_MIB, Math.min(MOST_BUFFERS_MIB, Math.floor(totalmem() / MIB / MEMORY_PART)))

/** The service's embedded server has small settings, for a ledger. */
export const serverSettings = (): Readonly<Record<string, string>> => ({
  shared_buffers: `${buffersMib()}MB`,
  effective_cache_size: `${Math.floor(totalmem() / MIB / 2)}MB`,
  work_mem: '64MB',
  // The server has an SSD.
  random_page_cost: '1.1',
  max_parallel_workers_per_gather: '2',
})

export const printSettings = (settings: Readonly<Record<string, string>>): string =>
  Object.entries(settings)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')

/** Writes the settings and restarts the server. They stay with its data. */
export const tuneServer = async (engines: EmbeddedEngines): Promise<void> => {
  const sql = connect(engines.urls.databaseUrl!, { max: 1, name: 'bench' })
  try {
    for (const [name, value] of Object.entries(serverSettings()))
      await sql.unsafe(`ALTER SYSTEM SET ${name} = '${value}'`)
  } finally {
    await sql.end({ timeout: 1 })
  }
  await engines.stopEngine('postgres')
  await engines.startEngine('postgres')
}
