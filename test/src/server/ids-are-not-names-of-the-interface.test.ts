/** What the public interface calls at `/v1/responses/…` and this one does not serve is no endpoint, and no id either. */
import t from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import { findRoute } from '../../../src/http/route.ts'
import { type RouteDeps, routes } from '../../../src/server/routes/all.ts'

const table = routes({} as RouteDeps)

t.test('input_tokens and compact', async (t) => {
  for (const name of ['input_tokens', 'compact'])
    for (const method of ['POST', 'GET', 'DELETE']) {
      const found = findRoute(table, { method, path: `/v1/responses/${name}` })
      t.match(found, { code: 'not_found', message: `There is no endpoint at /v1/responses/${name}.` })
    }
})

t.test('any other name is an id', async (t) => {
  for (const id of ['resp_1', 'input_tokens_1'])
    t.notOk(findRoute(table, { method: 'GET', path: `/v1/responses/${id}` }) instanceof Failure)
})
