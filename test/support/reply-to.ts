/** What the last stages of an endpoint answer to a caller who has authenticated. */
import { lastValueFrom, type Observable } from 'rxjs'
import type { Caller } from '../../pipelines/calls/authenticate.ts'
import { type Call, calls, type Stage } from '../../pipelines/calls/pipeline.ts'
import type { GatewayRequest, Reply } from '../../src/http/handler.ts'

/** A part of a caller, or of a request: the stages must need no more of it. */
export function replyTo(
  known: Partial<Caller['known']>,
  request: Partial<GatewayRequest>,
  ...stages: ReadonlyArray<Stage<never, unknown>>
): Observable<Reply> {
  const begun = calls<Call>((call) => ({ ...call, known }) as Call)
  const pipeline = stages.reduce((before, stage) => before.then(stage as Stage<Call, Call>), begun)
  const handler = (pipeline as ReturnType<typeof calls<never>>).toHandler()
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
