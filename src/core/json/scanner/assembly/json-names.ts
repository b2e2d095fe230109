/**
 * Finds names of a JSON text that two readers could take for different fields: while the scanner reads, at the cost of a
 * hash for each name. `src/core/json/names.ts` has the exact rule, which decides wherever this one finds a name not plain.
 */

/** Hashes of the names in the objects that are open, four bytes each, the innermost object's last. */
export const OPEN_NAMES: usize = 16384
const OPEN_NAMES_END: usize = OPEN_NAMES + 4096
/** The place for sets of known names. */
export const KNOWN: usize = OPEN_NAMES_END
export const KNOWN_END: usize = 65536

/** The set of names that must not be written otherwise; 0 where names are not checked. */
let known: usize = 0
/** The place of the next hash of a name. */
let nextName: usize = OPEN_NAMES

/** Starts on a text. `set` is 0 where names are not checked. */
export function startNames(set: usize): void {
  known = set
  nextName = OPEN_NAMES
}

/** Returns the place where the names of the object that opens now begin; 0 where names are not checked. */
export function namesSoFar(): usize {
  return known === 0 ? 0 : nextName
}

/** Forgets the names of the object whose names began at `first`. */
export function leaveObject(first: usize): void {
  if (first !== 0) nextName = first
}

/** Whether `length` bytes, at least one, are the same in both places. */
export function isSame(one: usize, other: usize, length: usize): bool {
  let left = length
  let at: usize = 0
  while (left > 8) {
    if (load<u64>(one + at) !== load<u64>(other + at)) return false
    at += 8
    left -= 8
  }
  // Shifts out the bytes after the end.
  return (load<u64>(one + at) ^ load<u64>(other + at)) << (64 - 8 * <u64>left) === 0
}

/** A one in each of eight bytes. */
const ONES: u64 = <u64>-1 / 0xff
const LOWER_CASE: u64 = ONES * 0x20
const TOP_BITS: u64 = ONES * 0x80
const MULTIPLIER: u64 = 0x1e3779b97f4a7d

/** Equal for names that differ only in the case of their letters; 0 for a name that is not all printable ASCII. */
function nameHash(start: usize, length: usize): u32 {
  let hash: u64 = <u64>length
  let left = length
  let at = start
  while (left > 0) {
    const count = min<usize>(left, 8)
    const word = load<u64>(at) & (<u64>-1 >> (64 - 8 * <u64>count))
    // The last printable character is 0x7e: one more than 0x7f has the top bit too.
    if (((word | (word + ONES)) & TOP_BITS) !== 0) return 0
    hash = (hash ^ (word | LOWER_CASE)) * MULTIPLIER
    hash ^= hash >> 32
    at += count
    left -= count
  }
  return <u32>hash | 1
}

/** Whether a known name is written in other letters here. */
function isKnownOtherwise(start: usize, length: usize, hash: u32): bool {
  const mask = load<u32>(known)
  let slot = hash & mask
  while (true) {
    const entry = <usize>load<u32>(known + 4 + ((<usize>slot) << 2))
    if (entry === 0) return false
    if (load<u32>(entry) === hash)
      return <usize>load<u32>(entry, 4) !== length || !isSame(start, entry + 8, length)
    slot = (slot + 1) & mask
  }
}

/**
 * Whether no reader can take the name for another one: it is printable ASCII, none of the names of its object since
 * `first` is the same but for case, and no known name is. Equal hashes count as equal names: the caller then looks again.
 */
export function isPlainName(start: usize, length: usize, first: usize): bool {
  const hash = nameHash(start, length)
  if (hash === 0 || nextName === OPEN_NAMES_END) return false
  for (let at = first; at < nextName; at += 4) if (load<u32>(at) === hash) return false
  store<u32>(nextName, hash)
  nextName += 4
  return !isKnownOtherwise(start, length, hash)
}

/**
 * Adds the name of `length` bytes at `name` to a set; `entry` is a free place. Only for a set with free slots. A set is
 * the number of its slots, a power of two, less one; and its slots, all zero at first.
 */
export function know(set: usize, entry: usize, name: usize, length: u32): void {
  const hash = nameHash(name, length)
  store<u32>(entry, hash)
  store<u32>(entry, length, 4)
  memory.copy(entry + 8, name, length)
  const mask = load<u32>(set)
  let slot = hash & mask
  while (load<u32>(set + 4 + ((<usize>slot) << 2)) !== 0) slot = (slot + 1) & mask
  store<u32>(set + 4 + ((<usize>slot) << 2), <u32>entry)
}
