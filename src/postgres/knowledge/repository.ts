/** Knowledge bases: their pages, who may read them, and the search in them. */
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import {
  createBase,
  defaultBase,
  deleteBase,
  findBase,
  findDefaultBase,
  grantBase,
  listBases,
  readableBases,
  revokeBase,
  showBase,
} from './bases.ts'
import { importPages, pageHashes } from './import.ts'
import { reportLinks } from './link-report.ts'
import { backlinks, listPages, listTags, pagesByTag, readPages } from './pages.ts'
import { searchPages } from './search.ts'
import { announceSources } from './sources.ts'

export type Wiki = ReturnType<typeof openWiki>

export const openWiki = ({ main, searching }: Pools) => ({
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
  ...onPool(main, { pageHashes, importPages, announceSources, reportLinks }),
  ...onPool(
    main,
    { readableBases, findBase, readPages, listPages, listTags, pagesByTag, backlinks },
    READ_DEADLINE_MS,
  ),
  ...onPool(searching, { searchPages }, READ_DEADLINE_MS),
})
