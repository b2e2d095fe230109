/** The form of a pipeline: stages, each of which adds one fact to the call or refuses it. */
import {
  catchError,
  concatMap,
  defer,
  type MonoTypeOperatorFunction,
  Observable,
  type OperatorFunction,
  of,
} from 'rxjs'
import type { GatewayRequest, Handler, HeaderList, Reply } from '../../src/http/handler.ts'
import type { Claim } from './claim.ts'

/** The teardowns of a call, which run once when it is over. */
export class CallEnds {
  #teardowns: (() => void)[] = []
  #isHeld = false
  #isAnswered = false

  /** Adds a teardown; runs it at once where the call is over. */
  add(teardown: () => void): void {
    if (this.#isAnswered && !this.#isHeld) teardown()
    else this.#teardowns.push(teardown)
  }

  /** Keeps the call open after its client has left, until `release`. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    this.#run()
  }

  /** Called when the call is answered or refused, or its client has left. */
  unsubscribe(): void {
    this.#isAnswered = true
    this.#run()
  }

  #run(): void {
    if (!this.#isAnswered || this.#isHeld) return
    const teardowns = this.#teardowns
    this.#teardowns = []
    for (const teardown of teardowns) teardown()
  }
}

/** A request on its way through a pipeline. No stage changes it: each returns a call with one more fact. */
export interface Call {
  readonly request: GatewayRequest
  /** Run when the call is over: answered, refused, or left by its client, and settled. */
  readonly ends: Pick<CallEnds, 'add' | 'hold' | 'release'>
  /** Headers of every answer to the call, errors included. */
  readonly replyHeaders?: HeaderList
  /** Distinguishes requests under one Idempotency-Key. Where it is absent, the path and the body do. */
  readonly requestHash?: Buffer
  /** The client's own request, where the gateway has written another one. */
  readonly intent?: Pick<GatewayRequest, 'path' | 'body'>
  /** The id of the request that created the task, where an earlier one with the Idempotency-Key did: its row has that id. */
  readonly originalRequestId?: string
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

export type AnyStep = Step<Call, Call>

/** Returns the refusal of an error. A stage that knows more facts than its input throws the refusal itself. */
const refusal = (call: Call, error: unknown): RefusedCall =>
  error instanceof RefusedCall ? error : new RefusedCall(call, error)

/** Makes a stage of one step. As an operator of RxJS, it fails with a RefusedCall. */
export function stage<In extends Call, Out>(step: Step<In, Out>): Stage<In, Out> {
  const operator: OperatorFunction<In, Out | AnsweredCall> = concatMap((call) =>
    defer(() => {
      const next = step(call)
      return next instanceof Observable ? next : of(next)
    }).pipe(
      catchError((error) => {
        throw refusal(call, error)
      }),
    ),
  )
  return Object.assign(operator, { step })
}

/**
 * Runs the steps from `index` on, one after another as plain functions, until one waits: it takes up the rest when it
 * has waited.
 * @throws RefusedCall, as the Observable does
 */
export function run(
  steps: readonly AnyStep[],
  index: number,
  begun: Call,
): AnsweredCall | Observable<AnsweredCall> {
  let call = begun
  for (let at = index; at < steps.length; at++) {
    let next: ReturnType<AnyStep>
    try {
      next = steps[at]!(call)
    } catch (error) {
      throw refusal(call, error)
    }
    if (next instanceof AnsweredCall) return next
    if (next instanceof Observable) return waited(next, steps, at + 1, call)
    call = next
  }
  throw new Error('The last stage of a pipeline must answer the call.')
}

function waited(
  waiting: Observable<Call | AnsweredCall>,
  steps: readonly AnyStep[],
  index: number,
  call: Call,
): Observable<AnsweredCall> {
  return waiting.pipe(
    catchError((error) => {
      throw refusal(call, error)
    }),
    concatMap((next) => {
      const answered = next instanceof AnsweredCall ? next : run(steps, index, next)
      return answered instanceof Observable ? answered : of(answered)
    }),
  )
}
