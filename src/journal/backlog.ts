/** Reads settlements back from the segments in order: those no longer in memory, or not yet after a restart. */
import { Buffer } from 'node:buffer'
import type { JournalFiles } from './files.ts'
import { type Damage, type Group, readGroups } from './format.ts'
import type { Segment } from './segments.ts'

interface BacklogGroup<Call> {
  readonly segment: Segment<Call>
  /** Place of the group in the segment: its first byte, and the one behind it. */
  readonly offset: number
  readonly end: number
  readonly group: Group
}

export class Backlog<Call> {
  readonly #files: JournalFiles
  readonly #segments: () => readonly Segment<Call>[]
  readonly #onDamage: (path: string, damage: Damage) => void
  #number: number
  #offset: number
  /** Bytes read of the cursor's segment. */
  #read: { readonly segment: Segment<Call>; readonly from: number; readonly bytes: Buffer } | null = null

  /** Begins at an offset of the segment with this number, or at the first one after it. */
  constructor(
    files: JournalFiles,
    segments: () => readonly Segment<Call>[],
    from: { readonly number: number; readonly offset: number },
    onDamage: (path: string, damage: Damage) => void,
  ) {
    this.#files = files
    this.#segments = segments
    this.#number = from.number
    this.#offset = from.offset
    this.#onDamage = onDamage
  }

  /**
   * Returns the next group without damaged places; null when everything written was read.
   * @throws Error of the file system
   */
  next(): BacklogGroup<Call> | null {
    for (;;) {
      const segment = this.#findSegment()
      if (segment === undefined) return null
      if (this.#offset < segment.size) {
        const next = this.#readGroup(segment)
        if (next !== null) return next
      } else if (segment === this.#segments().at(-1)) return null
      else this.#moveTo(segment.number + 1)
    }
  }

  #findSegment(): Segment<Call> | undefined {
    const segment = this.#segments().find(({ number }) => number >= this.#number)
    if (segment !== undefined && segment.number > this.#number) this.#moveTo(segment.number)
    return segment
  }

  #moveTo(number: number): void {
    this.#number = number
    this.#offset = 0
    this.#read = null
  }

  #readGroup(segment: Segment<Call>): BacklogGroup<Call> | null {
    if (this.#read?.segment !== segment || this.#offset >= this.#read.from + this.#read.bytes.length) {
      const bytes = Buffer.allocUnsafe(segment.size - this.#offset)
      const filled = this.#files.readAt(segment.path, bytes, this.#offset)
      this.#read = { segment, from: this.#offset, bytes: bytes.subarray(0, filled) }
    }
    const { from, bytes } = this.#read
    const onDamage = (damage: Damage) => {
      if (!segment.isRecovered) this.#onDamage(segment.path, damage)
    }
    const { value: group } = readGroups(bytes, this.#offset - from, onDamage).next()
    this.#offset = group === undefined ? segment.size : from + group.end
    if (group === undefined) return null
    return { segment, offset: from + group.offset, end: this.#offset, group }
  }
}
