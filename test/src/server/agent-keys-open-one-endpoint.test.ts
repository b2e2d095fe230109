/** An agent key may call only POST /v1/chat/completions; everything else is rejected. */
import { lastValueFrom } from 'rxjs'
import t from 'tap'
import { errorReply } from '../../../pipelines/calls/errors.ts'
import type { ApiKey, KeyKind } from '../../../schemas/accounts/key.ts'
import type { Endpoint } from '../../../schemas/endpoints/endpoint.ts'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import type { Settlement } from '../../../schemas/events/event.ts'
import { FAILURES, type Failure } from '../../../schemas/failure.ts'
import { generateApiKey } from '../../../src/core/keys/material.ts'
import type { GatewayRequest } from '../../../src/http/handler.ts'
import { errorBody, errorShapeOf } from '../../../src/protocols/error-shape.ts'
import { type RouteDeps, routes } from '../../../src/server/routes/all.ts'
import { apiKey, knownKey, walletView } from '../../support/known-key.ts'

const RAW = generateApiKey()
const OPEN = 'POST /v1/chat/completions'

const credential = (kind: KeyKind, more: Partial<ApiKey> = {}) =>
  knownKey({ key: apiKey({ kind, ...more }), view: walletView('0') })

/** The service's whole table, with nothing behind it but one known key. */
function table(known: object) {
  const refused: Settlement[] = []
  const deps: unknown = {
    credentials: { peek: () => known },
    catalog: () => ({
      resolve: () => null,
      config: { limits: { requests_per_minute: null, concurrency: null } },
    }),
    onRefused: (settlement: Settlement) => void refused.push(settlement),
  }
  return { routes: routes(deps as RouteDeps), refused }
}

const requestOf = (method: string, path: string): GatewayRequest => ({
  requestId: 'req_a',
  method,
  path,
  query: '',
  header: (name) => (name === 'authorization' ? `Bearer ${RAW}` : ''),
  hasHeader: () => false,
  body: Buffer.from('{}'),
  submittedAt: 1,
  startedAt: 0,
})

const targetOf = ({ method, path }: Endpoint) => ({
  name: `${method} ${path}`,
  method,
  path: path.replaceAll(/\{\w+\}/g, 'x'),
})
const KEYED = ENDPOINTS.filter(({ key }) => key !== 'none' && key !== 'management').map(targetOf)
const MANAGEMENT = ENDPOINTS.filter(({ key }) => key === 'management').map(targetOf)

const failureOf = async (all: ReturnType<typeof routes>, method: string, path: string): Promise<unknown> => {
  const handler = all.get(path)?.[method]?.handler
  if (handler === undefined) throw new Error(`nothing answers ${method} ${path}`)
  return lastValueFrom(handler(requestOf(method, path))).then(
    (reply) => new Error(`answered: ${JSON.stringify(reply)}`),
    (error: unknown) => error,
  )
}

t.test('with an agent key every endpoint but one is denied, in the shape of its path', async (t) => {
  t.ok(KEYED.length > 40, 'there are endpoints')
  const { routes: all } = table(credential('agent'))
  for (const { name, method, path } of KEYED) {
    const error = await failureOf(all, method, path)
    const { status, body } = errorReply(path, 'req_a', { onUnforeseen: () => {}, onInternal: () => {} })(
      error,
    )
    if (name === OPEN) {
      t.equal(status, 402, 'the one checks the wallet next')
      continue
    }
    t.equal(status, 403, name)
    t.match((error as Failure).message, OPEN, name)
    t.same(body, errorBody(errorShapeOf(path), error as Failure), name)
    t.match(String(body), /permission_error|PERMISSION_DENIED/, name)
  }
})

t.test('no API key opens the management API', async (t) => {
  t.ok(MANAGEMENT.length > 0)
  const { routes: all } = table(credential('console'))
  for (const { name, method, path } of MANAGEMENT)
    t.match(await failureOf(all, method, path), { code: 'not_signed_in' }, name)
})

t.test('a call that is denied leaves a row where the endpoint is billed', async (t) => {
  const { routes: all, refused } = table(credential('agent'))
  for (const path of ['/v1/messages', '/v1/responses', '/v1/images/generations', '/v1/audio/speech'])
    await failureOf(all, 'POST', path)
  await failureOf(all, 'GET', '/v1/models')
  t.same(
    refused.map(({ protocol, status, error_code, cost }) => [protocol, status, error_code, cost]),
    [
      ['messages', 'rejected', 'permission_denied', '0'],
      ['responses', 'rejected', 'permission_denied', '0'],
      ['images', 'rejected', 'permission_denied', '0'],
      ['speech', 'rejected', 'permission_denied', '0'],
    ],
  )
})

t.test('a bad key is refused first', async (t) => {
  for (const more of [{ enabled: false }, { revokedAt: new Date(0) }, { expiresAt: new Date(1) }]) {
    const { routes: all } = table(credential('agent', more))
    for (const { name, method, path } of KEYED) {
      const error = (await failureOf(all, method, path)) as Failure
      t.equal(error.status, FAILURES.invalid_api_key.status, name)
    }
  }
})

t.test('keys of other kinds are not held up here', async (t) => {
  for (const kind of ['console', 'employee', 'compute'] as const) {
    const { routes: all } = table(credential(kind))
    t.match(await failureOf(all, 'POST', '/v1/messages'), { code: 'quota_exceeded' }, kind)
  }
})
