/** `POST /v1/embeddings`: there is no model for it. */
import { Failure } from '../../schemas/failure.ts'
import type { Handler } from '../../src/http/handler.ts'
import { type AuthenticateDeps, type AuthenticatedCall, authenticate } from '../calls/authenticate.ts'
import { pipeline } from '../calls/pipeline.ts'
import { type RateDeps, rateLimit } from '../calls/rate-limit.ts'
import { type RefusalDeps, recordRefusals } from '../calls/record-refusals.ts'
import { type Stage, stage } from '../calls/stage.ts'
import { refusedDetail } from './forward/call-detail.ts'

export interface EmbeddingsDeps extends AuthenticateDeps, RateDeps, RefusalDeps {}

const HTTP_NOT_FOUND = 404

const refuse = (): Stage<AuthenticatedCall, never> =>
  stage(() => {
    throw new Failure('model_not_found', 'There is no model for embeddings.', { status: HTTP_NOT_FOUND })
  })

export const embeddings = (deps: EmbeddingsDeps): Handler =>
  pipeline(
    authenticate(deps),
    rateLimit(deps),
    refuse(),
    recordRefusals(deps, ({ request: { path } }) => ({
      protocol: 'chat-completions',
      model: undefined,
      stream: false,
      detail: refusedDetail({ path }),
    })),
  )
