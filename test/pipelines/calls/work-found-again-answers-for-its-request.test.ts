/** Work that an earlier request with the same Idempotency-Key has begun is answered under the id that its row has. */
import { firstValueFrom, type Observable, of, throwError } from 'rxjs'
import t from 'tap'
import { errorReply } from '../../../pipelines/calls/errors.ts'
import { Answered, calls } from '../../../pipelines/calls/pipeline.ts'
import { UpstreamRefusal } from '../../../pipelines/calls/upstream-error.ts'
import { Failure } from '../../../schemas/failure.ts'
import type { GatewayRequest, Reply } from '../../../src/http/handler.ts'

const HEADERS = [['x-ratelimit-limit', '5']] as const
const request = { requestId: 'req_second', path: '/v1/images/generations' } as GatewayRequest

const answered = (replies: Observable<Reply>, originalRequestId?: string): Promise<Reply> => {
  const more = originalRequestId === undefined ? {} : { originalRequestId }
  const handle = calls<never>(
    (call) => new Answered({ ...call, replyHeaders: HEADERS, ...more }, replies),
  ).toHandler()
  return firstValueFrom(handle(request)).catch(
    errorReply(request.path, request.requestId, { onUnforeseen: t.error, onInternal: () => undefined }),
  )
}

t.test('answers, heads and errors have the id of the first request', async (t) => {
  const full = { type: 'full', status: 200, headers: [], body: '{}' } as const
  const head = { type: 'head', status: 200, headers: [], flow: null } as const
  t.match(await answered(of(full), 'req_first'), { ...full, requestId: 'req_first', headers: HEADERS })
  t.match(await answered(of(head), 'req_first'), { ...head, requestId: 'req_first', headers: HEADERS })
  const failure = throwError(() => new Failure('upstream_error', 'It was not made.'))
  const failed = await answered(failure, 'req_first')
  t.match(failed, { status: 502, requestId: 'req_first', headers: [['content-type'], HEADERS[0]] })
  const limited = await answered(
    throwError(() => new UpstreamRefusal(429, 'Too many.', [])),
    'req_first',
  )
  const own = { status: 429, requestId: 'req_first', headers: { length: 1 } }
  t.match(limited, own, "an upstream's own limit has no headers of ours")
})

t.test('everything else has its own', async (t) => {
  const full = { type: 'full', status: 200, headers: [], body: '{}' } as const
  t.notOk('requestId' in (await answered(of(full))))
  t.notOk('requestId' in (await answered(throwError(() => new Failure('upstream_error', 'No.')))))
})
