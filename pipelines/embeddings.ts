/** `POST /v1/embeddings`: there is no model for it. Source: specification, "Endpoint families" and "Errors". */
import { defer, type Observable } from 'rxjs'
import type { Settlement } from '../schemas/event.ts'
import { Failure } from '../schemas/failure.ts'
import type { Reply } from '../src/http/exchange.ts'
import type { Journal } from '../src/journal/journal.ts'
import { refusedModel } from '../src/protocols/refused-model.ts'
import { refusedDetail } from './call-detail.ts'
import { refusedSettlement } from './call-record.ts'
import type { Caller } from './stages/authenticate.ts'

export interface EmbeddingsDeps {
  readonly journal: Pick<Journal, 'settle'>
  /** Told of each refusal that leaves a row. Must not throw. */
  readonly onRefused: (settlement: Settlement) => void
}

const HTTP_NOT_FOUND = 404

/** Like every refusal of a known account's call it leaves a row behind. */
export const embeddings =
  ({ journal, onRefused }: EmbeddingsDeps) =>
  (caller: Caller): Observable<Reply> =>
    defer(() => {
      const { path, body } = caller.exchange
      const model = refusedModel(path, body)
      const failure = new Failure('model_not_found', 'There is no model for embeddings.', {
        status: HTTP_NOT_FOUND,
      })
      const protocol = 'chat-completions'
      const settlement = refusedSettlement(
        { ...caller, protocol },
        { model, stream: false, detail: refusedDetail({ path }) },
        failure,
        Date.now(),
      )
      journal.settle(null, settlement)
      onRefused(settlement)
      throw failure
    })
