/** Tollgate as an operator starts it, from this checkout. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RunRecord, readRunning } from '../../src/embedded/data-dir.ts'
import { type Child, startChild } from './children.ts'
import { ROOT } from './machine.ts'
import { untilReady } from './wait.ts'

/** What `npm start` runs, see package.json: the sources without types, once {@link stripTypes} has written them. */
export const PROGRAM = join(ROOT, 'node_modules/.cache/tollgate/program/src/main.js')
const NODE_OPTIONS = ['--max-semi-space-size=2', '--expose-gc']
export const SERVE = [...NODE_OPTIONS, PROGRAM, 'serve']

export const stripTypes = (): void => {
  execFileSync(process.execPath, ['--no-warnings', join(ROOT, 'scripts/strip-types.ts')])
}
/** The bench's database holds no secrets. */
export const MASTER_KEY = Buffer.alloc(32, 7)

interface ServiceWanted {
  /** The folder for its configuration and data. */
  readonly folder: string
  /** The program to run; Tollgate's by default. */
  readonly program?: string
  /** The content of `tollgate.yaml`. */
  readonly configuration: unknown
  readonly env?: Readonly<Record<string, string>>
  /** The core to run on; null lets the kernel choose. */
  readonly core?: number | null
}

interface RunningService {
  readonly child: Child
  readonly record: RunRecord
  /** Its environment, by which commands find it. */
  readonly env: Readonly<Record<string, string>>
}

/** Starts the service with one gateway at a free port, and waits until it is ready. It ends with the bench. */
export const startTollgate = async (wanted: ServiceWanted): Promise<RunningService> => {
  const dataDir = join(wanted.folder, 'data')
  mkdirSync(dataDir, { recursive: true })
  const config = join(wanted.folder, 'tollgate.yaml')
  writeFileSync(config, JSON.stringify(wanted.configuration)) // JSON is valid YAML.
  const env = {
    TOLLGATE_MASTER_KEY: MASTER_KEY.toString('hex'),
    TOLLGATE_CONFIG: config,
    TOLLGATE_DATA_DIR: dataDir,
    TOLLGATE_PORT: '0',
    TOLLGATE_WORKERS: '1',
    ...wanted.env,
  }
  const options = { core: wanted.core ?? null, cwd: ROOT, env }
  if (wanted.program === undefined) stripTypes()
  const words = wanted.program === undefined ? SERVE : [...NODE_OPTIONS, wanted.program, 'serve']
  const child = await startChild('tollgate', process.execPath, words, options)
  const record = await untilReady(child, () => {
    const running = readRunning(dataDir)
    return running?.pid === child.pid ? running : null
  })
  return { child, record, env }
}
