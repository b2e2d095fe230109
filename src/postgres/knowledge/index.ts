/**
 * The search index of a base, updated in the import's own transaction. Its content depends only on the pages, not on
 * their order: an incremental index equals one built from scratch.
 */
import { pageImpacts, type SearchableText } from '../../core/search/impact.ts'
import { isFuzzy, letterBits, reverse } from '../../core/search/likeness.ts'
import type { Transaction } from '../transaction.ts'
import { copyLines, printTextArray } from './copy.ts'
import { packEntry, sortEntries, splitEntries, unpackRow } from './postings.ts'

interface IndexedPage extends SearchableText {
  /** `wiki_pages.row_id` */
  readonly rowId: bigint
}

/** Entries that are held in memory (some 16 bytes each); more are merged into the tables meanwhile. */
const MAX_PENDING_ENTRIES = 4_000_000
/** Terms are merged this many at a time. */
const MERGED_TERMS = 2_000

export class PageIndexer {
  readonly #transaction: Transaction
  readonly #baseId: string
  readonly #added = new Map<string, number[]>()
  readonly #touchedTerms = new Set<string>()
  readonly #removedRows = new Set<number>()
  readonly #addedRows = new Set<number>()
  #pending = 0
  #isEmpty: boolean | null = null

  /** Imports into the same base wait for one another from the first change on. */
  constructor(transaction: Transaction, baseId: string) {
    this.#transaction = transaction
    this.#baseId = baseId
  }

  /** Puts new and changed pages, any number at a time. */
  async put(pages: readonly IndexedPage[]): Promise<void> {
    await this.remove(pages.map(({ rowId }) => rowId))
    const lines: string[] = []
    for (const page of pages) {
      const impacts = pageImpacts(page)
      this.#add(Number(page.rowId), impacts)
      lines.push(
        `${page.rowId}\t${this.#baseId}\t${printTextArray(impacts.keys())}\t{${[...impacts.values()]}}`,
      )
    }
    await copyLines(this.#transaction, 'wiki_page_terms', lines)
    if (this.#pending > MAX_PENDING_ENTRIES) await this.#flush()
  }

  async remove(rowIds: readonly bigint[]): Promise<void> {
    await this.#begin()
    if (rowIds.some((row) => this.#addedRows.has(Number(row)))) await this.#flush()
    if (this.#isEmpty) return
    const gone = await this.#transaction<{ row_id: bigint; terms: string[] }[]>`
      DELETE FROM wiki_page_terms WHERE base_id = ${this.#baseId} AND row_id = ANY(${rowIds.map(String)}::bigint[])
      RETURNING row_id, terms`
    for (const { row_id, terms } of gone) {
      this.#removedRows.add(Number(row_id))
      for (const term of terms) this.#touchedTerms.add(term)
    }
  }

  /** Writes the pages to the tables. Called once, before the commit. */
  async finish(): Promise<void> {
    await this.#begin()
    await this.#flush()
  }

  async #begin(): Promise<void> {
    if (this.#isEmpty !== null) return
    await this.#transaction`SELECT FROM knowledge_bases WHERE id = ${this.#baseId} FOR NO KEY UPDATE`
    const [known] = await this.#transaction<[{ empty: boolean }]>`
      SELECT NOT EXISTS (SELECT FROM wiki_terms WHERE base_id = ${this.#baseId}) AS empty`
    this.#isEmpty = known.empty
  }

  #add(row: number, impacts: ReadonlyMap<string, number>): void {
    this.#addedRows.add(row)
    this.#pending += impacts.size
    for (const [term, impact] of impacts) {
      const entries = this.#added.get(term)
      if (entries === undefined) this.#added.set(term, [packEntry(row, impact)])
      else entries.push(packEntry(row, impact))
    }
  }

  /** Takes the remaining entries of the terms out of the tables. */
  async #takeEntries(terms: string[]): Promise<Map<string, number[]>> {
    const kept = new Map<string, number[]>()
    if (this.#isEmpty) return kept
    await this.#transaction`DELETE FROM wiki_terms WHERE base_id = ${this.#baseId} AND term = ANY(${terms})`
    const parts = await this.#transaction<{ term: string; entries: string }[]>`
      DELETE FROM wiki_postings WHERE base_id = ${this.#baseId} AND term = ANY(${terms})
      RETURNING term, array_to_string(entries, ',') AS entries`
    for (const { term, entries } of parts) {
      const all = kept.get(term) ?? []
      for (const text of entries.split(',')) {
        const entry = Number(text)
        if (!this.#removedRows.has(unpackRow(entry))) all.push(entry)
      }
      kept.set(term, all)
    }
    return kept
  }

  async #merge(terms: string[]): Promise<void> {
    const merged = await this.#takeEntries(terms)
    for (const term of terms) {
      const entries = merged.get(term) ?? []
      for (const entry of this.#added.get(term) ?? []) entries.push(entry)
      if (entries.length === 0) merged.delete(term)
      else merged.set(term, sortEntries(entries))
    }
    await copyLines(this.#transaction, 'wiki_terms', printTermLines(this.#baseId, merged))
    await copyLines(this.#transaction, 'wiki_postings', printPostingLines(this.#baseId, merged))
  }

  async #flush(): Promise<void> {
    // In the order of their index.
    const terms = [...new Set([...this.#added.keys(), ...this.#touchedTerms])].sort()
    for (let from = 0; from < terms.length; from += MERGED_TERMS)
      await this.#merge(terms.slice(from, from + MERGED_TERMS))
    this.#isEmpty &&= terms.length === 0
    this.#added.clear()
    this.#touchedTerms.clear()
    this.#removedRows.clear()
    this.#addedRows.clear()
    this.#pending = 0
  }
}

function* printTermLines(baseId: string, terms: ReadonlyMap<string, readonly number[]>): Generator<string> {
  for (const [term, { length }] of terms) {
    const likeness = isFuzzy(term) ? `${letterBits(term)}\t${reverse(term)}` : '\\N\t\\N'
    yield `${baseId}\t${term}\t${length}\t${likeness}`
  }
}

function* printPostingLines(
  baseId: string,
  terms: ReadonlyMap<string, readonly number[]>,
): Generator<string> {
  for (const [term, entries] of terms) {
    let part = 0
    for (const piece of splitEntries(entries)) yield `${baseId}\t${term}\t${part++}\t{${piece}}`
  }
}
