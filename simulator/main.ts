/**
 * The simulated provider as a process: `node simulator/main.ts [--host H] [--port P] [--payments FILE]`.
 *
 * Prints one line of JSON, `{"ready":true,"url":"http://…"}`, once it listens. Ends on SIGTERM and SIGINT, and
 * with the process that started it: when the IPC channel of a fork is gone, or else when its standard input closes.
 */

import { parseArgs } from 'node:util'
import { startSimulator } from './server.ts'

const DEFAULT_HOST = '127.0.0.1'
const HIGHEST_PORT = 65_535
const EXIT_FAILURE = 1
const EXIT_USAGE = 2

function readArguments(): { host: string; port: number; paymentsFile?: string } {
  try {
    const { values } = parseArgs({
      options: { host: { type: 'string' }, port: { type: 'string' }, payments: { type: 'string' } },
    })
    const port = Number(values.port ?? '0')
    if (!Number.isInteger(port) || port < 0 || port > HIGHEST_PORT) throw new Error(`No port: ${values.port}`)
    const { payments: paymentsFile } = values
    return { host: values.host ?? DEFAULT_HOST, port, ...(paymentsFile && { paymentsFile }) }
  } catch (error) {
    fail(error, EXIT_USAGE)
  }
}

function fail(error: unknown, code: number): never {
  process.stderr.write(`simulator: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(code)
}

// The reader of the ready line may have closed the pipe; nothing else is written to it.
process.stdout.on('error', () => {})

const starting = startSimulator(readArguments())

const stop = () => {
  void starting.then((simulator) => simulator.close()).then(() => process.exit(0))
}
process.once('SIGTERM', stop)
process.once('SIGINT', stop)
if (process.connected) {
  process.once('disconnect', stop)
} else {
  process.stdin.once('close', stop)
  process.stdin.once('end', stop)
  process.stdin.once('error', stop)
  process.stdin.resume()
}

const { url } = await starting.catch((error: unknown) => fail(error, EXIT_FAILURE))
process.stdout.write(`${JSON.stringify({ ready: true, url })}\n`)
