/** Starts the engines named after the data directory, says so in one line, and stays until it is ended. */
import postgres from 'postgres'
import { ENGINE_NAMES } from '../../src/embedded/engine.ts'
import { startEmbedded } from '../../src/embedded/start.ts'

const [dataDir = '', ...names] = process.argv.slice(2)
const engines = await startEmbedded({
  dataDir,
  engines: ENGINE_NAMES.filter((name) => names.includes(name)),
})
if (engines.urls.databaseUrl !== null) {
  const sql = postgres(engines.urls.databaseUrl, { max: 1 })
  await sql`CREATE TABLE IF NOT EXISTS left_behind AS SELECT 1 AS n`
  await sql.end()
}
process.stdout.write(`${JSON.stringify(engines.urls)}\n`)
// Ends with the test, should that not get to killing it.
process.stdin.once('end', () => process.exit(1)).resume()
