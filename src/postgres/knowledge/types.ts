/** Readers, pages and imports of knowledge bases. */
import type { PageSource, SearchResult } from '../../../schemas/knowledge/wiki.ts'

/** The reader: the key's account, the member who uses the key, or an agent on behalf of its organization. */
export interface WikiReader {
  readonly accountId: string
  readonly memberId?: string | null
  readonly agentId?: string | null
}

/** A base that the reader may read. */
export interface ReadableBase {
  /** The row's id; empty for the own base as long as nothing was imported into it. */
  readonly id: string
  /** The reader's id for it: `default` for the base of the reader's account. */
  readonly kbId: string
  readonly name: string
  readonly pages: number
}

/** A page as a file has it, ready to be stored. */
export interface PageDraft {
  /** The file's path below the imported folder, with `/`: by it a page is known again. */
  readonly path: string
  /** SHA-256 over the file and its source file's content. */
  readonly hash: Buffer
  readonly title: string
  readonly summary: string
  readonly body: string
  /** The body without its markup: the text of searches and snippets. */
  readonly text: string
  readonly tags: readonly string[]
  readonly aliases: readonly string[]
  readonly links: readonly string[]
  readonly confidence: string
  readonly needsReview: boolean
  readonly source: PageSource | null
}

/** A folder on its way into a base. */
export interface FolderImport {
  readonly baseId: string
  /** The account whose own base the import creates, with its first pages: one that fails leaves no base behind. */
  readonly ownerId?: string | undefined
  /** The new and changed pages, each path once. An error of it ends the import without any change. */
  readonly drafts: AsyncIterable<readonly PageDraft[]>
  /** Path and hash of every page of the folder, also of those that are no drafts. Read when the drafts have ended. */
  readonly present: ReadonlyMap<string, Buffer>
  /** True to remove pages without a file. */
  readonly prune: boolean
  /** The most pages of all bases of the account. Absent: no limit. */
  readonly maxAccountPages?: number | null
  /** Called for the new and changed pages, once all of them have been read. */
  onStored?(pages: number, total: number): void
}

export interface ImportOutcome {
  readonly added: number
  readonly changed: number
  readonly unchanged: number
  /** Paths of pages whose files no longer exist: removed with `--prune`, else kept. */
  readonly gone: readonly string[]
  /** Number of pages in the base now. */
  readonly pages: number
}

/** Faults of a base's links for its author. */
export interface LinkReport {
  /** Links that lead to no page, by path, the first of them. */
  readonly unresolved: { readonly count: number; readonly first: readonly UnresolvedLink[] }
  /** Titles that several pages have: a link leads to the first of them by path. */
  readonly sameTitle: { readonly count: number; readonly first: readonly SameTitle[] }
}

export interface UnresolvedLink {
  readonly path: string
  readonly link: string
}

export interface SameTitle {
  readonly title: string
  readonly paths: readonly string[]
}

export interface SearchPage {
  readonly totalHits: number
  readonly results: SearchResult[]
}
