/** Metrics and the reason of a 503 are for operators: by their own listener, by a token, or on this machine alone. */
import { firstValueFrom } from 'rxjs'
import t from 'tap'
import { health, metrics, readiness } from '../../pipelines/operator-view.ts'
import type { Failure } from '../../schemas/failure.ts'
import { type OperatorAccess, operatorAccess } from '../../src/core/keys/operator-access.ts'
import type { GatewayRequest, Reply } from '../../src/http/handler.ts'

const TOKEN = 'a-token-for-the-metrics'
const asked = (authorization = '', query = '') =>
  ({ header: () => authorization, query }) as unknown as GatewayRequest

async function answersFor(access: OperatorAccess, authorization?: string) {
  const deps = {
    operatorAccess: () => access,
    unreadiness: () => 'no answer from postgres',
    callRefusal: () => null,
    metricsText: async () => 'measured\n',
  }
  const request = asked(authorization)
  const of = (reply: Reply) => (reply.type === 'full' ? `${reply.status} ${reply.body}` : '')
  return {
    health: of(await firstValueFrom(health(request))),
    readiness: of(await firstValueFrom(readiness(deps)(request))),
    forCalls: of(await firstValueFrom(readiness(deps)(asked(authorization, 'for=calls')))),
    metrics: await firstValueFrom(metrics(deps)(request)).then(of, (failure: Failure) => failure.code),
  }
}

t.test('without a token', async (t) => {
  t.same(await answersFor('open'), {
    health: '200 ok\n',
    readiness: '503 not ready: no answer from postgres\n',
    forCalls: '200 ready\n',
    metrics: '200 measured\n',
  })
  t.same(await answersFor('closed', `Bearer ${TOKEN}`), {
    health: '200 ok\n',
    readiness: '503 not ready\n',
    forCalls: '200 ready\n',
    metrics: 'not_found',
  })
})

t.test('with a token', async (t) => {
  const known = {
    metrics: '200 measured\n',
    readiness: '503 not ready: no answer from postgres\n',
  }
  t.match(await answersFor({ token: TOKEN }, `Bearer ${TOKEN}`), known)
  t.match(await answersFor({ token: TOKEN }, `bearer  ${TOKEN} `), known)
  for (const wrong of ['', TOKEN, `Bearer ${TOKEN}x`, 'Bearer ', `Basic ${TOKEN}`])
    t.match(
      await answersFor({ token: TOKEN }, wrong),
      { metrics: 'invalid_api_key', readiness: /^503 not ready\n$/ },
      `"${wrong}"`,
    )
})

t.test('what opens them', (t) => {
  const machine = { token: null, hasAdminListener: false, isLoopback: true, isPublicProfile: false }
  t.equal(operatorAccess(machine), 'open')
  t.equal(operatorAccess({ ...machine, isLoopback: false }), 'closed')
  t.equal(operatorAccess({ ...machine, hasAdminListener: true }), 'closed')
  t.equal(operatorAccess({ ...machine, isPublicProfile: true }), 'closed', 'a proxy may stand in front')
  t.same(operatorAccess({ ...machine, token: TOKEN, isPublicProfile: true }), { token: TOKEN })
  t.end()
})
