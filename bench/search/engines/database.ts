/** The bench's own PostgreSQL, as the service embeds it, with one knowledge base. */
import { startEmbedded } from '../../../src/embedded/start.ts'
import { connect, type Sql } from '../../../src/postgres/connection.ts'
import { migrate } from '../../../src/postgres/migrate.ts'

export const BASE_ID = 'kb_bench'
const CONNECTIONS = 4

export interface BenchDatabase {
  readonly sql: Sql
  /** With the settings of the service's search pool. */
  readonly searching: Sql
  close(): Promise<void>
}

export async function startDatabase(folder: string, signal: AbortSignal): Promise<BenchDatabase> {
  const engines = await startEmbedded({ dataDir: folder, engines: ['postgres'], signal })
  const url = engines.urls.databaseUrl!
  await migrate(url)
  const sql = connect(url, { max: CONNECTIONS, name: 'bench' })
  const searching = connect(url, { max: 1, name: 'bench search', plansOnce: true })
  await sql`INSERT INTO accounts (id, name, kind) VALUES ('bench', 'bench', 'organization')`
  await sql`INSERT INTO knowledge_bases (id, account_id, name) VALUES (${BASE_ID}, 'bench', 'bench')`
  let closed: Promise<void> | null = null
  const close = async () => {
    await Promise.all([sql, searching].map((pool) => pool.end({ timeout: 1 })))
    await engines.stop()
  }
  return {
    sql,
    searching,
    close: () => {
      closed ??= close()
      return closed
    },
  }
}
