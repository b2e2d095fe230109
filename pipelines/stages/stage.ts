/** What a pipeline is made of: stages, each of which adds one thing to the call or refuses it. */
import { type MonoTypeOperatorFunction, Observable, type OperatorFunction, type Subscriber } from 'rxjs'
import type { GatewayRequest, Handler, HeaderList, Reply } from '../../src/http/handler.ts'
import type { Claim } from './claim.ts'

/** A request on its way through a pipeline. No stage changes it: each returns a call with one thing more. */
export interface Call {
  readonly request: GatewayRequest
  /** Runs each teardown once when the call is over: answered, refused, or aborted by its client. */
  readonly ends: { add(teardown: () => void): void }
  /** Headers of every answer to the call, errors included. */
  readonly replyHeaders?: HeaderList
  /** Tells requests apart under one Idempotency-Key, where their bodies do not. */
  readonly requestHash?: Buffer
  /** False for an answer that must not be stored under an Idempotency-Key. */
  readonly isReplayable?: boolean
  /** The Idempotency-Key under which the call runs. */
  readonly claim?: Claim
  /** Keeps the connection of a client alive that waits for long. */
  readonly keepAlive?: MonoTypeOperatorFunction<Reply>
}

/** The end of a pipeline's way down: the call, and its replies, not subscribed yet. */
export class AnsweredCall {
  readonly call: Call
  readonly replies: Observable<Reply>

  constructor(call: Call, replies: Observable<Reply>) {
    this.call = call
    this.replies = replies
  }
}

/** The error of a pipeline: the call as far as it was known to the stage that refused it, and why. */
export class RefusedCall {
  readonly call: Call
  readonly error: unknown

  constructor(call: Call, error: unknown) {
    this.call = call
    this.error = error
  }
}

/** Returns the next call, or the answer: at once, or in an Observable of one value. Throws what refuses the call. */
type Step<In, Out> = (call: In) => Out | AnsweredCall | Observable<Out | AnsweredCall>

export interface Stage<In, Out> extends OperatorFunction<In, Out | AnsweredCall> {
  readonly step: Step<In, Out>
  /** Checks the head of a request before its body is kept. */
  readonly admit?: Handler['admit']
}

type AnyStage = Stage<never, unknown>
type AnyStep = Step<Call, Call>

/** Makes a stage of one step. */
export function stage<In extends Call, Out>(step: Step<In, Out>): Stage<In, Out> {
  const operator = operatorOf<In, Out | AnsweredCall>([step as unknown as AnyStep])
  return Object.assign(operator, { step })
}

/** A stage that knows more of the call than it was given throws the refusal itself. */
const refusal = (call: Call, error: unknown): RefusedCall =>
  error instanceof RefusedCall ? error : new RefusedCall(call, error)

/** Runs the steps from `index` on. One that waits takes up the rest when it has waited. */
function run(steps: readonly AnyStep[], index: number, begun: Call, subscriber: Subscriber<unknown>): void {
  let call = begun
  for (let at = index; at < steps.length; at++) {
    let next: ReturnType<AnyStep>
    try {
      next = steps[at]!(call)
    } catch (error) {
      return subscriber.error(refusal(call, error))
    }
    if (next instanceof Observable) return wait(next, steps, at, call, subscriber)
    if (next instanceof AnsweredCall) return finish(next, subscriber)
    call = next
  }
  finish(call, subscriber)
}

function wait(
  next: Observable<Call | AnsweredCall>,
  steps: readonly AnyStep[],
  at: number,
  call: Call,
  subscriber: Subscriber<unknown>,
): void {
  const waiting = next.subscribe({
    next: (later) => {
      if (later instanceof AnsweredCall) finish(later, subscriber)
      else run(steps, at + 1, later, subscriber)
    },
    error: (error) => subscriber.error(refusal(call, error)),
  })
  subscriber.add(waiting)
}

function finish(value: unknown, subscriber: Subscriber<unknown>): void {
  subscriber.next(value)
  subscriber.complete()
}

const operatorOf =
  <In, Out>(steps: readonly AnyStep[]): OperatorFunction<In, Out> =>
  (calls) =>
    new Observable((subscriber) =>
      calls.subscribe({
        next: (call) => run(steps, 0, call as Call, subscriber),
        error: (error) => subscriber.error(error),
      }),
    )

/** The stages of a pipeline as one operator. */
export interface Fused extends OperatorFunction<Call, AnsweredCall> {
  readonly admit?: Handler['admit']
}

/**
 * Fuses stages into one operator with one subscription: stages that do not wait run one after another, as plain
 * functions. One overload for each length of a pipeline that there is.
 */
export function fused<A, B>(a: Stage<Call, A>, b: Stage<A, B>): Fused
export function fused<A, B, C>(a: Stage<Call, A>, b: Stage<A, B>, c: Stage<B, C>): Fused
export function fused<A, B, C, D, E, F>(
  a: Stage<Call, A>,
  b: Stage<A, B>,
  c: Stage<B, C>,
  d: Stage<C, D>,
  e: Stage<D, E>,
  f: Stage<E, F>,
): Fused
export function fused<A, B, C, D, E, F, G, H, I, J, K>(
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
): Fused
export function fused<A, B, C, D, E, F, G, H, I, J, K, L, M, N>(
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
): Fused
export function fused(...stages: readonly AnyStage[]): Fused {
  const operator = operatorOf<Call, AnsweredCall>(stages.map(({ step }) => step as unknown as AnyStep))
  return Object.assign(operator, { admit: stages[0]?.admit })
}
