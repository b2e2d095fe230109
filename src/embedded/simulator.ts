import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { EngineKind, Launch } from './engine.ts'
import { readReadyLine } from './output-tail.ts'
import { LOOPBACK } from './ports.ts'
import { plainEnvironment, runModule } from './programs.ts'

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
