import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROUTES } from '../../schemas/routes.ts'
import type { EngineKind, Launch } from './engine.ts'
import { readReadyLine } from './output-tail.ts'
import { LOOPBACK } from './ports.ts'
import { plainEnvironment, runModule } from './programs.ts'

/** Neither an import nor `fetch`: both load undici, 7 MB of memory. */
const { request: requestHttp } = process.getBuiltinModule('node:http')

const READY_BOUND_MS = 30_000
const SHUTDOWN_BOUND_MS = 3_000
const PAYMENTS_FILE = 'simulated-payments.json'

const PROGRAM = fileURLToPath(new URL('../../simulator/main.ts', import.meta.url))

interface SimulatorEngineOptions {
  /** The books of simulated payments are kept there. */
  readonly dataDir: string
}

/** Returns the simulated provider, a program of our own that reports on standard output when it listens. */
export function simulatorEngine({ dataDir }: SimulatorEngineOptions): EngineKind {
  return {
    name: 'simulator',
    stopSignals: [{ signal: 'SIGTERM', boundMs: SHUTDOWN_BOUND_MS }],
    readyBoundMs: READY_BOUND_MS,

    async prepare(port): Promise<Launch> {
      const payments = join(dataDir, PAYMENTS_FILE)
      const args = ['--host', LOOPBACK, '--port', String(port), '--payments', payments]
      return {
        command: [...runModule(PROGRAM), ...args],
        env: plainEnvironment(),
      }
    },

    async answers(child: ChildProcess, _port, signal) {
      await readReadyLine(child, signal)
    },

    url: (port) => `http://${LOOPBACK}:${port}`,
  }
}

/** Registers the payment webhook with the simulated provider, as an operator does with the real one. */
export async function registerPaymentWebhook(
  simulatorUrl: string,
  baseUrl: string,
  secret: string,
): Promise<void> {
  const request = requestHttp(`${simulatorUrl}/simulator/payments/webhook`, { method: 'PUT' })
  request.end(JSON.stringify({ url: `${baseUrl}${ROUTES.takePaymentEvent[1]}`, secret }))
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  answer.resume()
}
