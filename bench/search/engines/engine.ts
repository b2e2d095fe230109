/** A search engine under test. */
import type { BenchPage } from '../corpus/entry.ts'

export interface Subject {
  readonly name: string
  readonly title: string
  /** Stores and indexes the pages. */
  build(pages: readonly BenchPage[]): Promise<void>
  /** Returns the keys of at most ten pages, best first. */
  search(query: string): Promise<readonly string[]>
  /** Returns the bytes of the index without the pages; null where not known. */
  indexBytes(): Promise<number | null>
}
