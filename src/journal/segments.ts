/** The files of one journal, oldest first: appended to at the end, removed from the start. */
import { join } from 'node:path'
import type { JournalClock, JournalLog } from './clock.ts'
import type { JournalFiles } from './files.ts'

/** A segment that has grown to this is closed and the next one begun. */
export const SEGMENT_BYTES = 8 * 1024 * 1024
/** Loss of power can cost what was written in this time; a killed process costs nothing. */
export const SYNC_INTERVAL_MS = 50

const SEGMENT_NAME = /^(\d{12})\.journal$/
const SEGMENT_NUMBER_DIGITS = 12

export interface Segment<Call = unknown> {
  readonly number: number
  readonly path: string
  /** Where the next group goes. */
  size: number
  /** Admitted in this segment and not ended yet. */
  readonly open: Set<Call>
  /** Settlements in this segment that PostgreSQL is not known to have. */
  unbooked: number
}

export function segmentPath(directory: string, number: number): string {
  return join(directory, `${String(number).padStart(SEGMENT_NUMBER_DIGITS, '0')}.journal`)
}

/** The segments in a directory, oldest first. */
export function listSegments<Call>(files: JournalFiles, directory: string): Segment<Call>[] {
  return files
    .list(directory)
    .map((name) => SEGMENT_NAME.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .sort((a, b) => a - b)
    .map((number) => {
      const path = segmentPath(directory, number)
      return { number, path, size: files.size(path), open: new Set<Call>(), unbooked: 0 }
    })
}

interface Dependencies {
  readonly directory: string
  readonly files: JournalFiles
  readonly clock: JournalClock
  readonly log: JournalLog
  readonly segmentBytes: number
  readonly syncIntervalMs: number
}

interface Opened<Call> {
  readonly segment: Segment<Call>
  readonly file: number
  /** Under way now: the file is closed behind the last of them. */
  syncs: number
  onClosed: (() => void) | null
}

export class Segments<Call> {
  readonly #of: Dependencies
  readonly #list: Segment<Call>[]
  #nextNumber: number
  /** The segment that is written to; none before the first write. */
  #current: Opened<Call> | null = null
  #isDirty = false
  #cancelSync: (() => void) | null = null
  #bytes: number

  constructor(of: Dependencies, recovered: readonly Segment<Call>[]) {
    this.#of = of
    this.#list = [...recovered]
    this.#nextNumber = (recovered.at(-1)?.number ?? 0) + 1
    this.#bytes = recovered.reduce((sum, segment) => sum + segment.size, 0)
  }

  get list(): readonly Segment<Call>[] {
    return this.#list
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Writes the first `length` bytes behind what is there. What a failed write left is written over by the next.
   * @throws Error of the file system
   */
  append(bytes: Buffer, length: number): { readonly segment: Segment<Call>; readonly offset: number } {
    const { segment, file } = this.#writable()
    const offset = segment.size
    let done = 0
    while (done < length) done += this.#of.files.write(file, bytes, done, length - done, offset + done)
    segment.size += length
    this.#bytes += length
    this.#isDirty = true
    this.#syncLater()
    return { segment, offset }
  }

  /** Removes from the start what nobody needs any more; the segment that is written to stays. */
  removeDone(): void {
    const before = this.#list.length
    for (;;) {
      const oldest = this.#list[0]
      if (oldest === undefined || oldest === this.#current?.segment) break
      if (oldest.open.size > 0 || oldest.unbooked > 0) break
      try {
        this.#of.files.remove(oldest.path)
      } catch (error) {
        this.#of.log.error(
          { error, path: oldest.path },
          'A journal segment that is booked cannot be removed.',
        )
        break
      }
      this.#bytes -= oldest.size
      this.#list.shift()
    }
    if (this.#list.length < before) this.#syncDirectory()
  }

  /** Brings everything to the disk and closes; nothing is written afterwards. */
  async close(): Promise<void> {
    this.#cancelSync?.()
    const current = this.#current
    this.#current = null
    if (current !== null) await new Promise<void>((resolve) => this.#retire(current, resolve))
    this.removeDone()
  }

  #writable(): Opened<Call> {
    if (this.#current !== null && this.#current.segment.size >= this.#of.segmentBytes) {
      const full = this.#current
      this.#current = null
      this.#retire(full, () => undefined)
    }
    if (this.#current === null) {
      const number = this.#nextNumber++
      const path = segmentPath(this.#of.directory, number)
      const file = this.#of.files.create(path)
      const segment = { number, path, size: 0, open: new Set<Call>(), unbooked: 0 }
      this.#current = { segment, file, syncs: 0, onClosed: null }
      this.#list.push(segment)
      this.#syncDirectory()
      this.removeDone()
    }
    return this.#current
  }

  #retire(opened: Opened<Call>, done: () => void): void {
    opened.onClosed = done
    this.#sync(opened)
  }

  #syncLater(): void {
    this.#cancelSync ??= this.#of.clock.later(() => {
      this.#cancelSync = null
      const current = this.#current
      if (current === null || !this.#isDirty) return
      if (current.syncs > 0) return this.#syncLater()
      this.#isDirty = false
      this.#sync(current)
    }, this.#of.syncIntervalMs)
  }

  #sync(opened: Opened<Call>): void {
    opened.syncs += 1
    this.#of.files.sync(opened.file, (error) => {
      opened.syncs -= 1
      this.#syncFailed(error, opened.segment.path)
      if (opened.onClosed === null || opened.syncs > 0) return
      this.#of.files.close(opened.file)
      opened.onClosed()
    })
  }

  #syncDirectory(): void {
    this.#of.files.syncDirectory(this.#of.directory, (error) => this.#syncFailed(error, this.#of.directory))
  }

  #syncFailed(error: Error | null, path: string): void {
    if (error === null) return
    this.#of.log.error(
      { error, path },
      'The journal cannot be brought to the disk: a loss of power would cost it.',
    )
  }
}
