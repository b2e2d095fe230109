/**
 * A segment file is groups, one after the other. What one turn of the event loop brought is one group:
 *
 *     bytes  0-3   magic, which no UTF-8 text can hold: a reader finds the next group behind damage
 *            4-7   CRC-32 of everything behind it
 *            8-11  length of the admissions, one JSON object a line
 *           12-15  length of the settlements, one JSON object a line: as they are, a message's payload
 *           16-19  number of settlements
 *           20-27  number, since the journal began, of the first settlement (float64)
 *           28-35  every settlement numbered below this is booked (float64)
 *           36-    admissions, then settlements
 *
 * Integers and floats are little endian.
 */
import { Buffer } from 'node:buffer'
import { crc32 } from 'node:zlib'

const GROUP_HEADER_BYTES = 36
const MAGIC = Buffer.from([0x54, 0x47, 0x4a, 0xff])
const MAGIC_WORD = MAGIC.readUInt32LE(0)
/** UTF-8 needs at most this many bytes for one UTF-16 code unit. */
const UTF8_MAX_BYTES = 3

interface GroupText {
  /** Lines, each with its line end. */
  readonly admissions: string
  readonly settlements: string
  readonly count: number
  readonly first: number
  readonly booked: number
}

export interface Group {
  readonly offset: number
  /** Index of the next group. */
  readonly end: number
  readonly admissions: Buffer
  readonly settlements: Buffer
  readonly count: number
  readonly first: number
  readonly booked: number
}

/** Bytes between groups that are none: torn by a crash when nothing whole follows, corrupted otherwise. */
export interface Damage {
  readonly offset: number
  readonly bytes: number
  readonly torn: boolean
}

/** Returns the most bytes that `encodeGroup` may need. */
export function groupBound(text: GroupText): number {
  return GROUP_HEADER_BYTES + UTF8_MAX_BYTES * (text.admissions.length + text.settlements.length)
}

/** Writes a group at the start of `target`; answers where its settlements begin and where it ends. */
export function encodeGroup(target: Buffer, text: GroupText): { settlementsAt: number; end: number } {
  const settlementsAt = GROUP_HEADER_BYTES + target.write(text.admissions, GROUP_HEADER_BYTES, 'utf8')
  const end = settlementsAt + target.write(text.settlements, settlementsAt, 'utf8')
  target.writeUInt32LE(MAGIC_WORD, 0)
  target.writeUInt32LE(settlementsAt - GROUP_HEADER_BYTES, 8)
  target.writeUInt32LE(end - settlementsAt, 12)
  target.writeUInt32LE(text.count, 16)
  target.writeDoubleLE(text.first, 20)
  target.writeDoubleLE(text.booked, 28)
  target.writeUInt32LE(crc32(target.subarray(8, end)), 4)
  return { settlementsAt, end }
}

/** Returns the whole, undamaged group that begins at `offset`, or null. */
function groupAt(bytes: Buffer, offset: number): Group | null {
  const payloadAt = offset + GROUP_HEADER_BYTES
  if (payloadAt > bytes.length || bytes.readUInt32LE(offset) !== MAGIC_WORD) return null
  const settlementsAt = payloadAt + bytes.readUInt32LE(offset + 8)
  const end = settlementsAt + bytes.readUInt32LE(offset + 12)
  if (end > bytes.length) return null
  if (bytes.readUInt32LE(offset + 4) !== crc32(bytes.subarray(offset + 8, end))) return null
  return {
    offset,
    end,
    admissions: bytes.subarray(payloadAt, settlementsAt),
    settlements: bytes.subarray(settlementsAt, end),
    count: bytes.readUInt32LE(offset + 16),
    first: bytes.readDoubleLE(offset + 20),
    booked: bytes.readDoubleLE(offset + 28),
  }
}

/** Yields every whole group from `offset` on. Damaged bytes are skipped and reported. */
export function* readGroups(
  bytes: Buffer,
  offset: number,
  damaged: (damage: Damage) => void,
): Generator<Group, void, undefined> {
  let at = offset
  while (at < bytes.length) {
    let group = groupAt(bytes, at)
    const damageAt = at
    while (group === null && at !== -1) {
      at = bytes.indexOf(MAGIC, at + 1)
      if (at !== -1) group = groupAt(bytes, at)
    }
    if (group === null) {
      damaged({ offset: damageAt, bytes: bytes.length - damageAt, torn: true })
      return
    }
    if (group.offset > damageAt) damaged({ offset: damageAt, bytes: group.offset - damageAt, torn: false })
    yield group
    at = group.end
  }
}

/** Parses the lines of a section. A line that is no JSON object is reported and skipped. */
export function parseLines(section: Buffer, unreadable: (line: string) => void): unknown[] {
  if (section.length === 0) return []
  const values: unknown[] = []
  for (const line of section.toString('utf8').split('\n')) {
    if (line === '') continue
    try {
      values.push(JSON.parse(line))
    } catch {
      unreadable(line)
    }
  }
  return values
}
