/** What the rest of the service may ask of PostgreSQL about knowledge bases. */
import type {
  KnowledgeBase,
  PageSource,
  SearchResult,
  WikiEntry,
  WikiPage,
} from '../../../schemas/knowledge/wiki.ts'

/** Who reads: the key's account, the member who uses the key, or an agent on behalf of its organization. */
export interface WikiReader {
  readonly accountId: string
  readonly memberId?: string | null
  readonly agentId?: string | null
}

/** A base that the reader may read. */
export interface ReadableBase {
  /** The row's id; empty for the own base as long as nothing was imported into it. */
  readonly id: string
  /** The reader's id for it: `default` for the base of its own account. */
  readonly kbId: string
  readonly name: string
  readonly pages: number
}

/** A page as a file has it, ready to be stored. */
export interface PageDraft {
  /** The file's path below the imported folder, with `/`: by it a page is known again. */
  readonly path: string
  /** SHA-256 over all that the file (and its source file's content) says. */
  readonly hash: Buffer
  readonly title: string
  readonly summary: string
  readonly body: string
  /** The body without its markup: what is searched and what snippets are cut from. */
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
  /** The new and changed pages, each path once. What it throws ends the import, and nothing has changed. */
  readonly drafts: AsyncIterable<readonly PageDraft[]>
  /** Path and hash of every page of the folder, also of those that are no drafts. Read when the drafts have ended. */
  readonly present: ReadonlyMap<string, Buffer>
  /** Whether pages whose files are gone are removed. */
  readonly prune: boolean
  /** Of the new and changed pages, once all of them have been read. */
  onStored?(pages: number, total: number): void
}

export interface ImportOutcome {
  readonly added: number
  readonly changed: number
  readonly unchanged: number
  /** Paths of pages whose files are not there any more: removed with `--prune`, else kept. */
  readonly gone: readonly string[]
  /** What the base has now. */
  readonly pages: number
}

/** What an author would want to know of a base. */
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

export interface Wiki {
  /** @throws Refusal `account_not_found` */
  createBase(accountId: string, name: string): Promise<KnowledgeBase>
  /** The account's own; made when it is first needed. */
  defaultBase(accountId: string): Promise<KnowledgeBase>
  /** @throws Refusal `kb_not_found`, as all that follow with a base's id */
  showBase(baseId: string): Promise<KnowledgeBase>
  /** All, or those of one account. */
  listBases(accountId?: string): Promise<KnowledgeBase[]>
  /** With all its pages. Its sources go from the object store by the sweep, when no link to them opens any more. */
  deleteBase(baseId: string): Promise<KnowledgeBase>
  /** @throws Refusal `reader_not_found`: neither an account nor an agent */
  grantBase(baseId: string, readerId: string): Promise<KnowledgeBase>
  /** @throws Refusal `reader_not_found`: it was not granted to that reader */
  revokeBase(baseId: string, readerId: string): Promise<KnowledgeBase>

  /** Path and hash of every page, so that what has not changed need not be read again. */
  pageHashes(baseId: string): Promise<Map<string, Buffer>>
  /**
   * All or nothing, for readers as well: they see the base as it was until it is as the folder is.
   * @throws Refusal `import_conflict`: another import has changed the base since `pageHashes` was read
   */
  importPages(folder: FolderImport): Promise<ImportOutcome>
  /**
   * Says that these source files are about to be put into the object store. The sweep deletes those that no page came to
   * name, however the import ended.
   */
  announceSources(keys: readonly string[]): Promise<void>
  reportLinks(baseId: string, limit: number): Promise<LinkReport>

  /** The own base first (it is there even before anything was imported), then by name. */
  readableBases(reader: WikiReader): Promise<ReadableBase[]>
  /** Null: no such base, or not for this reader. `kbId` as the reader calls it. */
  findBase(reader: WikiReader, kbId: string): Promise<ReadableBase | null>
  /** Over all of these bases at once. */
  searchPages(
    bases: readonly ReadableBase[],
    query: string,
    range: { readonly limit: number; readonly offset: number },
  ): Promise<SearchPage>
  /** Those of the ids that are in these bases, in the order of the ids. */
  readPages(bases: readonly ReadableBase[], ids: readonly string[]): Promise<WikiPage[]>
  /** The most used first, at most `limit`. */
  listTags(
    bases: readonly ReadableBase[],
    limit: number,
  ): Promise<{ readonly tag: string; readonly count: number }[]>
  /** By title, at most `limit`. */
  pagesByTag(bases: readonly ReadableBase[], tag: string, limit: number): Promise<WikiEntry[]>
  /** Pages of the same base that link to it, by title, at most `limit`. Null: the page is not in these bases. */
  backlinks(bases: readonly ReadableBase[], pageId: string, limit: number): Promise<WikiEntry[] | null>
}
