/** The pipeline of an endpoint: its stages, run for each request, and what sends their answer or refusal to the client. */
import { catchError, type MonoTypeOperatorFunction, map, Observable, throwError } from 'rxjs'
import type { GatewayRequest, Handler, HeaderList, Reply } from '../../src/http/handler.ts'
import { ErrorWithHeaders, withHeaders } from './errors.ts'
import { storeAnswer } from './idempotency.ts'
import { addReplyHeaders } from './rate-limit.ts'
import {
  AnsweredCall,
  type AnyStep,
  type Call,
  CallEnds,
  type RefusedCall,
  run,
  type Stage,
} from './stage.ts'

/** A last stage, for the calls that another one refused. */
export interface RefusalStage extends MonoTypeOperatorFunction<AnsweredCall> {
  /** Records a refusal. Must not throw. */
  readonly record: (refused: RefusedCall) => void
  /** Returns headers of its answer. */
  readonly headersOf?: ((refused: RefusedCall) => HeaderList) | undefined
}

/** Returns the replies as the client gets them. Those of a usual call pass no operator. */
function repliesTo({ call, replies }: AnsweredCall): Observable<Reply> {
  const { claim, keepAlive, replyHeaders, originalRequestId } = call
  let all = replies
  if (claim !== undefined) all = all.pipe(storeAnswer(claim, originalRequestId))
  if (keepAlive !== undefined) all = all.pipe(keepAlive)
  if (replyHeaders !== undefined) all = all.pipe(addReplyHeaders(replyHeaders))
  if (originalRequestId !== undefined) all = all.pipe(answerUnder(originalRequestId))
  return all
}

/** Answers and errors have the id of the original request. */
const answerUnder =
  (requestId: string): MonoTypeOperatorFunction<Reply> =>
  (replies) =>
    replies.pipe(
      map((reply) => (reply.type === 'data' ? reply : { ...reply, requestId })),
      catchError((error) => throwError(() => new ErrorWithHeaders(error, [], requestId))),
    )

const isRefusalStage = (stage: object): stage is RefusalStage => 'record' in stage

/**
 * Makes the handler of an endpoint. Stages that do not wait run one after another as plain functions: as operators they
 * would cost a small call a twentieth of its time. There is an overload for each length of a pipeline.
 */
export function pipeline<A>(a: Stage<Call, A>, end?: RefusalStage): Handler
export function pipeline<A, B>(a: Stage<Call, A>, b: Stage<A, B>, end?: RefusalStage): Handler
export function pipeline<A, B, C>(
  a: Stage<Call, A>,
  b: Stage<A, B>,
  c: Stage<B, C>,
  end?: RefusalStage,
): Handler
export function pipeline<A, B, C, D>(
  a: Stage<Call, A>,
  b: Stage<A, B>,
  c: Stage<B, C>,
  d: Stage<C, D>,
  end?: RefusalStage,
): Handler
export function pipeline<A, B, C, D, E>(
  a: Stage<Call, A>,
  b: Stage<A, B>,
  c: Stage<B, C>,
  d: Stage<C, D>,
  e: Stage<D, E>,
  end?: RefusalStage,
): Handler
export function pipeline<A, B, C, D, E, F>(
  a: Stage<Call, A>,
  b: Stage<A, B>,
  c: Stage<B, C>,
  d: Stage<C, D>,
  e: Stage<D, E>,
  f: Stage<E, F>,
  end?: RefusalStage,
): Handler
export function pipeline<A, B, C, D, E, F, G, H, I, J, K>(
  a: Stage<Call, A>,
  b: Stage<A, B>,
  c: Stage<B, C>,
  d: Stage<C, D>,
  e: Stage<D, E>,
  f: Stage<E, F>,
  g: Stage<F, G>,
  h: Stage<G, H>,
  i: Stage<H, I>,
  j: Stage<I, J>,
  k: Stage<J, K>,
  end?: RefusalStage,
): Handler
export function pipeline<A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R>(
  a: Stage<Call, A>,
  b: Stage<A, B>,
  c: Stage<B, C>,
  d: Stage<C, D>,
  e: Stage<D, E>,
  f: Stage<E, F>,
  g: Stage<F, G>,
  h: Stage<G, H>,
  i: Stage<H, I>,
  j: Stage<I, J>,
  k: Stage<J, K>,
  l: Stage<K, L>,
  m: Stage<L, M>,
  n: Stage<M, N>,
  o: Stage<N, O>,
  p: Stage<O, P>,
  q: Stage<P, Q>,
  r: Stage<Q, R>,
  end?: RefusalStage,
): Handler
export function pipeline(...all: ReadonlyArray<Stage<never, unknown> | RefusalStage | undefined>): Handler {
  const given = all.filter((one) => one !== undefined)
  const refusals = given.find(isRefusalStage)
  const stages = given.filter((one): one is Stage<never, unknown> => !isRefusalStage(one))
  const steps = stages.map(({ step }) => step as unknown as AnyStep)
  const admit = stages[0]?.admit
  const refused = (refusal: RefusedCall): AnsweredCall => {
    refusals?.record(refusal)
    const headers = refusals?.headersOf?.(refusal) ?? []
    const error = withHeaders(refusal.error, headers)
    return new AnsweredCall(
      refusal.call,
      throwError(() => error),
    )
  }
  const begin = (call: Call): AnsweredCall | Observable<AnsweredCall> => {
    try {
      return run(steps, 0, call)
    } catch (refusal) {
      return refused(refusal as RefusedCall)
    }
  }
  const handle: Handler = (request: GatewayRequest) =>
    new Observable((client) => {
      const ends = new CallEnds()
      client.add(ends)
      const answered = begin({ request, ends })
      if (answered instanceof AnsweredCall) return void repliesTo(answered).subscribe(client)
      const waiting = answered.subscribe({
        next: (later) => repliesTo(later).subscribe(client),
        error: (refusal) => repliesTo(refused(refusal)).subscribe(client),
      })
      client.add(waiting)
    })
  return admit === undefined ? handle : Object.assign(handle, { admit })
}
