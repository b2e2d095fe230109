/** Something that searches. */
import type { BenchPage } from '../corpus/corpus.ts'

export interface Subject {
  readonly name: string
  readonly title: string
  /** Takes the pages in and makes them searchable. */
  build(pages: readonly BenchPage[]): Promise<void>
  /** Keys of the best pages, best first, ten at most. */
  search(query: string): Promise<readonly string[]>
  /** Bytes of what is kept for searching, without the pages. Null: not known. */
  indexBytes(): Promise<number | null>
}
