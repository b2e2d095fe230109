/** What a corpus consists of: pages, and queries with the grades of their pages. */

export type Language = 'en' | 'zh'
export const LANGUAGES: readonly Language[] = ['en', 'zh']
export const KINDS = ['title', 'alias', 'question', 'topic', 'paraphrase', 'typo', 'prefix'] as const
export type Kind = (typeof KINDS)[number]

export interface BenchPage {
  readonly key: string
  readonly language: Language
  readonly title: string
  readonly aliases: readonly string[]
  readonly tags: readonly string[]
  readonly summary: string
  readonly text: string
}

/** Grades by page key: 3 for the page itself, 2 for a page with the answer, 1 for a page about it. */
export type Grades = Readonly<Record<string, number>>

export interface JudgedQuery {
  readonly kind: Kind
  readonly language: Language
  readonly text: string
  readonly grades: Grades
}

/** Related pages and their queries. */
export interface Entry {
  readonly pages: readonly BenchPage[]
  readonly queries: readonly JudgedQuery[]
}
