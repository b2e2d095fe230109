/** Routes of pages for people: the console, and the reference of all endpoints. */
import { Buffer } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { defer, shareReplay } from 'rxjs'
import { type Console, consolePage, isAtHost } from '../../../pipelines/console.ts'
import { docsIndex, docsPage } from '../../../pipelines/docs.ts'
import {
  type Reference,
  referenceDocument,
  referencePage,
  referenceScript,
  toPage,
} from '../../../pipelines/openapi.ts'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import { ROUTES } from '../../../schemas/routes.ts'
import { readDocs } from '../../docs/pages.ts'
import type { Handler } from '../../http/handler.ts'
import type { Route } from '../../http/router.ts'
import { openApiDocument } from '../../openapi/openapi.ts'
import { PAGE } from '../../openapi/page.ts'
import { VERSION } from '../version.ts'
import { type Family, OPEN, UNCOUNTED } from './options.ts'

/** Everything in one file, which `npm install` puts there. */
const SCRIPT = new URL('../../openapi/built/standalone.js', import.meta.url)

const makeDocument = async () =>
  Buffer.from(JSON.stringify(await openApiDocument(ENDPOINTS, VERSION, () => setImmediate())))
const readScript = async () => promisify(gzip)(await readFile(SCRIPT))
let document: Promise<Buffer> | undefined
let script: Promise<Buffer> | undefined

/** Made when someone wants it first, then kept: few do, and it is a fifth of the CPU of a gateway's start. */
export const REFERENCE: Reference = {
  document: () => (document ??= makeDocument()),
  page: Buffer.from(PAGE),
  script: () => (script ??= readScript()),
}

/** Read when someone asks first, then kept. */
const docs = defer(readDocs).pipe(shareReplay({ bufferSize: 1, refCount: false }))

const PAGE_OPTIONS = { ...UNCOUNTED, isSameOrigin: true } as const

/** `options` are those of the listener. */
export function referenceRoutes(options: Omit<Route, 'handler'>) {
  return {
    readReference: { handler: () => referenceDocument(REFERENCE), ...options },
    openReference: { handler: () => referencePage(REFERENCE), ...options },
    readReferenceScript: { handler: () => referenceScript(REFERENCE), ...options },
    listDocs: { handler: docsIndex(docs), ...options },
    readDocsPage: { handler: docsPage(docs), ...options },
  } satisfies Family
}

/** @param served null: the process serves no console */
export function consoleRoutes(served: Console | null) {
  const openFirstPage: Handler = (request) =>
    toPage(ROUTES[served && isAtHost(served, request) ? 'openConsole' : 'openReference'][1])
  const page = served && { handler: consolePage(served), ...PAGE_OPTIONS }
  return {
    ...referenceRoutes(OPEN),
    openFirstPage: { handler: openFirstPage, ...OPEN },
    openConsole: page,
    openConsolePage: page,
  } satisfies Family
}
