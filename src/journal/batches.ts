/** Settlements on their way from the journal to PostgreSQL, in batches that stay until they are confirmed. */
import { Buffer } from 'node:buffer'
import type { Settlement } from '../../schemas/events/event.ts'
import { Backlog } from './backlog.ts'
import type { JournalLog } from './clock.ts'
import { addCost, addCosts, totalOf } from './costs.ts'
import type { JournalFiles } from './files.ts'
import { parseLines } from './format.ts'
import { type PageSlice, Pages } from './pages.ts'
import type { RecoveredState } from './recovery.ts'
import type { Segment } from './segments.ts'

/** A batch takes no further group once it holds this much. Servers take messages of 1 MiB by default. */
export const BATCH_FULL_SETTLEMENTS = 200
export const BATCH_FULL_BYTES = 256 * 1024
/** Written settlements that wait in memory; further ones are read back from the file. */
const WAITING_MAX_BYTES = 16 * 1024 * 1024

/** Settlements that travel as one message. */
export interface JournalBatch {
  /** Message id. Never used again for other content, not even after a restart or a loss of power. */
  readonly id: string
  /** Settlements as JSON, one a line. Valid until the batch is confirmed: then its memory is used again. */
  readonly payload: Uint8Array
  readonly count: number
  /** The number behind its last settlement. */
  readonly end: number
  /** Cost of the batch in 1e-8 credit: by account, and by key under the key's id. */
  readonly costs: ReadonlyMap<string, bigint>
}

/** One written group's settlements. */
export interface WrittenGroup<Call> {
  readonly segment: Segment<Call>
  readonly offset: number
  readonly first: number
  readonly count: number
  /** Valid during the call alone. */
  readonly bytes: Buffer
  /** As in a batch. */
  readonly costs: ReadonlyMap<string, bigint>
}

interface Taken<Call> extends JournalBatch {
  readonly first: number
  readonly parts: ReadonlyArray<Part<Call>>
  /** Left by an earlier process. */
  readonly isRecovered: boolean
  isConfirmed: boolean
}

/** A group on its way into a batch. */
type Part<Call> = Pick<WrittenGroup<Call>, 'segment' | 'first' | 'count' | 'bytes' | 'costs'> & {
  /** Place of its bytes; null when they were read back from the file. */
  readonly slice: PageSlice | null
}

type Waiting<Call> = Part<Call> & Pick<WrittenGroup<Call>, 'offset'> & { readonly slice: PageSlice }

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
  /** Taken and not all confirmed, in order. */
  readonly #taken: Taken<Call>[] = []
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
    this.#unbookedCost = totalOf(recovered.costs)
    this.#backlog = recovered.unbooked > 0 ? this.#backlogFrom({ number: 0, offset: 0 }) : null
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
    return this.#taken[0]?.first ?? this.#takenTo
  }

  /** Returns the rest of `recovered.costs`. */
  recoveredCost(id: string): bigint {
    return this.#recoveredCosts.get(id) ?? 0n
  }

  written(group: WrittenGroup<Call>): void {
    this.#untaken += group.count
    group.segment.unbooked += group.count
    this.#unbookedCost += totalOf(group.costs)
    if (this.#backlog !== null) return
    const slice = this.#pages.copy(group.bytes)
    const { segment, offset, first, count, costs } = group
    const bytes = slice.page.memory.subarray(slice.from, slice.to)
    this.#waiting.push({ segment, offset, first, count, costs, bytes, slice })
    this.#waitingBytes += bytes.length
    if (this.#waitingBytes > WAITING_MAX_BYTES) this.#dropWaiting()
  }

  /**
   * Returns the next batch, or null when nothing waits.
   * @throws Error of the file system while reading back
   */
  take(): JournalBatch | null {
    const parts = this.#nextParts()
    const [head] = parts
    if (head === undefined) return null
    const last = parts.at(-1) ?? head
    const count = parts.reduce((sum, part) => sum + part.count, 0)
    this.#untaken -= count
    this.#takenTo = last.first + last.count
    const batch = {
      id: `${this.#deps.prefix}${this.#nextBatch++}`,
      payload: joined(parts),
      count,
      end: this.#takenTo,
      costs: sumOf(parts),
      first: head.first,
      parts,
      isRecovered: head.first < this.#ownFrom,
      isConfirmed: false,
    }
    this.#taken.push(batch)
    return batch
  }

  /** Confirms that PostgreSQL has the batch. A second call changes nothing. */
  confirm(batch: JournalBatch): void {
    const taken = this.#taken.find(({ id }) => id === batch.id)
    if (taken === undefined || taken.isConfirmed) return
    taken.isConfirmed = true
    this.#unbookedCost -= totalOf(taken.costs)
    for (const { segment, count, slice } of taken.parts) {
      segment.unbooked -= count
      if (slice !== null) this.#pages.release(slice)
    }
    if (taken.isRecovered) for (const [id, cost] of taken.costs) addCost(this.#recoveredCosts, id, -cost)
    while (this.#taken[0]?.isConfirmed) this.#taken.shift()
  }

  #nextParts(): Part<Call>[] {
    const parts: Part<Call>[] = []
    let count = 0
    let bytes = 0
    while (count < BATCH_FULL_SETTLEMENTS && bytes < BATCH_FULL_BYTES) {
      const part = this.#nextPart(parts)
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
  #nextPart(before: readonly Part<Call>[]): Part<Call> | null {
    if (this.#backlog === null) return this.#nextWaiting(before[0])
    try {
      return this.#nextRead(this.#backlog)
    } catch (error) {
      if (before.length === 0) throw error
      return null
    }
  }

  /**
   * Returns the next waiting part. Null as well for bytes in another page than the first part: a batch of one page is
   * not copied.
   */
  #nextWaiting(head: Part<Call> | undefined): Part<Call> | null {
    const group = this.#waiting[0]
    if (group === undefined) return null
    if (head !== undefined && head.slice !== null && head.slice.page !== group.slice.page) return null
    this.#waiting.shift()
    this.#waitingBytes -= group.bytes.length
    return group
  }

  #nextRead(backlog: Backlog<Call>): Part<Call> | null {
    for (;;) {
      const next = backlog.next()
      if (next === null) {
        this.#backlog = null
        return null
      }
      const { segment, group } = next
      if (group.count === 0 || group.first + group.count <= this.#bookedBefore) continue
      const { first, count, settlements: bytes } = group
      return { segment, first, count, bytes, costs: costsIn(bytes), slice: null }
    }
  }

  /** Drops waiting settlements from memory: all are in the file and are read from there in their turn. */
  #dropWaiting(): void {
    const oldest = this.#waiting[0]
    if (oldest === undefined) return
    this.#backlog = this.#backlogFrom({ number: oldest.segment.number, offset: oldest.offset })
    for (const { slice } of this.#waiting) this.#pages.release(slice)
    this.#waiting = []
    this.#waitingBytes = 0
  }

  #backlogFrom(from: { number: number; offset: number }): Backlog<Call> {
    return new Backlog(this.#deps.files, this.#deps.segments, from, (path, damage) =>
      this.#deps.log.error({ path, ...damage }, 'Skipped damaged bytes of the journal; the rest is sent'),
    )
  }
}

/** Parts of one page are adjacent in it. */
function joined(parts: ReadonlyArray<Pick<Part<unknown>, 'bytes' | 'slice'>>): Buffer {
  const from = parts[0]?.slice
  const to = parts.at(-1)?.slice
  if (from && to && from.page === to.page) return from.page.memory.subarray(from.from, to.to)
  return Buffer.concat(parts.map((part) => part.bytes))
}

function sumOf(parts: ReadonlyArray<Pick<Part<unknown>, 'costs'>>): Map<string, bigint> {
  const sums = new Map<string, bigint>()
  for (const { costs } of parts) for (const [id, cost] of costs) addCost(sums, id, cost)
  return sums
}

function costsIn(bytes: Buffer): Map<string, bigint> {
  const costs = new Map<string, bigint>()
  for (const settlement of parseLines(bytes, () => undefined) as Settlement[]) addCosts(costs, settlement)
  return costs
}
