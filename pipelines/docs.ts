/** `GET /llms.txt` and `GET /docs/{page}`: the docs as plain Markdown, for programs. */
import { map, type Observable } from 'rxjs'
import { Failure } from '../schemas/failure.ts'
import { ROUTES } from '../schemas/routes.ts'
import type { Docs } from '../src/docs/pages.ts'
import type { Handler, HeaderList, Reply } from '../src/http/handler.ts'

const makeHeaders = (type: string): HeaderList => [
  ['content-type', `${type}; charset=utf-8`],
  ['cache-control', 'public, max-age=3600'],
]

export const docsIndex =
  (docs: Observable<Docs>): Handler =>
  () =>
    docs.pipe(
      map(
        ({ index }): Reply => ({
          type: 'full',
          status: 200,
          headers: makeHeaders('text/plain'),
          body: index,
        }),
      ),
    )

/** @throws Failure `not_found` */
export const docsPage =
  (docs: Observable<Docs>): Handler =>
  ({ params }) =>
    docs.pipe(
      map(({ pages }): Reply => {
        const body = pages.get(params.page!)
        if (body === undefined)
          throw new Failure(
            'not_found',
            `There is no page ${params.page}. GET ${ROUTES.listDocs[1]} lists the pages.`,
          )
        return { type: 'full', status: 200, headers: makeHeaders('text/markdown'), body }
      }),
    )
