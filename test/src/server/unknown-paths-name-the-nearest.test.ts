/** A 404 of a path that is nearly one names it; any other says where the endpoints are listed. */
import t from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import { findRoute } from '../../../src/http/route.ts'
import { type RouteDeps, routes } from '../../../src/server/routes/all.ts'

const table = routes({} as RouteDeps)

function messageAt(path: string): string {
  const found = findRoute(table, { method: 'POST', path })
  return found instanceof Failure ? found.message : ''
}

const MEANT: readonly (readonly [sent: string, meant: string])[] = [
  ['/chat/completions', '/v1/chat/completions'],
  ['/v1/v1/chat/completions', '/v1/chat/completions'],
  ['/v1/chat/completions/', '/v1/chat/completions'],
  ['//v1/messages', '/v1/messages'],
  ['/V1/models', '/v1/models'],
  ['/v1/response', '/v1/responses'],
  ['/v1/images/generation', '/v1/images/generations'],
  ['/v1/video/generations', '/v1/videos/generations'],
  ['/v1/videos', '/v1/videos/generations'],
  ['/v1/video', '/v1/videos/generations'],
  ['/v1/chat', '/v1/chat/completions'],
  ['/v1/audio', '/v1/audio/speech'],
  ['/mcp/', '/mcp'],
  ['/api/manage/v1/account', '/api/manage/v1/accounts'],
]

t.test('a path that is nearly one', async (t) => {
  for (const [sent, meant] of MEANT)
    t.equal(messageAt(sent), `There is no endpoint at ${sent}. Did you mean "${meant}"?`)
})

t.test('any other path', async (t) => {
  for (const path of ['/nowhere', '/v1', '/v1/files', `/${'x'.repeat(10_000)}`])
    t.equal(
      messageAt(path),
      `There is no endpoint at ${path.slice(0, 200)}. GET /openapi.json lists every endpoint.`,
    )
})
