/** What the last stages of an endpoint answer to a caller who has authenticated. */
import { lastValueFrom, type Observable } from 'rxjs'
import type { Caller } from '../../pipelines/calls/authenticate.ts'
import { pipeline } from '../../pipelines/calls/pipeline.ts'
import { type Call, type Stage, stage } from '../../pipelines/calls/stage.ts'
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

/** Returns what an endpoint answers in one piece: its status, its headers, and its body as text. */
export async function fullReply(reply$: Observable<Reply>) {
  const reply = await lastValueFrom(reply$)
  if (reply.type !== 'full') throw new Error(`a reply of type ${reply.type}`)
  return { status: reply.status, headers: new Map(reply.headers), body: String(reply.body) }
}

/** Returns the JSON that an endpoint answers with status 200. */
export async function jsonOf(reply$: Observable<Reply>) {
  const { status, body } = await fullReply(reply$)
  if (status !== 200) throw new Error(`an answer with status ${status}`)
  return JSON.parse(body)
}
