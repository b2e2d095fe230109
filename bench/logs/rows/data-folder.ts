/** The data folder of a run, with marks of what is built in it, and its size on the disk. */
import { readFileSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { enterWorkFolder, type WorkFolder } from '../../harness/work-folder.ts'

/** The state of a set: begun or complete. */
export type MarkName = 'clickhouse-begun' | 'clickhouse' | 'postgres'
/** Describes everything that determines a set of rows. */
export type Mark = Readonly<Record<string, unknown>>

/** How a set was built. */
export interface Made {
  readonly seconds: number
  readonly note: string
}

interface Noted {
  readonly mark: Mark
  readonly made: Made | null
}

export interface Ground extends WorkFolder {
  /** Returns whether the last mark of this name is the same. */
  holds(name: MarkName, mark: Mark): boolean
  /** Replaces the mark of this name. */
  note(name: MarkName, mark: Mark, made?: Made): void
  /** Returns how the set was built; null without a mark. */
  made(name: MarkName): Made | null
  forget(name: MarkName): void
}

/** Opens the folder. Throws where another run uses it. */
export const enterGround = async (kept: string | null): Promise<Ground> => {
  const work = await enterWorkFolder(kept)
  const markFile = (name: MarkName): string => join(work.folder, `${name}.mark.json`)
  const noted = (name: MarkName): Noted | null => {
    try {
      return JSON.parse(readFileSync(markFile(name), 'utf8')) as Noted
    } catch {
      return null // The folder is empty.
    }
  }
  return {
    ...work,
    holds: (name, mark) => JSON.stringify(noted(name)?.mark) === JSON.stringify(mark),
    made: (name) => noted(name)?.made ?? null,
    note: (name, mark, made) => {
      const whole: Noted = { mark, made: made ?? null }
      // A partly written mark would lose the set, so the file is renamed when complete.
      writeFileSync(`${markFile(name)}.new`, JSON.stringify(whole))
      renameSync(`${markFile(name)}.new`, markFile(name))
    },
    forget: (name) => rmSync(markFile(name), { force: true }),
  }
}

/** The most bytes that a row takes on the disk, merges and index builds included. */
const CLICKHOUSE_BYTES_A_ROW = 200
const POSTGRES_BYTES_A_ROW = 1_400
const SPARE_BYTES = 2 * 2 ** 30

export const bytesNeeded = ({ rows, postgresRows }: { rows: number; postgresRows: number }): number =>
  rows * CLICKHOUSE_BYTES_A_ROW + postgresRows * POSTGRES_BYTES_A_ROW + SPARE_BYTES

export const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`

/** Throws unless the folder's disk has this much free space. */
export const assertRoom = (folder: string, bytes: number): void => {
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  if (free >= bytes) return
  throw new Error(
    `${folder}: ${gibibytes(bytes)} are needed, ${gibibytes(free)} are free. Free some space or use fewer rows`,
  )
}
