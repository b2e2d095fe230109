import type { ChildProcess } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { EngineKind, Launch } from '../engine.ts'
import { readReadyLine } from '../output-tail.ts'
import { LOOPBACK } from '../ports.ts'
import { readPassword } from '../private-file.ts'
import { plainEnvironment, runModule } from '../programs.ts'

const USER = 'tollgate'
const DATABASE = 'tollgate'
const READY_BOUND_MS = 120_000
const SHUTDOWN_BOUND_MS = 10_000

const SERVER = fileURLToPath(new URL('./server.ts', import.meta.url))

/**
 * Returns ClickHouse by chDB in `<dataDir>/clickhouse`, in a separate process with ClickHouse's HTTP interface:
 * clients cannot distinguish it from a server.
 */
export function clickhouseEngine({ dataDir }: { dataDir: string }): EngineKind {
  const folder = join(dataDir, 'clickhouse')
  return {
    name: 'clickhouse',
    stopSignals: [{ signal: 'SIGTERM', boundMs: SHUTDOWN_BOUND_MS }],
    readyBoundMs: READY_BOUND_MS,

    async prepare(port): Promise<Launch> {
      requireChdb()
      await mkdir(folder, { recursive: true, mode: 0o700 })
      return {
        command: runModule(SERVER),
        // In the environment and not among the arguments, which every user of the machine can read.
        env: {
          ...plainEnvironment(),
          TOLLGATE_CLICKHOUSE_PATH: folder,
          TOLLGATE_CLICKHOUSE_PORT: String(port),
          TOLLGATE_CLICKHOUSE_USER: USER,
          TOLLGATE_CLICKHOUSE_PASSWORD: readPassword('clickhouse', dataDir),
          TOLLGATE_CLICKHOUSE_DATABASE: DATABASE,
        },
      }
    },

    async answers(child: ChildProcess, _port, signal) {
      await readReadyLine(child, signal)
    },

    url: (port) => `http://${USER}:${readPassword('clickhouse', dataDir)}@${LOOPBACK}:${port}/${DATABASE}`,
  }
}

function requireChdb(): void {
  try {
    import.meta.resolve('chdb')
  } catch (error) {
    const help = 'Set CLICKHOUSE_URL, or install without --omit=optional'
    throw new Error(`the package chdb is not installed. ${help}`, { cause: error })
  }
}
