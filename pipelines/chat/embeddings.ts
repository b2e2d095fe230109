/** `POST /v1/embeddings`: there is no model for it. */
import { Failure } from '../../schemas/failure.ts'
import { refusedDetail } from '../../src/core/call-log/call-detail.ts'
import type { Handler } from '../../src/http/handler.ts'
import { type AuthenticateDeps, type AuthenticatedCall, authenticate } from '../calls/authenticate.ts'
import { calls, type Stage } from '../calls/pipeline.ts'
import { type RateDeps, rateLimit } from '../calls/rate-limit.ts'
import { type RefusalDeps, recordRefusals } from '../calls/refusals.ts'

export interface EmbeddingsDeps extends AuthenticateDeps, RateDeps, RefusalDeps {}

const HTTP_NOT_FOUND = 404

const refuse = (): Stage<AuthenticatedCall, never> => () => {
  throw new Failure('model_not_found', 'There is no model for embeddings.', { status: HTTP_NOT_FOUND })
}

export const embeddings = (deps: EmbeddingsDeps): Handler =>
  calls(authenticate(deps))
    .then(rateLimit(deps))
    .then(refuse())
    .onRefused(
      recordRefusals(deps, ({ request: { path } }) => ({
        protocol: 'chat-completions',
        model: undefined,
        stream: false,
        detail: refusedDetail({ path }),
      })),
    )
