/** Storage of the pages of each term in the search index. The tables: migrations/0006_knowledge.sql. */
import { MAX_IMPACT } from '../../core/search/impact.ts'

/** The first part of a term's entries is small: it is read of the most common terms too. */
export const FIRST_PART_ENTRIES = 512
export const NEXT_PART_ENTRIES = 2_048
/** An entry is the page's row times this, and its impact. */
export const ENTRY_BASE = MAX_IMPACT + 1

export const packEntry = (row: number, impact: number): number => row * ENTRY_BASE + impact
export const unpackRow = (entry: number): number => Math.floor(entry / ENTRY_BASE)

/** Sorts entries in place: the most relevant first, then the oldest. */
export function sortEntries(entries: number[]): number[] {
  // As keys, because numbers sort many times as fast as by a function.
  const keys = Float64Array.from(entries, (entry) => {
    const row = unpackRow(entry)
    return (MAX_IMPACT - (entry - row * ENTRY_BASE)) * 2 ** 43 + row
  }).sort()
  for (const [at, key] of keys.entries()) {
    const missing = Math.floor(key / 2 ** 43)
    entries[at] = packEntry(key - missing * 2 ** 43, MAX_IMPACT - missing)
  }
  return entries
}

export function* splitEntries(entries: readonly number[]): Generator<readonly number[]> {
  for (let from = 0, size = FIRST_PART_ENTRIES; from < entries.length; size = NEXT_PART_ENTRIES) {
    yield entries.slice(from, from + size)
    from += size
  }
}
