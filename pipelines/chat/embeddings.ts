/** `POST /v1/embeddings`: there is no model for it. Source: specification, "Endpoint families" and "Errors". */
import { defer, type MonoTypeOperatorFunction, type Observable } from 'rxjs'
import type { Settlement } from '../../schemas/events/event.ts'
import { Failure } from '../../schemas/failure.ts'
import type { Handler, Reply } from '../../src/http/handler.ts'
import { refusedModel } from '../../src/protocols/request/refused-model.ts'
import type { Credentials } from '../accounts/credentials.ts'
import { authenticated, type Caller } from '../stages/authenticate.ts'
import { type RateDeps, withinAccountLimits } from '../stages/rate-limit.ts'
import { recordingRefusals } from '../stages/record-refusals.ts'
import { refusedDetail } from './forward/call-detail.ts'
import { refusedSettlement } from './forward/call-record.ts'

export interface EmbeddingsDeps extends RateDeps {
  readonly credentials: Credentials
  /** Writes the row of a refused call, and counts it. Must not throw. */
  readonly onRefused: (settlement: Settlement) => void
}

const HTTP_NOT_FOUND = 404

/** Like every refusal of a known account's call, each leaves a row behind. */
export function embeddings(deps: EmbeddingsDeps): Handler {
  const record = (caller: Caller, error: unknown) => {
    const failure =
      error instanceof Failure ? error : new Failure('internal_error', 'The call could not be handled.')
    const { path, body } = caller.request
    const named = refusedModel(path, body)
    const settlement = refusedSettlement(
      { ...caller, protocol: 'chat-completions' },
      {
        model: deps.catalog().resolve(named)?.id ?? named,
        stream: false,
        detail: refusedDetail({ path }),
      },
      failure,
      Date.now(),
    )
    deps.onRefused(settlement)
  }
  const refusalsOf =
    (caller: Caller): MonoTypeOperatorFunction<Reply> =>
    (replies) =>
      replies.pipe(recordingRefusals((error) => record(caller, error)))
  const refuse = (): Observable<Reply> =>
    defer(() => {
      throw new Failure('model_not_found', 'There is no model for embeddings.', { status: HTTP_NOT_FOUND })
    })
  const withinLimits = withinAccountLimits(deps, {
    refusalsOf,
    work: (caller) => refuse().pipe(refusalsOf(caller)),
  })
  return authenticated(deps.credentials, withinLimits, { onDenied: record })
}
