/** Embeddings are 404 `model_not_found`, and leave a row. */

import { lastValueFrom } from 'rxjs'
import t from 'tap'
import type { CallAccess } from '../../../pipelines/calls/authenticate.ts'
import { embeddings } from '../../../pipelines/chat/embeddings.ts'
import type { KeyKind } from '../../../schemas/accounts/key.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { GatewayRequest } from '../../../src/http/handler.ts'
import { accountOf, apiKey, knownKey } from '../../support/known-key.ts'

const KEY = `sk-tollgate-${'a'.repeat(64)}`

/** What one request is answered, and the rows that it leaves. */
async function ask(
  body: string,
  { kind = 'console', isLimited = false }: { kind?: KeyKind; isLimited?: boolean } = {},
) {
  const refused: Settlement[] = []
  const known = knownKey({
    key: apiKey({ kind }),
    account: accountOf({ requestsPerMinute: isLimited ? 1 : null }),
  })
  const catalog = {
    config: { limits: { requests_per_minute: null, concurrency: null } },
    resolve: (name: string) => (name === 'an-alias' ? { id: 'sonata-large' } : null),
  }
  const deps = {
    credentials: { peek: () => known },
    catalog: () => catalog,
    limiter: {
      take: (_subjects: object, told: (decisions: object[]) => void) => {
        told([{ refusedBy: 'requests', remainingRequests: 0, remainingConcurrency: 0, resetMs: 1000 }])
        return { close: () => undefined }
      },
    },
    onRefused: (settlement: Settlement) => refused.push(settlement),
  } as unknown as CallAccess
  const request = {
    requestId: 'req_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    path: '/v1/embeddings',
    query: '',
    header: (name: string) => (name === 'x-api-key' ? KEY : ''),
    body: Buffer.from(body),
    submittedAt: Date.now(),
  } as unknown as GatewayRequest
  const answer: unknown = await lastValueFrom(embeddings(deps)(request)).catch((error: unknown) => error)
  return { answer, refused }
}

t.test('whatever is asked, the answer is 404 model_not_found, and a row says so', async (t) => {
  for (const [body, model] of [
    ['{"model":"embed-small","input":"x"}', 'embed-small'],
    ['{"model":"an-alias","input":"x"}', 'sonata-large'],
    ['{"model":7}', ''],
    ['nonsense', ''],
    ['', ''],
  ] as const) {
    const { answer, refused } = await ask(body)
    t.match(answer, { code: 'model_not_found', status: 404, message: /no model for embeddings/ }, body)
    t.match(refused, [
      {
        model,
        account_id: 'acc_a',
        key_id: 'key_a',
        status: 'rejected',
        error_code: 'model_not_found',
        cost: '0',
        channel_id: null,
      },
    ])
  }
})

t.test('so do refusals by a limit, and of a key that may not ask', async (t) => {
  const body = '{"model":"embed-small","input":"x"}'
  const limited = await ask(body, { isLimited: true })
  t.match(limited.answer, { cause: { code: 'rate_limit_exceeded' } })
  t.match(limited.refused, [{ model: 'embed-small', error_code: 'rate_limit_exceeded' }])
  const denied = await ask(body, { kind: 'agent' })
  t.match(denied.answer, { code: 'permission_denied' })
  t.match(denied.refused, [{ model: 'embed-small', error_code: 'permission_denied' }])
})
