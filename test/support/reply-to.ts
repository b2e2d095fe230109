/** What the last stages of an endpoint answer to a caller who has authenticated. */
import type { Observable } from 'rxjs'
import type { Caller } from '../../pipelines/stages/authenticate.ts'
import { pipeline } from '../../pipelines/stages/pipeline.ts'
import { type Call, type Stage, stage } from '../../pipelines/stages/stage.ts'
import type { GatewayRequest, Handler, Reply } from '../../src/http/handler.ts'

/** A part of a caller, or of a request: the stages must need no more of it. */
export function replyTo(
  known: Partial<Caller['known']>,
  request: Partial<GatewayRequest>,
  ...stages: ReadonlyArray<Stage<never, unknown>>
): Observable<Reply> {
  const authenticated = stage((call: Call) => ({ ...call, known }))
  const handler = (pipeline as (...all: readonly object[]) => Handler)(authenticated, ...stages)
  return handler(request as GatewayRequest)
}
