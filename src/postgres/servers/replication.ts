/** Whether a failover may lose what was committed. */
import { onConnection } from '../connection.ts'
import { parseServerUrl } from './address.ts'

/** Returns true where a URL names several servers, and a commit waits for none but the primary. */
export async function losesCommits(url: string): Promise<boolean> {
  if (parseServerUrl(url, 'read-write').addresses.length === 1) return false
  return onConnection(url, 'tollgate start', async (sql) => {
    const [row] = await sql<[{ standbys: string; waits: string }]>`
      SELECT current_setting('synchronous_standby_names') AS standbys, current_setting('synchronous_commit') AS waits`
    return row.standbys === '' || row.waits === 'off' || row.waits === 'local'
  })
}
