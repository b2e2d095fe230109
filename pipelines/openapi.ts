/**
 * `GET /openapi.json`, `GET /docs` and `GET /`: the reference, made once at the start.
 * See docs/api-rules.md, "Every endpoint".
 */
import { type Observable, of } from 'rxjs'
import type { HeaderList, Reply } from '../src/http/handler.ts'

const JSON_HEADERS: HeaderList = [['content-type', 'application/json; charset=utf-8']]
/** The page brings all it needs: nothing may be fetched, and nothing run. */
const PAGE_HEADERS: HeaderList = [
  ['content-type', 'text/html; charset=utf-8'],
  [
    'content-security-policy',
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
  ],
]
const HTTP_FOUND = 302

const full = (headers: HeaderList, body: string): Reply => ({ type: 'full', status: 200, headers, body })

export interface Reference {
  /** The OpenAPI document, JSON text. */
  readonly document: string
  /** The page, HTML text. */
  readonly page: string
}

export const referenceDocument = ({ document }: Reference): Observable<Reply> =>
  of(full(JSON_HEADERS, document))

export const referencePage = ({ page }: Reference): Observable<Reply> => of(full(PAGE_HEADERS, page))

export const toReference: Observable<Reply> = of({
  type: 'full',
  status: HTTP_FOUND,
  headers: [['location', '/docs']],
  body: '',
})
