/**
 * The folder a run builds in: its own, which goes with it, or one that is kept for the next run. What a killed run
 * left is removed by the next.
 */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type DataDirLock, lockDataDir } from '../../src/embedded/data-dir.ts'
import { identify, isAlive } from '../../src/embedded/process-identity.ts'

/** What was begun, and what is whole. */
export type MarkName = 'clickhouse-begun' | 'clickhouse' | 'postgres'
/** Says all that a set of rows hangs on. */
export type Mark = Readonly<Record<string, unknown>>

/** How a set came about. */
export interface Made {
  readonly seconds: number
  readonly note: string
}

interface Noted {
  readonly mark: Mark
  readonly made: Made | null
}

export interface Ground {
  /** Absolute, with the engines' data in it. */
  readonly folder: string
  /** Whether what was last noted under the name is the same. */
  holds(name: MarkName, mark: Mark): boolean
  /** Notes what is there from now on, in place of what was noted under the name before. */
  note(name: MarkName, mark: Mark, made?: Made): void
  /** What was said of how it was made, when it was noted; null where nothing was. */
  made(name: MarkName): Made | null
  forget(name: MarkName): void
  /** Lets go of it, and removes it unless it is kept. Never fails. */
  leave(): void
}

const PREFIX = 'tollgate-bench-logs-'
/** Run as root, PostgreSQL is another user and has to pass through. */
const PASSABLE_MODE = 0o711

/** Folders of runs that are gone; their names say whose they are. */
const sweep = (parent: string): void => {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(PREFIX)) continue
    const [pid, start = ''] = name.slice(PREFIX.length).split('@')
    if (!isAlive({ pid: Number(pid), start }))
      rmSync(join(parent, name), { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

const ownFolder = (): string => {
  const parent = tmpdir()
  sweep(parent)
  const start = identify(process.pid)?.start ?? ''
  return mkdtempSync(join(parent, `${PREFIX}${process.pid}@${start}@`))
}

/** Throws where another run holds the folder. */
export const enterGround = async (kept: string | null): Promise<Ground> => {
  const folder = kept === null ? ownFolder() : resolve(kept)
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, PASSABLE_MODE)
  const lock: DataDirLock = await lockDataDir(folder)
  const markFile = (name: MarkName): string => join(folder, `${name}.mark.json`)
  const noted = (name: MarkName): Noted | null => {
    try {
      return JSON.parse(readFileSync(markFile(name), 'utf8')) as Noted
    } catch {
      return null // nothing was built there
    }
  }
  return {
    folder,
    holds: (name, mark) => JSON.stringify(noted(name)?.mark) === JSON.stringify(mark),
    made: (name) => noted(name)?.made ?? null,
    note: (name, mark, made) => {
      const whole: Noted = { mark, made: made ?? null }
      // Renamed when it is whole: a mark that is half written would cost the set.
      writeFileSync(`${markFile(name)}.new`, JSON.stringify(whole))
      renameSync(`${markFile(name)}.new`, markFile(name))
    },
    forget: (name) => rmSync(markFile(name), { force: true }),
    leave: () => {
      lock.release()
      if (kept === null) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
    },
  }
}

/** Bytes that a row takes on the disk at most, while it is merged or its indexes are made. */
const CLICKHOUSE_BYTES_A_ROW = 200
const POSTGRES_BYTES_A_ROW = 1_400
const SPARE_BYTES = 2 * 2 ** 30

export const bytesNeeded = ({ rows, postgresRows }: { rows: number; postgresRows: number }): number =>
  rows * CLICKHOUSE_BYTES_A_ROW + postgresRows * POSTGRES_BYTES_A_ROW + SPARE_BYTES

export const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`

/** Throws unless the disk below the folder has so much free. */
export const assertRoom = (folder: string, bytes: number): void => {
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  if (free >= bytes) return
  throw new Error(`${folder}: ${gibibytes(bytes)} are needed, ${gibibytes(free)} are free`)
}
