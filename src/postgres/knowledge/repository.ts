/** Knowledge bases: their pages, who may read them, and the search in them. */

import type { KnowledgeBase, WikiEntry, WikiPage } from '../../../schemas/knowledge/wiki.ts'
import type { Listing } from '../listing.ts'
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import {
  createBase,
  defaultBase,
  deleteBase,
  findBase,
  findDefaultBase,
  grantBase,
  listBases,
  listReadableBases,
  revokeBase,
  showBase,
} from './bases.ts'
import { importPages, readPageHashes } from './import.ts'
import { reportLinks } from './link-report.ts'
import { type ListedPage, listBacklinks, listPages, listPagesByTag, listTags, readPages } from './pages.ts'
import { searchPages } from './search.ts'
import { announceSources } from './sources.ts'
import type {
  FolderImport,
  ImportOutcome,
  LinkReport,
  ReadableBase,
  SearchPage,
  WikiReader,
} from './types.ts'

export interface Knowledge {
  createBase(accountId: string, name: string, by?: { readonly isOperator?: boolean }): Promise<KnowledgeBase>
  defaultBase(accountId: string): Promise<KnowledgeBase>
  findDefaultBase(accountId: string): Promise<KnowledgeBase | null>
  showBase(baseId: string): Promise<KnowledgeBase>
  listBases(accountId: string | null, listing?: Listing): Promise<KnowledgeBase[]>
  deleteBase(baseId: string): Promise<KnowledgeBase>
  grantBase(baseId: string, readerId: string): Promise<KnowledgeBase>
  revokeBase(baseId: string, readerId: string): Promise<KnowledgeBase>
  readPageHashes(baseId: string): Promise<Map<string, Buffer>>
  importPages(folder: FolderImport): Promise<ImportOutcome>
  announceSources(keys: readonly string[]): Promise<void>
  reportLinks(baseId: string, limit: number): Promise<LinkReport>
  listReadableBases(reader: WikiReader): Promise<ReadableBase[]>
  findBase(reader: WikiReader, kbId: string): Promise<ReadableBase | null>
  readPages(bases: readonly ReadableBase[], ids: readonly string[]): Promise<WikiPage[]>
  listPages(
    base: ReadableBase,
    { after, limit }: { readonly after: string | null; readonly limit: number },
  ): Promise<ListedPage[]>
  listTags(bases: readonly ReadableBase[], limit: number): Promise<{ tag: string; count: number }[]>
  listPagesByTag(bases: readonly ReadableBase[], tag: string, limit: number): Promise<WikiEntry[]>
  listBacklinks(bases: readonly ReadableBase[], pageId: string, limit: number): Promise<WikiEntry[] | null>
  searchPages(
    bases: readonly ReadableBase[],
    query: string,
    range: { readonly limit: number; readonly offset: number },
  ): Promise<SearchPage>
}

export const openKnowledge = ({ main, searching }: Pools): Knowledge => ({
  ...onPool(main, {
    createBase,
    defaultBase,
    findDefaultBase,
    showBase,
    listBases,
    deleteBase,
    grantBase,
    revokeBase,
  }),
  ...onPool(main, { readPageHashes, importPages, announceSources, reportLinks }),
  ...onPool(
    main,
    { listReadableBases, findBase, readPages, listPages, listTags, listPagesByTag, listBacklinks },
    READ_DEADLINE_MS,
  ),
  ...onPool(searching, { searchPages }, READ_DEADLINE_MS),
})
