/** The folder a run builds in, with notes of what stands there, and the room that it takes. */
import { readFileSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { enterWorkFolder, type WorkFolder } from '../../harness/work-folder.ts'

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

export interface Ground extends WorkFolder {
  /** Whether what was last noted under the name is the same. */
  holds(name: MarkName, mark: Mark): boolean
  /** Notes what is there from now on, in place of what was noted under the name before. */
  note(name: MarkName, mark: Mark, made?: Made): void
  /** What was said of how it was made, when it was noted; null where nothing was. */
  made(name: MarkName): Made | null
  forget(name: MarkName): void
}

/** Throws where another run holds the folder. */
export const enterGround = async (kept: string | null): Promise<Ground> => {
  const work = await enterWorkFolder(kept)
  const markFile = (name: MarkName): string => join(work.folder, `${name}.mark.json`)
  const noted = (name: MarkName): Noted | null => {
    try {
      return JSON.parse(readFileSync(markFile(name), 'utf8')) as Noted
    } catch {
      return null // nothing was built there
    }
  }
  return {
    ...work,
    holds: (name, mark) => JSON.stringify(noted(name)?.mark) === JSON.stringify(mark),
    made: (name) => noted(name)?.made ?? null,
    note: (name, mark, made) => {
      const whole: Noted = { mark, made: made ?? null }
      // Renamed when it is whole: a mark that is half written would cost the set.
      writeFileSync(`${markFile(name)}.new`, JSON.stringify(whole))
      renameSync(`${markFile(name)}.new`, markFile(name))
    },
    forget: (name) => rmSync(markFile(name), { force: true }),
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
