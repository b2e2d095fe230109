/**
 * The search index of a base, updated in the import's own transaction. Its content depends on the pages alone, not on
 * their order: an incremental index equals one built from scratch.
 */
import { pageImpacts, type SearchableText } from '../../core/search/impact.ts'
import { isFuzzy, letterBits, reverse } from '../../core/search/likeness.ts'
import type { Transaction } from '../transaction.ts'
import { copyLines, textArray } from './copy.ts'
import { entryOf, partsOf, rowOf, sortEntries } from './postings.ts'

interface IndexedPage extends SearchableText {
  /** `wiki_pages.row_id` */
  readonly rowId: bigint
}

export interface PageIndexer {
  /** Puts new and changed pages, any number at a time. */
  put(pages: readonly IndexedPage[]): Promise<void>
  remove(rowIds: readonly bigint[]): Promise<void>
  /** Writes the pages to the tables. Called once, before the commit. */
  finish(): Promise<void>
}

/** So many entries are held in memory (some 16 bytes each); more are merged into the tables meanwhile. */
const MAX_PENDING_ENTRIES = 4_000_000
/** Terms are merged this many at a time. */
const MERGED_TERMS = 2_000

/** Imports into the same base wait for one another from here on. */
export function openIndexer(transaction: Transaction, baseId: string): PageIndexer {
  const added = new Map<string, number[]>()
  const touchedTerms = new Set<string>()
  const removedRows = new Set<number>()
  const addedRows = new Set<number>()
  let pending = 0
  let isEmpty: boolean | null = null

  const begin = async (): Promise<void> => {
    if (isEmpty !== null) return
    await transaction`SELECT FROM knowledge_bases WHERE id = ${baseId} FOR NO KEY UPDATE`
    const [known] = await transaction<[{ empty: boolean }]>`
      SELECT NOT EXISTS (SELECT FROM wiki_terms WHERE base_id = ${baseId}) AS empty`
    isEmpty = known.empty
  }

  const takeOut = async (rowIds: readonly bigint[]): Promise<void> => {
    await begin()
    if (rowIds.some((row) => addedRows.has(Number(row)))) await flush()
    if (isEmpty) return
    const gone = await transaction<{ row_id: bigint; terms: string[] }[]>`
      DELETE FROM wiki_page_terms WHERE base_id = ${baseId} AND row_id = ANY(${rowIds.map(String)}::bigint[])
      RETURNING row_id, terms`
    for (const { row_id, terms } of gone) {
      removedRows.add(Number(row_id))
      for (const term of terms) touchedTerms.add(term)
    }
  }

  const add = (row: number, impacts: ReadonlyMap<string, number>): void => {
    addedRows.add(row)
    pending += impacts.size
    for (const [term, impact] of impacts) {
      const entries = added.get(term)
      if (entries === undefined) added.set(term, [entryOf(row, impact)])
      else entries.push(entryOf(row, impact))
    }
  }

  /** Takes the remaining entries of the terms out of the tables. */
  const takeEntries = async (terms: string[]): Promise<Map<string, number[]>> => {
    const kept = new Map<string, number[]>()
    if (isEmpty) return kept
    await transaction`DELETE FROM wiki_terms WHERE base_id = ${baseId} AND term = ANY(${terms})`
    const parts = await transaction<{ term: string; entries: string }[]>`
      DELETE FROM wiki_postings WHERE base_id = ${baseId} AND term = ANY(${terms})
      RETURNING term, array_to_string(entries, ',') AS entries`
    for (const { term, entries } of parts) {
      const all = kept.get(term) ?? []
      for (const text of entries.split(',')) {
        const entry = Number(text)
        if (!removedRows.has(rowOf(entry))) all.push(entry)
      }
      kept.set(term, all)
    }
    return kept
  }

  const merge = async (terms: string[]): Promise<void> => {
    const merged = await takeEntries(terms)
    for (const term of terms) {
      const entries = merged.get(term) ?? []
      for (const entry of added.get(term) ?? []) entries.push(entry)
      if (entries.length === 0) merged.delete(term)
      else merged.set(term, sortEntries(entries))
    }
    await copyLines(transaction, 'wiki_terms', termLines(baseId, merged))
    await copyLines(transaction, 'wiki_postings', postingLines(baseId, merged))
  }

  const flush = async (): Promise<void> => {
    // In the order of their index.
    const terms = [...new Set([...added.keys(), ...touchedTerms])].sort()
    for (let from = 0; from < terms.length; from += MERGED_TERMS)
      await merge(terms.slice(from, from + MERGED_TERMS))
    isEmpty &&= terms.length === 0
    added.clear()
    touchedTerms.clear()
    removedRows.clear()
    addedRows.clear()
    pending = 0
  }

  return {
    put: async (pages) => {
      await takeOut(pages.map(({ rowId }) => rowId))
      const lines: string[] = []
      for (const page of pages) {
        const impacts = pageImpacts(page)
        add(Number(page.rowId), impacts)
        lines.push(`${page.rowId}\t${baseId}\t${textArray(impacts.keys())}\t{${[...impacts.values()]}}`)
      }
      await copyLines(transaction, 'wiki_page_terms', lines)
      if (pending > MAX_PENDING_ENTRIES) await flush()
    },
    remove: takeOut,
    finish: async () => {
      await begin()
      await flush()
    },
  }
}

function* termLines(baseId: string, terms: ReadonlyMap<string, readonly number[]>): Generator<string> {
  for (const [term, { length }] of terms) {
    const likeness = isFuzzy(term) ? `${letterBits(term)}\t${reverse(term)}` : '\\N\t\\N'
    yield `${baseId}\t${term}\t${length}\t${likeness}`
  }
}

function* postingLines(baseId: string, terms: ReadonlyMap<string, readonly number[]>): Generator<string> {
  for (const [term, entries] of terms) {
    let part = 0
    for (const piece of partsOf(entries)) yield `${baseId}\t${term}\t${part++}\t{${piece}}`
  }
}
