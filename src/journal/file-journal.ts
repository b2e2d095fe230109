/** Implementation of `journal.ts`. */

import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import type { Admission, Settlement } from '../../schemas/call-log/columns.ts'
import { Batches, type JournalBatch } from './batches.ts'
import { type JournalClock, type JournalLog, systemClock } from './clock.ts'
import { addCosts } from './costs.ts'
import type { JournalFiles } from './files.ts'
import { encodeGroup, groupBound } from './format.ts'
import { makeId, readId, writeId } from './id.ts'
import {
  estimateIn,
  makeInterruptedSettlement,
  printAdmissionLine,
  printIdentity,
  printSettlementLine,
} from './lines.ts'
import { PAGE_BYTES } from './pages.ts'
import { recoverState } from './recovery.ts'
import { SEGMENT_BYTES, type Segment, Segments, SYNC_INTERVAL_MS } from './segments.ts'
import type { Journal, JournalDepth, JournalHoldings, JournalOptions, Recovered, Ticket } from './types.ts'

/** A group takes no further settlement once it holds this much. */
const GROUP_FULL_CHARS = 128 * 1024
/** After a failed write (disk full) the next try comes after this. */
const WRITE_RETRY_MS = 200
/** Rejected rows are dropped while the disk is full and this much waits. Admitted ones are never dropped. */
export const REJECTED_WAITING_MAX_CHARS = 32 * 1024 * 1024
/** The oldest segment's open calls are copied forward when they hold back this many segments. */
const SEGMENTS_BEFORE_CARRY = 8
/** Delay after which a confirmation is written to the file, so that a restart does not send the batch again. */
const MARK_DELAY_MS = 250
const SCRATCH_BYTES = 16 * 1024
/** Takes up the room in which admissions of open calls are carried forward when the disk is full. */
const SPARE_FILE = 'spare'
export const SPARE_BYTES = 64 * 1024

class OpenCall implements Ticket {
  readonly requestId: string
  /** Beginning of its lines. */
  readonly identity: string
  readonly model: string
  /** Null once called: it holds the whole call, and where the ticket is garbage in old space that would stay too. */
  written: ((error: Error | null) => void) | null
  /** The place of its admission; null before that is written. */
  segment: Segment<OpenCall> | null = null
  isSettled = false

  constructor(admission: Admission, written: (error: Error | null) => void) {
    this.requestId = admission.request_id
    this.identity = printIdentity(admission)
    this.model = admission.model
    this.written = written
  }
}

const printAdmissions = (calls: readonly OpenCall[]): string =>
  calls.reduce((lines, { identity }) => lines + printAdmissionLine(identity), '')

/** Settlements that go into one group. */
interface Chunk {
  text: string
  readonly calls: (OpenCall | null)[]
  readonly costs: Map<string, bigint>
}

const newChunk = (): Chunk => ({ text: '', calls: [], costs: new Map() })

export class FileJournal implements Journal {
  readonly id: string
  readonly recovered: Recovered
  readonly #directory: string
  readonly #log: JournalLog
  readonly #files: JournalFiles
  readonly #clock: JournalClock
  readonly #segments: Segments<OpenCall>
  readonly #batches: Batches<OpenCall>
  #scratch = Buffer.allocUnsafe(SCRATCH_BYTES)
  #admitted: OpenCall[] = []
  /** Those who wait until the end of their call is written. */
  #ended: (() => void)[] = []
  #chunks: Chunk[] = []
  #chunkChars = 0
  #isFlushComing = false
  /** Error of the last failed write; null after a success. */
  #failure: Error | null = null
  #next: number
  #marked: number
  #cancelMark: (() => void) | null = null
  #cancelRetry: (() => void) | null = null
  #open = 0
  #dropped = 0
  #settled: () => void = () => undefined
  #isClosed = false

  constructor(options: JournalOptions, files: JournalFiles) {
    const { directory, log, clock = systemClock } = options
    this.#directory = directory
    this.#files = files
    this.#log = log
    this.#clock = clock
    this.id = readId(files, directory) ?? writeId(files, directory)
    const remains = recoverState<OpenCall>(files, directory, log)
    const { segments, interrupted, unbooked, tornBytes, corruptedBytes } = remains
    const {
      segmentBytes = SEGMENT_BYTES,
      pageBytes = PAGE_BYTES,
      syncIntervalMs = SYNC_INTERVAL_MS,
    } = options
    this.#next = remains.next
    this.#marked = remains.booked
    this.#segments = new Segments({ directory, files, clock, log, segmentBytes, syncIntervalMs }, segments)
    const prefix = `${this.id}.${makeId()}-`
    const segmentList = () => this.#segments.list
    this.#batches = new Batches({ prefix, files, log, segments: segmentList, pageBytes }, remains)
    this.recovered = {
      interrupted: interrupted.length,
      unbooked: unbooked + interrupted.length,
      tornBytes,
      corruptedBytes,
    }
    for (const call of interrupted) this.settle(null, makeInterruptedSettlement(call, clock.now()))
    this.#flush()
    if (this.#failure !== null) throw this.#failure
    this.#segments.begin()
    this.#segments.removeDone()
    this.#tryReserveSpace()
  }

  get settledTo(): number {
    return this.#next + this.#countWaitingCalls()
  }

  get untaken(): number {
    return this.#batches.untaken
  }

  admit(admission: Admission, written: (error: Error | null) => void): Ticket {
    const call = new OpenCall(admission, written)
    this.#admitted.push(call)
    this.#flushSoon()
    return call
  }

  settle(ticket: Ticket | null, settlement: Settlement, written?: () => void): void {
    const call = ticket as OpenCall | null
    if (written !== undefined) {
      this.#ended.push(written)
      this.#flushSoon()
    }
    if (call?.isSettled) {
      this.#log.error(
        { request_id: settlement.request_id },
        'Call was settled twice; dropped the second settlement',
      )
      return
    }
    if (call !== null) call.isSettled = true
    if (call === null && this.#failure !== null && this.#chunkChars > REJECTED_WAITING_MAX_CHARS) {
      this.#dropped += 1
      return
    }
    const line = printSettlementLine(settlement, call)
    let chunk = this.#chunks.at(-1)
    if (chunk === undefined || chunk.text.length >= GROUP_FULL_CHARS) {
      chunk = newChunk()
      this.#chunks.push(chunk)
    }
    chunk.text += line
    chunk.calls.push(call)
    addCosts(chunk.costs, settlement)
    this.#chunkChars += line.length
    this.#flushSoon()
  }

  depth(): JournalDepth {
    const add = (sum: number, { unbooked }: Segment<OpenCall>) => sum + unbooked
    return {
      open: this.#open,
      settlementsUnbooked: this.#segments.list.reduce(add, this.#countWaitingCalls()),
      bytes: this.#segments.bytes,
      dropped: this.#dropped,
      isWritable: this.#failure === null,
    }
  }

  holdings(): JournalHoldings {
    const { open: openCalls, settlementsUnbooked: unbookedCalls } = this.depth()
    let openEstimate = 0n
    for (const { open } of this.#segments.list)
      for (const { identity } of open) openEstimate += estimateIn(identity)
    return { openCalls, openEstimate, unbookedCalls, unbookedCost: this.#batches.unbookedCost }
  }

  recoveredCost(id: string): bigint {
    return this.#batches.recoveredCost(id)
  }

  onSettled(listener: () => void): void {
    this.#settled = listener
  }

  take(): JournalBatch | null {
    return this.#batches.take()
  }

  release = (batch: JournalBatch): void => this.#batches.release(batch)

  confirm(batch: JournalBatch): void {
    this.#batches.confirm(batch)
    this.#segments.removeDone()
    if (this.#isClosed || this.#batches.booked === this.#marked) return
    this.#cancelMark ??= this.#clock.later(() => this.#mark(), MARK_DELAY_MS)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    if (this.#failure === null) this.#flush()
    else this.#retry()
    if (this.#failure === null) this.#mark()
    this.#isClosed = true
    this.#cancelRetry?.()
    this.#cancelMark?.()
    if (this.#failure !== null)
      this.#log.error({ error: this.#failure, ...this.depth() }, 'Closed the journal while its disk fails')
    await this.#segments.close()
    this.#files.release(this.#directory)
  }

  #countWaitingCalls = (): number => this.#chunks.reduce((sum, { calls }) => sum + calls.length, 0)

  #flushSoon(): void {
    if (this.#isFlushComing) return
    this.#isFlushComing = true
    this.#clock.soon(() => this.#flush())
  }

  /** Writes what waits, in one group where it fits, then calls those who wait for it. */
  #flush(): void {
    this.#isFlushComing = false
    const admitted = this.#admitted
    this.#admitted = []
    const ended = this.#ended
    this.#ended = []
    const before = this.#next
    const refusal = this.#isClosed ? new Error('The journal is closed.') : this.#write(admitted)
    for (const call of admitted) this.#notifyAdmitted(call, refusal)
    for (const written of ended) this.#notifyEnded(written)
    if (this.#next > before) this.#settled()
    this.#carryForward()
  }

  /** Answers why the admissions could not be written; settlements that could not wait for the next try. */
  #write(admitted: readonly OpenCall[]): Error | null {
    if (this.#failure !== null) return this.#failure
    if (admitted.length === 0 && this.#chunks.length === 0) return null
    let lines = printAdmissions(admitted)
    let opening = admitted
    try {
      do {
        this.#writeGroup(lines, opening, this.#chunks[0])
        this.#chunks.shift()
        lines = ''
        opening = []
      } while (this.#chunks.length > 0)
      return null
    } catch (error) {
      this.#onFailure(error as Error)
      return opening.length > 0 ? (error as Error) : null
    }
  }

  #writeGroup(admissions: string, opening: readonly OpenCall[], chunk: Chunk | undefined): void {
    const first = this.#next
    const count = chunk?.calls.length ?? 0
    const text = { admissions, settlements: chunk?.text ?? '', count, first, booked: this.#batches.booked }
    if (groupBound(text) > this.#scratch.length) this.#scratch = Buffer.allocUnsafe(groupBound(text))
    const { settlementsAt, end } = encodeGroup(this.#scratch, text)
    const { segment, offset } = this.#segments.append(this.#scratch, end)
    this.#marked = text.booked
    this.#next = first + count
    for (const call of opening) {
      call.segment = segment
      segment.open.add(call)
    }
    this.#open += opening.length
    if (chunk === undefined) return
    for (const call of chunk.calls) if (call?.segment?.open.delete(call)) this.#open -= 1
    this.#chunkChars -= chunk.text.length
    const bytes = this.#scratch.subarray(settlementsAt, end)
    this.#batches.onWritten({ segment, offset, end: offset + end, first, count, bytes, costs: chunk.costs })
  }

  #notifyAdmitted(call: OpenCall, refusal: Error | null): void {
    try {
      const { written } = call
      call.written = null
      written?.(refusal)
    } catch (error) {
      this.#log.error({ error, request_id: call.requestId }, 'Callback of an admission failed')
    }
  }

  #notifyEnded(written: () => void): void {
    try {
      written()
    } catch (error) {
      this.#log.error({ error }, 'Callback of a settlement failed')
    }
  }

  /** Carries admissions forward, so that a call that stays open for long does not retain earlier files. */
  #carryForward(): void {
    const segments = this.#segments.list
    const oldest = segments[0]
    if (segments.length <= SEGMENTS_BEFORE_CARRY || oldest === undefined || this.#failure !== null) return
    if (oldest.unbooked > 0 || oldest.open.size === 0) return
    const calls = [...oldest.open]
    try {
      this.#writeGroup(printAdmissions(calls), calls, undefined)
      this.#open -= calls.length
      oldest.open.clear()
      this.#segments.removeDone()
    } catch (error) {
      this.#onFailure(error as Error)
    }
  }

  #onFailure(error: Error): void {
    if (this.#failure === null)
      this.#log.error({ error }, 'Failed to write the journal; calls are refused until it works')
    this.#failure = error
    this.#cancelRetry = this.#clock.later(() => this.#retry(), WRITE_RETRY_MS)
  }

  #retry(): void {
    this.#cancelRetry?.()
    this.#failure = this.#cancelRetry = null
    const before = this.#next
    this.#freeBooked()
    if (this.#chunks.length > 0) this.#write([])
    else this.#mark()
    if (this.#failure === null) {
      this.#log.info({}, 'Journal works again')
      this.#tryReserveSpace()
    }
    if (this.#next > before) this.#settled()
  }

  /**
   * Frees booked files: where all settlements are booked, begins another file, carries the admissions of open calls
   * there, and frees the rest. The spare file makes room for them on a full disk.
   */
  #freeBooked(): void {
    const segments = [...this.#segments.list]
    if (this.#segments.bytes <= SPARE_BYTES || segments.some(({ unbooked }) => unbooked > 0)) return
    try {
      this.#reserveSpace(false)
      this.#segments.rotate()
      const calls = segments.flatMap(({ open }) => [...open])
      if (calls.length > 0) this.#writeGroup(printAdmissions(calls), calls, undefined)
      this.#open -= calls.length
      const current = this.#segments.list.at(-1)
      for (const segment of segments) if (segment !== current) segment.open.clear()
      this.#segments.removeDone()
    } catch {
      // Not even that has room: everything stays as it is until the next try.
    }
  }

  /** Reserves space. Without it the journal still works, and frees less on a full disk. */
  #tryReserveSpace(): void {
    try {
      this.#reserveSpace(true)
    } catch (error) {
      this.#log.warn({ error }, 'Failed to reserve space for a full disk')
    }
  }

  /** @throws Error of the file system */
  #reserveSpace(isKept: boolean): void {
    const path = join(this.#directory, SPARE_FILE)
    const bytes = isKept ? SPARE_BYTES : 0
    if (!this.#files.list(this.#directory).includes(SPARE_FILE) || this.#files.size(path) !== bytes)
      this.#files.replace(path, ' '.repeat(bytes))
  }

  /** Writes an empty group for its header: the number up to which everything is booked. */
  #mark(): void {
    this.#cancelMark?.()
    this.#cancelMark = null
    if (this.#failure !== null) return
    try {
      this.#writeGroup('', [], undefined)
    } catch (error) {
      this.#onFailure(error as Error)
    }
  }
}
