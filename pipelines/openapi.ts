/** `GET /openapi.json`, `GET /docs` and `GET /`: the reference. See docs/api-rules.md, "Every endpoint". */
import { defer, mergeMap, type Observable, of } from 'rxjs'
import type { HeaderList, Reply } from '../src/http/handler.ts'

const JSON_HEADERS: HeaderList = [['content-type', 'application/json; charset=utf-8']]
/**
 * The page runs its one script, which styles it and calls this server: nothing is loaded from or sent to other hosts.
 */
const PAGE_HEADERS: HeaderList = [
  ['content-type', 'text/html; charset=utf-8'],
  [
    'content-security-policy',
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src 'self' data: blob:; " +
      "media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ],
]
const SCRIPT_HEADERS: HeaderList = [
  ['content-type', 'text/javascript; charset=utf-8'],
  ['content-encoding', 'gzip'],
  ['cache-control', 'public, max-age=86400'],
]
const HTTP_FOUND = 302

const full = (headers: HeaderList, body: Uint8Array): Observable<Reply> =>
  of({ type: 'full', status: 200, headers, body })

/** Each text in one buffer, which all replies share. */
export interface Reference {
  /** Returns the OpenAPI document, JSON text. */
  readonly document: () => Promise<Buffer>
  /** HTML text. */
  readonly page: Buffer
  /** Reads the script of the page, compressed by gzip. */
  readonly script: () => Promise<Buffer>
}

export const referenceDocument = ({ document }: Reference): Observable<Reply> =>
  defer(document).pipe(mergeMap((json) => full(JSON_HEADERS, json)))

export const referencePage = ({ page }: Reference): Observable<Reply> => full(PAGE_HEADERS, page)

export const referenceScript = ({ script }: Reference): Observable<Reply> =>
  defer(script).pipe(mergeMap((bytes) => full(SCRIPT_HEADERS, bytes)))

/** Leads to the page where a visitor begins. */
export const toPage = (path: string): Observable<Reply> =>
  of({ type: 'full', status: HTTP_FOUND, headers: [['location', path]], body: '' })
