/** Settlements on their way from the journal to PostgreSQL, in batches that stay until they are confirmed. */

import { Buffer } from 'node:buffer'
import type { Settlement } from '../../schemas/call-log/columns.ts'
import { Backlog } from './backlog.ts'
import type { JournalLog } from './clock.ts'
import { addCost, addCosts, sumCosts } from './costs.ts'
import type { JournalFiles } from './files.ts'
import { parseLines, readGroups } from './format.ts'
import { type PageSlice, Pages } from './pages.ts'
import type { RecoveredState } from './recovery.ts'
import type { Segment } from './segments.ts'

/** A batch takes no further group once it holds this much. Servers take messages of 1 MiB by default. */
export const BATCH_FULL_SETTLEMENTS = 200
const BATCH_FULL_BYTES = 256 * 1024
/** Written settlements that wait in memory; further ones are read back from the file. */
const WAITING_MAX_BYTES = 16 * 1024 * 1024

/** Settlements that travel as one message. */
export interface JournalBatch {
  /** Message id. Never used again for other content, not even after a restart or a loss of power. */
  readonly id: string
  readonly count: number
  /** The number behind its last settlement. */
  readonly end: number
  /** Cost of the batch in 1e-8 credit: by account, and by key under the key's id. */
  readonly costs: ReadonlyMap<string, bigint>
  /**
   * Returns its settlements as JSON, one a line; once it is released, those that can be read back from the file. Valid
   * until the batch is released or confirmed: then its memory is used again.
   * @throws Error of the file system while reading back
   */
  payload(): Uint8Array
}

/** One written group's settlements. */
interface WrittenGroup<Call> {
  readonly segment: Segment<Call>
  /** Place of the group in the segment: its first byte, and the one behind it. */
  readonly offset: number
  readonly end: number
  readonly first: number
  readonly count: number
  readonly bytes: Buffer
  /** As in a batch. */
  readonly costs: ReadonlyMap<string, bigint>
}

/** Groups of one segment that follow one another: `count` settlements. */
interface Run<Call> {
  readonly segment: Segment<Call>
  readonly offset: number
  end: number
  count: number
}

/** The part of a batch that stays, once it is confirmed, while one before it is not. */
interface Place {
  readonly first: number
  isConfirmed: boolean
}

interface Taken<Call> extends JournalBatch {
  readonly runs: readonly Run<Call>[]
  /** Left by an earlier process. */
  readonly isRecovered: boolean
  readonly place: Place
  /** Null once it is released. */
  memory: { readonly bytes: Buffer; readonly slices: readonly PageSlice[] } | null
}

/** A group on its way into a batch. */
interface Part<Call> extends WrittenGroup<Call> {
  /** Place of its bytes; null when they were read back from the file. */
  readonly slice: PageSlice | null
}

type Waiting<Call> = Part<Call> & { readonly slice: PageSlice }

interface Dependencies<Call> {
  /** Begins every message id. */
  readonly prefix: string
  readonly files: JournalFiles
  readonly log: JournalLog
  readonly segments: () => readonly Segment<Call>[]
  readonly pageBytes: number
}

export class Batches<Call> {
  readonly #deps: Dependencies<Call>
  /** Settlements below this number were booked before this process began. */
  readonly #bookedBefore: number
  /** Settlements below this number were left by an earlier process. */
  readonly #ownFrom: number
  readonly #recoveredCosts: Map<string, bigint>
  #waiting: Waiting<Call>[] = []
  #waitingBytes = 0
  #backlog: Backlog<Call> | null
  /** Taken and not confirmed, by id. */
  readonly #taken = new Map<string, Taken<Call>>()
  /** Taken, in order. Those before `#oldest` are confirmed, and cut off now and then: there may be many. */
  readonly #order: Place[] = []
  #oldest = 0
  readonly #pages: Pages
  #nextBatch = 1
  /** The number behind the last settlement taken. */
  #takenTo: number
  #untaken: number
  #unbookedCost: bigint

  constructor(
    deps: Dependencies<Call>,
    recovered: Pick<RecoveredState<Call>, 'booked' | 'unbooked' | 'costs' | 'next'>,
  ) {
    this.#deps = deps
    this.#pages = new Pages(deps.pageBytes)
    this.#bookedBefore = recovered.booked
    this.#ownFrom = recovered.next
    this.#recoveredCosts = new Map(recovered.costs)
    this.#takenTo = recovered.booked
    this.#untaken = recovered.unbooked
    this.#unbookedCost = sumCosts(recovered.costs)
    this.#backlog = recovered.unbooked > 0 ? this.#openBacklog({ number: 0, offset: 0 }) : null
  }

  /** Settlements that no batch has taken yet. */
  get untaken(): number {
    return this.#untaken
  }

  /** Cost of the settlements that are written and not confirmed, in 1e-8 credit. */
  get unbookedCost(): bigint {
    return this.#unbookedCost
  }

  /** Every settlement numbered below this is booked. */
  get booked(): number {
    return this.#order[this.#oldest]?.first ?? this.#takenTo
  }

  /** Returns the rest of `recovered.costs`. */
  recoveredCost(id: string): bigint {
    return this.#recoveredCosts.get(id) ?? 0n
  }

  /** Takes what the journal has written; `group.bytes` is valid only during the call. */
  onWritten(group: WrittenGroup<Call>): void {
    this.#untaken += group.count
    group.segment.unbooked += group.count
    this.#unbookedCost += sumCosts(group.costs)
    if (this.#backlog !== null) return
    const slice = this.#pages.copy(group.bytes)
    const bytes = slice.page.memory.subarray(slice.from, slice.to)
    this.#waiting.push({ ...group, bytes, slice })
    this.#waitingBytes += bytes.length
    if (this.#waitingBytes > WAITING_MAX_BYTES) this.#dropWaiting()
  }

  /**
   * Returns the next batch, or null when nothing waits.
   * @throws Error of the file system while reading back
   */
  take(): JournalBatch | null {
    const parts = this.#takeNextParts()
    const [head] = parts
    if (head === undefined) return null
    const last = parts.at(-1) ?? head
    const count = parts.reduce((sum, part) => sum + part.count, 0)
    this.#untaken -= count
    this.#takenTo = last.first + last.count
    const batch: Taken<Call> = {
      id: `${this.#deps.prefix}${this.#nextBatch++}`,
      count,
      end: this.#takenTo,
      costs: mergeCosts(parts),
      runs: groupRuns(parts),
      isRecovered: head.first < this.#ownFrom,
      place: { first: head.first, isConfirmed: false },
      memory: { bytes: joinParts(parts), slices: parts.flatMap(({ slice }) => slice ?? []) },
      payload: () => batch.memory?.bytes ?? this.#readBack(batch.runs),
    }
    this.#taken.set(batch.id, batch)
    this.#order.push(batch.place)
    return batch
  }

  /** Frees the memory of a batch that stays taken. A second call changes nothing. */
  release({ id }: JournalBatch): void {
    const taken = this.#taken.get(id)
    if (taken !== undefined) this.#free(taken)
  }

  /** Confirms that PostgreSQL has the batch. A second call changes nothing. */
  confirm({ id }: JournalBatch): void {
    const taken = this.#taken.get(id)
    if (taken === undefined) return
    this.#taken.delete(id)
    this.#free(taken)
    taken.place.isConfirmed = true
    while (this.#order[this.#oldest]?.isConfirmed) this.#oldest++
    if (this.#oldest * 2 > this.#order.length) {
      this.#order.splice(0, this.#oldest)
      this.#oldest = 0
    }
    this.#unbookedCost -= sumCosts(taken.costs)
    for (const { segment, count } of taken.runs) segment.unbooked -= count
    if (taken.isRecovered) for (const [id, cost] of taken.costs) addCost(this.#recoveredCosts, id, -cost)
  }

  #free(taken: Taken<Call>): void {
    for (const slice of taken.memory?.slices ?? []) this.#pages.release(slice)
    taken.memory = null
  }

  #readBack(runs: readonly Run<Call>[]): Buffer {
    const settlements: Buffer[] = []
    for (const { segment, offset, end } of runs) {
      const bytes = Buffer.allocUnsafe(end - offset)
      const filled = this.#deps.files.readAt(segment.path, bytes, offset)
      // The caller compares with `count`.
      const onDamage = () => undefined
      for (const group of readGroups(bytes.subarray(0, filled), 0, onDamage))
        settlements.push(group.settlements)
    }
    return Buffer.concat(settlements)
  }

  #takeNextParts(): Part<Call>[] {
    const parts: Part<Call>[] = []
    let count = 0
    let bytes = 0
    while (count < BATCH_FULL_SETTLEMENTS && bytes < BATCH_FULL_BYTES) {
      const part = this.#takeNextPart(parts)
      if (part === null) break
      parts.push(part)
      count += part.count
      bytes += part.bytes.length
      // Settlements of an earlier process are confirmed separately from those of this one.
      if (part.first + part.count === this.#ownFrom) break
    }
    return parts
  }

  /**
   * Returns the next part. A file that cannot be read ends a batch: the part before has passed the cursor and is not
   * read again.
   */
  #takeNextPart(before: readonly Part<Call>[]): Part<Call> | null {
    if (this.#backlog === null) return this.#takeNextWaiting(before[0])
    try {
      return this.#readNextPart(this.#backlog)
    } catch (error) {
      if (before.length === 0) throw error
      return null
    }
  }

  /**
   * Returns the next waiting part. Null as well for bytes in another page than the first part: a batch of one page is
   * not copied.
   */
  #takeNextWaiting(head: Part<Call> | undefined): Part<Call> | null {
    const group = this.#waiting[0]
    if (group === undefined) return null
    if (head !== undefined && head.slice !== null && head.slice.page !== group.slice.page) return null
    this.#waiting.shift()
    this.#waitingBytes -= group.bytes.length
    return group
  }

  #readNextPart(backlog: Backlog<Call>): Part<Call> | null {
    for (;;) {
      const next = backlog.next()
      if (next === null) {
        this.#backlog = null
        return null
      }
      const { segment, offset, end, group } = next
      if (group.count === 0 || group.first + group.count <= this.#bookedBefore) continue
      const { first, count, settlements: bytes } = group
      return { segment, offset, end, first, count, bytes, costs: readCosts(bytes), slice: null }
    }
  }

  /** Drops waiting settlements from memory: all are in the file and are read from there in their turn. */
  #dropWaiting(): void {
    const oldest = this.#waiting[0]
    if (oldest === undefined) return
    this.#backlog = this.#openBacklog({ number: oldest.segment.number, offset: oldest.offset })
    for (const { slice } of this.#waiting) this.#pages.release(slice)
    this.#waiting = []
    this.#waitingBytes = 0
  }

  #openBacklog(from: { number: number; offset: number }): Backlog<Call> {
    return new Backlog(this.#deps.files, this.#deps.segments, from, (path, damage) =>
      this.#deps.log.error({ path, ...damage }, 'Skipped damaged bytes of the journal; the rest is sent'),
    )
  }
}

function groupRuns<Call>(parts: readonly Part<Call>[]): Run<Call>[] {
  const runs: Run<Call>[] = []
  for (const { segment, offset, end, count } of parts) {
    const run = runs.at(-1)
    if (run?.segment === segment) {
      run.end = end
      run.count += count
    } else runs.push({ segment, offset, end, count })
  }
  return runs
}

/** Parts of one page are adjacent in it. */
function joinParts(parts: ReadonlyArray<Pick<Part<unknown>, 'bytes' | 'slice'>>): Buffer {
  const from = parts[0]?.slice
  const to = parts.at(-1)?.slice
  if (from && to && from.page === to.page) return from.page.memory.subarray(from.from, to.to)
  return Buffer.concat(parts.map((part) => part.bytes))
}

function mergeCosts(parts: ReadonlyArray<Pick<Part<unknown>, 'costs'>>): Map<string, bigint> {
  const sums = new Map<string, bigint>()
  for (const { costs } of parts) for (const [id, cost] of costs) addCost(sums, id, cost)
  return sums
}

function readCosts(bytes: Buffer): Map<string, bigint> {
  const costs = new Map<string, bigint>()
  for (const settlement of parseLines(bytes, () => undefined) as Settlement[]) addCosts(costs, settlement)
  return costs
}
