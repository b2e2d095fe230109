/** The files of one journal, oldest first: appended to at the end, removed from the start. */
import { join } from 'node:path'
import type { JournalClock, JournalLog } from './clock.ts'
import type { JournalFiles } from './files.ts'

/** A segment that has grown to this is closed and the next one begun. */
export const SEGMENT_BYTES = 8 * 1024 * 1024
/** Loss of power can lose the writes of this time; a killed process loses none. */
export const SYNC_INTERVAL_MS = 50

const SEGMENT_NAME = /^(\d{12})\.journal$/
const SEGMENT_NUMBER_DIGITS = 12

export interface Segment<Call = unknown> {
  readonly number: number
  readonly path: string
  /** Offset of the next group. */
  size: number
  /** Admitted in this segment and not ended yet. */
  readonly open: Set<Call>
  /** Settlements in this segment that PostgreSQL is not known to have. */
  unbooked: number
  /** Left by an earlier process: its damage was logged when it was read first. */
  readonly isRecovered: boolean
}

function nameSegment(directory: string, number: number): string {
  return join(directory, `${String(number).padStart(SEGMENT_NUMBER_DIGITS, '0')}.journal`)
}

/** Lists the segments in a directory, oldest first. */
export function listSegments<Call>(files: JournalFiles, directory: string): Segment<Call>[] {
  return files
    .list(directory)
    .map((name) => SEGMENT_NAME.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .sort((a, b) => a - b)
    .map((number) => {
      const path = nameSegment(directory, number)
      return { number, path, size: files.size(path), open: new Set<Call>(), unbooked: 0, isRecovered: true }
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
  /** Under way now: a retired file is closed behind the last of them. */
  syncs: number
  isRetired: boolean
}

export class Segments<Call> {
  readonly #deps: Dependencies
  readonly #list: Segment<Call>[]
  #nextNumber: number
  /** The segment that is written to; none before the beginning. */
  #current: Opened<Call> | null = null
  /** The current segment has writes that no sync covers yet. */
  #isDirty = false
  /** Number of files being synced. */
  #syncing = 0
  #isRemoving = false
  /** Called when nothing is being synced or removed. */
  #onQuiet: () => void = () => undefined
  #cancelSync: (() => void) | null = null
  #bytes: number

  constructor(deps: Dependencies, recovered: readonly Segment<Call>[]) {
    this.#deps = deps
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
   * Appends the first `length` bytes. The bytes of a failed write are overwritten by the next.
   * @throws Error of the file system
   */
  append(bytes: Buffer, length: number): { readonly segment: Segment<Call>; readonly offset: number } {
    const { segment, file } = this.#openWritable()
    const offset = segment.size
    let done = 0
    while (done < length) done += this.#deps.files.write(file, bytes, done, length - done, offset + done)
    segment.size += length
    this.#bytes += length
    this.#isDirty = true
    this.#syncLater()
    return { segment, offset }
  }

  /** Opens the first file before there is need: when clients have taken every file, calls can still be written down. */
  begin(): void {
    this.#openWritable()
  }

  /**
   * Begins the next file, so that the current one can be removed once it is booked. An empty file takes no space on a
   * full disk; where even that cannot be created, nothing changes.
   */
  rotate(): void {
    const current = this.#current
    if (current !== null && current.segment.size > 0) this.#openAfter(current)
  }

  /** Removes booked segments from the start, at once if all writes are synced, else after the sync. */
  removeDone(): void {
    if (!this.#isDirty && this.#syncing === 0) this.#removeUpTo(this.#findDoneUpTo())
  }

  /** Syncs everything and closes; nothing is written afterwards. */
  async close(): Promise<void> {
    this.#cancelSync?.()
    const current = this.#current
    this.#current = null
    this.#isDirty = false
    if (current !== null) this.#retire(current)
    await this.#awaitQuiet()
    this.removeDone()
    await this.#awaitQuiet()
  }

  #awaitQuiet(): Promise<void> {
    if (this.#syncing === 0 && !this.#isRemoving) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onQuiet = resolve
    })
  }

  /** Returns the number of the last segment such that it and all before it can be removed; never the current one. */
  #findDoneUpTo(): number {
    let done = 0
    for (const segment of this.#list) {
      if (segment === this.#current?.segment || segment.open.size > 0 || segment.unbooked > 0) break
      done = segment.number
    }
    return done
  }

  /** Removes segments one after the other, so that a crash leaves no gap. */
  #removeUpTo(number: number): void {
    const oldest = this.#list[0]
    if (this.#isRemoving || oldest === undefined || oldest.number > number) return
    this.#isRemoving = true
    this.#deps.files.remove(oldest.path, (error) => {
      this.#isRemoving = false
      if (error !== null) {
        this.#deps.log.error({ error, path: oldest.path }, 'Failed to remove a booked journal segment')
        return this.#notifyQuiet()
      }
      this.#bytes -= oldest.size
      this.#list.shift()
      this.#removeUpTo(number)
      if (!this.#isRemoving) {
        this.#syncDirectory()
        this.#notifyQuiet()
      }
    })
  }

  #notifyQuiet(): void {
    if (this.#syncing === 0 && !this.#isRemoving) this.#onQuiet()
  }

  #openWritable(): Opened<Call> {
    const current = this.#current
    if (current === null) return this.#begin()
    if (current.segment.size < this.#deps.segmentBytes) return current
    return this.#openAfter(current)
  }

  /** Returns the file for further writes: the next one, or `current` where no other can be created. */
  #openAfter(current: Opened<Call>): Opened<Call> {
    try {
      const next = this.#begin()
      this.#retire(current)
      return next
    } catch {
      // For example, no file may be opened at the moment: a segment that grows too large loses nothing.
      return current
    }
  }

  #begin(): Opened<Call> {
    const number = this.#nextNumber
    const path = nameSegment(this.#deps.directory, number)
    const file = this.#deps.files.create(path)
    this.#nextNumber++
    const segment = { number, path, size: 0, open: new Set<Call>(), unbooked: 0, isRecovered: false }
    this.#list.push(segment)
    this.#current = { segment, file, syncs: 0, isRetired: false }
    this.#syncDirectory()
    return this.#current
  }

  #retire(opened: Opened<Call>): void {
    opened.isRetired = true
    this.#sync(opened)
  }

  #syncLater(): void {
    this.#cancelSync ??= this.#deps.clock.later(() => {
      this.#cancelSync = null
      const current = this.#current
      if (current === null || !this.#isDirty) return
      if (current.syncs > 0) return this.#syncLater()
      this.#isDirty = false
      this.#sync(current)
    }, this.#deps.syncIntervalMs)
  }

  /**
   * Syncs a segment. The ends of a segment's calls are written after it, so that it is removed when those are on the
   * disk: else a loss of power could lose a call's end while its admission is already removed.
   */
  #sync(opened: Opened<Call>): void {
    const done = this.#findDoneUpTo()
    opened.syncs += 1
    this.#syncing += 1
    this.#deps.files.sync(opened.file, (error) => {
      opened.syncs -= 1
      this.#syncing -= 1
      if (error !== null) {
        this.#syncFailed(error, opened.segment.path)
        this.#isDirty = true
        this.#syncLater()
      } else if (this.#syncing === 0) this.#removeUpTo(done)
      if (opened.isRetired && opened.syncs === 0) this.#deps.files.close(opened.file)
      this.#notifyQuiet()
    })
  }

  #syncDirectory(): void {
    this.#deps.files.syncDirectory(this.#deps.directory, (error) => {
      if (error !== null) this.#syncFailed(error, this.#deps.directory)
    })
  }

  #syncFailed(error: Error, path: string): void {
    this.#deps.log.error({ error, path }, 'Failed to sync the journal; a power loss would lose it')
  }
}
