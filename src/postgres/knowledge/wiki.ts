/** Knowledge bases on one pool of connections. */
import type { Sql } from '../connection.ts'
import { within } from '../errors.ts'
import {
  createBase,
  defaultBase,
  deleteBase,
  findBase,
  grantBase,
  listBases,
  readableBases,
  revokeBase,
  showBase,
} from './bases.ts'
import { importPages, pageHashes } from './import.ts'
import { reportLinks } from './link-report.ts'
import { backlinks, listTags, pagesByTag, readPages } from './pages.ts'
import { announceSources } from './sources.ts'
import type { Wiki } from './types.ts'

/** For what a client's request waits on. */
const READ_DEADLINE_MS = 5_000

export const openWiki = (sql: Sql): Omit<Wiki, 'searchPages'> => ({
  createBase: (accountId, name) => createBase(sql, accountId, name),
  defaultBase: (accountId) => defaultBase(sql, accountId),
  showBase: (baseId) => showBase(sql, baseId),
  listBases: (accountId) => listBases(sql, accountId),
  deleteBase: (baseId) => deleteBase(sql, baseId),
  grantBase: (baseId, readerId) => grantBase(sql, baseId, readerId),
  revokeBase: (baseId, readerId) => revokeBase(sql, baseId, readerId),

  pageHashes: (baseId) => pageHashes(sql, baseId),
  importPages: (folder) => importPages(sql, folder),
  announceSources: (keys) => announceSources(sql, keys),
  reportLinks: (baseId, limit) => reportLinks(sql, baseId, limit),

  readableBases: (reader) => within(READ_DEADLINE_MS, readableBases(sql, reader)),
  findBase: (reader, kbId) => within(READ_DEADLINE_MS, findBase(sql, reader, kbId)),
  readPages: (bases, ids) => within(READ_DEADLINE_MS, readPages(sql, bases, ids)),
  listTags: (bases, limit) => within(READ_DEADLINE_MS, listTags(sql, bases, limit)),
  pagesByTag: (bases, tag, limit) => within(READ_DEADLINE_MS, pagesByTag(sql, bases, tag, limit)),
  backlinks: (bases, pageId, limit) => within(READ_DEADLINE_MS, backlinks(sql, bases, pageId, limit)),
})
