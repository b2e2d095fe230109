/** Recovers the journal of a process that died: calls without an end, settlements that may not be booked. */
import { type Admission, admission, type Settlement } from '../../schemas/call-log/columns.ts'
import type { JournalLog } from './clock.ts'
import { addCosts } from './costs.ts'
import type { JournalFiles } from './files.ts'
import { type Damage, type Group, parseLines, readGroups } from './format.ts'
import { listSegments, type Segment } from './segments.ts'

export interface RecoveredState<Call> {
  readonly segments: Segment<Call>[]
  /** Admitted and never ended, in the order of admission. */
  readonly interrupted: readonly Admission[]
  /** Settlements not known to be booked, and their cost by account and by key, in 1e-8 credit. */
  readonly unbooked: number
  readonly costs: ReadonlyMap<string, bigint>
  /** The number of the next settlement. */
  readonly next: number
  /** Every settlement numbered below this is booked. */
  readonly booked: number
  /** Half a write at the end of a file: a crash leaves that. */
  readonly tornBytes: number
  /** Damage with whole groups behind it: no crash leaves that. */
  readonly corruptedBytes: number
}

/** Reads all segments of a directory. Damaged places are skipped, logged and counted. */
export function recoverState<Call>(
  files: JournalFiles,
  directory: string,
  log: JournalLog,
): RecoveredState<Call> {
  const segments = listSegments<Call>(files, directory)
  const booked = findLastBooked(files, segments)
  const open = new Map<string, Admission>()
  const costs = new Map<string, bigint>()
  let next = booked
  let tornBytes = 0
  let corruptedBytes = 0
  for (const segment of segments) {
    const reportDamage = (damage: Damage) => {
      if (damage.torn) tornBytes += damage.bytes
      else corruptedBytes += damage.bytes
      logDamage(log, segment.path, damage)
    }
    for (const group of readGroups(files.read(segment.path), 0, reportDamage)) {
      next = Math.max(next, group.first + group.count)
      const isBooked = group.first + group.count <= booked
      if (!isBooked) segment.unbooked += group.count
      readGroup(group, isBooked, { open, costs, log, path: segment.path })
    }
  }
  const unbooked = segments.reduce((sum, segment) => sum + segment.unbooked, 0)
  const interrupted = [...open.values()]
  return { segments, interrupted, unbooked, costs, next, booked, tornBytes, corruptedBytes }
}

/** Returns the mark, which only rises, so that the last whole group has the highest. */
function findLastBooked<Call>(files: JournalFiles, segments: readonly Segment<Call>[]): number {
  for (const segment of segments.toReversed()) {
    let booked = -1
    for (const group of readGroups(files.read(segment.path), 0, () => undefined)) booked = group.booked
    if (booked !== -1) return booked
  }
  return 0
}

interface Found {
  readonly open: Map<string, Admission>
  readonly costs: Map<string, bigint>
  readonly log: JournalLog
  readonly path: string
}

function readGroup(group: Group, isBooked: boolean, found: Found): void {
  const reportUnreadable = (line: string) =>
    found.log.error({ path: found.path, line }, 'Skipped a malformed line of the journal')
  for (const value of parseLines(group.admissions, reportUnreadable)) {
    const parsed = admission.safeParse(value)
    if (parsed.success) found.open.set(parsed.data.request_id, parsed.data)
    else reportUnreadable(JSON.stringify(value))
  }
  for (const value of parseLines(group.settlements, reportUnreadable)) {
    const settlement = value as Settlement
    found.open.delete(settlement.request_id)
    if (!isBooked) addCosts(found.costs, settlement)
  }
}

function logDamage(log: JournalLog, path: string, damage: Damage): void {
  if (damage.torn)
    log.warn({ path, ...damage }, 'Skipped an incomplete write at the end of the journal, as after a crash')
  else log.error({ path, ...damage }, 'Skipped damaged bytes of the journal; the rest is recovered')
}
