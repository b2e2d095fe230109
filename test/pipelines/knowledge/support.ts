/** The knowledge endpoints on a real database and a real object store, without the rest of the service. */

import type { Test } from 'tap'
import { makeErrorReply } from '../../../pipelines/calls/errors.ts'
import type { PageSource } from '../../../schemas/knowledge/wiki.ts'
import { linkKey } from '../../../src/core/media/file-link.ts'
import { Credentials } from '../../../src/credentials/credentials.ts'
import { MAX_BODY_BYTES } from '../../../src/http/request-reader.ts'
import { GatewayServer } from '../../../src/http/server.ts'
import { openMcp } from '../../../src/mcp/open.ts'
import type { NewKey } from '../../../src/postgres/accounts/keys.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { isAway } from '../../../src/postgres/errors.ts'
import type { PageDraft } from '../../../src/postgres/knowledge/types.ts'
import { clientLimits, HOST } from '../../src/http/support.ts'
import { draft, importAll } from '../../src/postgres/knowledge/wiki-support.ts'
import { startDatabase } from '../../src/postgres/support.ts'
import { folderStore, MASTER_KEY, PUBLIC_URL } from '../../src/storage/support.ts'
import { emptyRouter } from '../../support/empty-routes.ts'

export const WIKI = '/api/v1/ext/wiki'

/** What no test here is about. */
const GRACE_MS = 60_000

export interface Got {
  readonly status: number
  readonly text: string
  readonly json: unknown
}

export interface TestWiki {
  readonly database: Database
  readonly baseUrl: string
  /** Origins of pages that may call `/mcp`. */
  readonly allowedOrigins: string[]
  /** Errors that nobody foresaw. */
  readonly unforeseen: unknown[]
  newReader(more?: Partial<NewKey>): Promise<{ accountId: string; key: string }>
  get(key: string | null, path: string): Promise<Got>
  /** Into the account's own base; answers the ids of its pages, by title. */
  write(accountId: string, pages: readonly PageDraft[], baseId?: string): Promise<Map<string, string>>
  putSource(name: string, content: string, mediaType: string): Promise<PageSource>
  /** Follows a link to a file. */
  open(link: string): Promise<Response>
}

export { draft }

/** `now` is the clock of those who make links; readers have the real one. */
export async function startWiki(t: Test, now: () => number = Date.now): Promise<TestWiki> {
  const { database, sql } = await startDatabase(t)
  const { store } = await folderStore(t)
  const unforeseen: unknown[] = []
  const allowedOrigins = ['https://app.example.com']
  const credentials = new Credentials({
    database,
    graceMs: () => GRACE_MS,
    recoveredCost: () => 0n,
    isAway,
    onFault() {},
  })
  const access = { credentials, onSecretUsed: () => undefined }
  const router = emptyRouter(access, {
    wiki: {
      wiki: database.knowledge,
      files: store,
      openMcp: openMcp('1.2.3'),
      allowedOrigins: () => allowedOrigins,
      now,
    },
    files: { files: store, fileLinkKey: linkKey(MASTER_KEY) },
  })
  const server = new GatewayServer({
    clients: clientLimits(),
    maxTextBytes: () => MAX_BODY_BYTES,
    router,
    renderError: (path, requestId) =>
      makeErrorReply(path, requestId, {
        onUnforeseen: (error) => unforeseen.push(error),
        onInternal: () => undefined,
      }),
  })
  const baseUrl = `http://${HOST}:${await server.listen(HOST, 0)}`
  t.teardown(() => server.close())

  return {
    database,
    baseUrl,
    allowedOrigins,
    unforeseen,
    async newReader(more = {}) {
      const { account } = await database.accounts.create({ name: 'reader', credit: 0n })
      const { raw } = await database.keys.create({ name: 'reader', accountId: account.id, ...more })
      return { accountId: account.id, key: raw }
    },
    async get(key, path) {
      const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` }
      const response = await fetch(baseUrl + path, { headers })
      const text = await response.text()
      return { status: response.status, text, json: JSON.parse(text) }
    },
    async write(accountId, pages, baseId) {
      const id = baseId ?? (await database.knowledge.defaultBase(accountId)).id
      await importAll(database, id, pages)
      const rows = await sql<{ id: string; title: string }[]>`
        SELECT id, title FROM wiki_pages WHERE base_id = ${id}`
      return new Map(rows.map((row) => [row.title, row.id]))
    },
    async putSource(name, content, mediaType) {
      const r2_key = `sources/kb_test/${name}`
      await store.put(r2_key, Buffer.from(content), { mediaType, maxBytes: content.length })
      return { r2_key, filename: name, locator: 'page 3', compiled_at: null, model: null }
    },
    open: (link) => fetch(link.replace(PUBLIC_URL, baseUrl)),
  }
}
