/** `POST /v1/embeddings`: there is no model for it. */
import { Failure } from '../../schemas/failure.ts'
import { printRefusedDetail } from '../../src/core/call-log/call-detail.ts'
import type { Handler } from '../../src/http/handler.ts'
import { type AuthenticatedCall, authenticate, type CallAccess } from '../calls/authenticate.ts'
import { calls, type Stage } from '../calls/pipeline.ts'
import { rateLimit } from '../calls/rate-limit.ts'
import { recordRefusals } from '../calls/refusals.ts'

const HTTP_NOT_FOUND = 404

const refuse = (): Stage<AuthenticatedCall, never> => () => {
  throw new Failure('model_not_found', 'There is no model for embeddings.', { status: HTTP_NOT_FOUND })
}

export const embeddings = (access: CallAccess): Handler =>
  calls(authenticate(access))
    .then(rateLimit(access))
    .then(refuse())
    .onRefused(
      recordRefusals(access, ({ request: { path } }) => ({
        protocol: 'chat-completions',
        model: undefined,
        stream: false,
        detail: printRefusedDetail({ path }),
      })),
    )
