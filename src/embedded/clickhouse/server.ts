/**
 * The program behind the embedded ClickHouse: chDB in `TOLLGATE_CLICKHOUSE_PATH`, served on the loopback address.
 * Prints one JSON line when it listens; ends on SIGTERM, and when its standard input is closed because the service
 * that started it has ended.
 */
import { LOOPBACK } from '../ports.ts'
import { ChdbEngine } from './engine.ts'
import { respond } from './http.ts'

/** An import from an ES module also loads Node's WebSocket: 7 MB of memory. */
const { createServer } = process.getBuiltinModule('node:http')

/** Longer than clients keep an idle connection, so that they never write to one we just closed. */
const KEEP_ALIVE_MS = 60_000

function readSetting(name: string): string {
  const value = process.env[`TOLLGATE_CLICKHOUSE_${name}`]
  if (value === undefined) throw new Error(`TOLLGATE_CLICKHOUSE_${name} is not set`)
  return value
}

const account = { user: readSetting('USER'), password: readSetting('PASSWORD') }
const engine = await ChdbEngine.open(readSetting('PATH'), readSetting('DATABASE'))
const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
  void respond(engine, account, request, response)
})

let stopping = false
async function stop(): Promise<void> {
  if (stopping) return
  stopping = true
  server.close()
  server.closeIdleConnections()
  await engine.close()
  process.exit(0)
}

process.once('SIGTERM', stop)
process.once('SIGINT', stop)
process.stdin.once('end', stop).once('error', stop).resume()

server.listen({ host: LOOPBACK, port: Number(readSetting('PORT')) }, () => {
  process.stdout.write(`${JSON.stringify({ ready: true })}\n`)
})
