/** Tollgate as an operator starts it, from this checkout. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type RunRecord, readRunning } from '../../src/embedded/data-dir.ts'
import { type Child, startChild } from './children.ts'
import { ROOT } from './machine.ts'
import { untilReady } from './wait.ts'

export const PROGRAM = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
/** Of a database that holds nothing worth a secret. */
export const MASTER_KEY = Buffer.alloc(32, 7)

export interface ServiceWanted {
  /** Its configuration and its data are written there. */
  readonly folder: string
  /** The program that serves; Tollgate's where absent. */
  readonly program?: string
  /** What `tollgate.yaml` says. */
  readonly configuration: unknown
  readonly env?: Readonly<Record<string, string>>
  /** The core to stay on; null leaves it to the kernel. */
  readonly core?: number | null
}

export interface RunningService {
  readonly child: Child
  readonly record: RunRecord
  /** That it was started in; commands find it by that. */
  readonly env: Readonly<Record<string, string>>
}

/** One gateway at a free port, ready. It ends with the bench, however that ends. */
export const startTollgate = async (wanted: ServiceWanted): Promise<RunningService> => {
  const dataDir = join(wanted.folder, 'data')
  mkdirSync(dataDir, { recursive: true })
  const config = join(wanted.folder, 'tollgate.yaml')
  writeFileSync(config, JSON.stringify(wanted.configuration)) // YAML, of which JSON is a part
  const env = {
    TOLLGATE_MASTER_KEY: MASTER_KEY.toString('hex'),
    TOLLGATE_CONFIG: config,
    TOLLGATE_DATA_DIR: dataDir,
    TOLLGATE_PORT: '0',
    TOLLGATE_WORKERS: '1',
    ...wanted.env,
  }
  const options = { core: wanted.core ?? null, cwd: ROOT, env }
  const child = await startChild('tollgate', process.execPath, [wanted.program ?? PROGRAM, 'serve'], options)
  const record = await untilReady(child, () => {
    const running = readRunning(dataDir)
    return running?.pid === child.pid ? running : null
  })
  return { child, record, env }
}
