/** Knowledge bases: their pages, who may read them, and the search in them. */

import type { KnowledgeBase, WikiEntry, WikiPage } from '../../../schemas/knowledge/wiki.ts'
import type { Listing } from '../listing.ts'
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import * as bases from './bases.ts'
import { importPages, readPageHashes } from './import.ts'
import { reportLinks } from './link-report.ts'
import { type ListedPage, listBacklinks, listPages, listPagesByTag, listTags, readPages } from './pages.ts'
import { searchPages } from './search.ts'
import { announceSources } from './sources.ts'
import type * as types from './types.ts'

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
  importPages(folder: types.FolderImport): Promise<types.ImportOutcome>
  announceSources(keys: readonly string[]): Promise<void>
  reportLinks(baseId: string, limit: number): Promise<types.LinkReport>
  listReadableBases(reader: types.WikiReader): Promise<types.ReadableBase[]>
  findBase(reader: types.WikiReader, kbId: string): Promise<types.ReadableBase | null>
  readPages(bases: readonly types.ReadableBase[], ids: readonly string[]): Promise<WikiPage[]>
  listPages(
    base: types.ReadableBase,
    { after, limit }: { readonly after: string | null; readonly limit: number },
  ): Promise<ListedPage[]>
  listTags(bases: readonly types.ReadableBase[], limit: number): Promise<{ tag: string; count: number }[]>
  listPagesByTag(bases: readonly types.ReadableBase[], tag: string, limit: number): Promise<WikiEntry[]>
  listBacklinks(
    bases: readonly types.ReadableBase[],
    pageId: string,
    limit: number,
  ): Promise<WikiEntry[] | null>
  searchPages(
    bases: readonly types.ReadableBase[],
    query: string,
    range: { readonly limit: number; readonly offset: number },
  ): Promise<types.SearchPage>
}

export const openKnowledge = ({ main, searching }: Pools): Knowledge => ({
  ...onPool(main, {
    createBase: bases.createBase,
    defaultBase: bases.defaultBase,
    findDefaultBase: bases.findDefaultBase,
    showBase: bases.showBase,
    listBases: bases.listBases,
    deleteBase: bases.deleteBase,
    grantBase: bases.grantBase,
    revokeBase: bases.revokeBase,
  }),
  ...onPool(main, { readPageHashes, importPages, announceSources, reportLinks }),
  ...onPool(
    main,
    {
      listReadableBases: bases.listReadableBases,
      findBase: bases.findBase,
      readPages,
      listPages,
      listTags,
      listPagesByTag,
      listBacklinks,
    },
    READ_DEADLINE_MS,
  ),
  ...onPool(searching, { searchPages }, READ_DEADLINE_MS),
})
