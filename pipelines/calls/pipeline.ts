/** The form of a pipeline: stages, each of which adds one fact to the call, answers it or refuses it. */
import { catchError, concatMap, type MonoTypeOperatorFunction, map, Observable, of, throwError } from 'rxjs'
import type { GatewayRequest, Handler, HeaderList, Reply } from '../../src/http/handler.ts'
import { type Claim, storeAnswer } from './claim.ts'
import { withHeaders } from './errors.ts'
import { addReplyHeaders, answerUnder, jsonReply } from './replies.ts'

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
  /** Distinguishes requests under one Idempotency-Key, with the path. Where it is absent, the body does. */
  readonly meaning?: object
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
export class Answered {
  readonly call: Call
  readonly replies: Observable<Reply>

  constructor(call: Call, replies: Observable<Reply>) {
    this.call = call
    this.replies = replies
  }
}

/** The call as far as it was known to the stage that refused it, and why. */
export class RefusedCall {
  readonly call: Call
  readonly error: unknown

  constructor(call: Call, error: unknown) {
    this.call = call
    this.error = error
  }
}

/**
 * Returns the next call, or the answer: at once, or in an Observable of one value. Throws what refuses the call; a stage
 * that knows more facts than its input throws a RefusedCall.
 */
export type Stage<In, Out> = (call: In) => Out | Answered | Observable<Out | Answered>

/** A stage that may also check the head of a request before its body is kept. */
export type FirstStage<Out> = Stage<Call, Out> & Pick<Handler, 'admit'>

/** Records a refused call, and returns headers of its answer. Must not throw. */
export type OnRefused = (refused: RefusedCall) => HeaderList

type AnyStage = Stage<Call, Call>
const NO_HEADERS: HeaderList = []

/** Begins the pipeline of an endpoint. */
export const calls = <Out>(first: FirstStage<Out>): Pipeline<Out> =>
  new Pipeline([first as AnyStage], first.admit)

/** The stages of an endpoint; `Out` is the call as the last of them leaves it. */
class Pipeline<Out> {
  readonly #stages: readonly AnyStage[]
  readonly #admit: Handler['admit']

  constructor(stages: readonly AnyStage[], admit: Handler['admit']) {
    this.#stages = stages
    this.#admit = admit
  }

  // biome-ignore lint/suspicious/noThenProperty: `.then()` joins the stages of a pipeline, as the architecture asks; nothing awaits a pipeline, so it never counts as a promise.
  then<Next>(stage: Stage<Out, Next>): Pipeline<Next> {
    return new Pipeline([...this.#stages, stage as unknown as AnyStage], this.#admit)
  }

  /** Ends a pipeline whose refused calls leave no record. */
  toHandler(this: Pipeline<never>): Handler {
    return this.onRefused(() => NO_HEADERS)
  }

  /** Ends a pipeline whose refused calls leave a record. */
  onRefused(this: Pipeline<never>, onRefused: OnRefused): Handler {
    const handle = toHandler(this.#stages, onRefused)
    const admit = this.#admit
    return admit === undefined ? handle : Object.assign(handle, { admit })
  }
}

function toHandler(stages: readonly AnyStage[], onRefused: OnRefused): Handler {
  const answerRefused = (refused: RefusedCall): Answered => {
    const error = withHeaders(refused.error, onRefused(refused))
    return new Answered(
      refused.call,
      throwError(() => error),
    )
  }
  const begin = (call: Call): Answered | Observable<Answered> => {
    try {
      return runStages(stages, 0, call)
    } catch (refused) {
      return answerRefused(refused as RefusedCall)
    }
  }
  return (request) =>
    new Observable((client) => {
      const ends = new CallEnds()
      client.add(ends)
      const answered = begin({ request, ends })
      if (answered instanceof Answered) return void emitReplies(answered).subscribe(client)
      const waiting = answered.subscribe({
        next: (later) => emitReplies(later).subscribe(client),
        error: (refused) => emitReplies(answerRefused(refused)).subscribe(client),
      })
      client.add(waiting)
    })
}

const toRefused = (call: Call, error: unknown): RefusedCall =>
  error instanceof RefusedCall ? error : new RefusedCall(call, error)

/**
 * Runs the stages from `index` on as plain functions, until one waits: it takes up the rest when it has waited. As
 * operators of RxJS they would cost a small call a twentieth of its time.
 * @throws RefusedCall, as the Observable does
 */
function runStages(stages: readonly AnyStage[], index: number, begun: Call): Answered | Observable<Answered> {
  let call = begun
  for (let at = index; at < stages.length; at++) {
    let next: ReturnType<AnyStage>
    try {
      next = stages[at]!(call)
    } catch (error) {
      throw toRefused(call, error)
    }
    if (next instanceof Answered) return next
    if (next instanceof Observable) return waitForStage(next, stages, at + 1, call)
    call = next
  }
  throw new Error('The last stage of a pipeline must answer the call.')
}

const waitForStage = (
  waiting: Observable<Call | Answered>,
  stages: readonly AnyStage[],
  nextIndex: number,
  call: Call,
): Observable<Answered> =>
  waiting.pipe(
    catchError((error) => throwError(() => toRefused(call, error))),
    concatMap((next) => {
      const answered = next instanceof Answered ? next : runStages(stages, nextIndex, next)
      return answered instanceof Observable ? answered : of(answered)
    }),
  )

/** Returns the replies as the client gets them. Those of a usual call pass no operator. */
function emitReplies({ call, replies }: Answered): Observable<Reply> {
  const { claim, keepAlive, replyHeaders, originalRequestId } = call
  let all = replies
  if (claim !== undefined) all = all.pipe(storeAnswer(claim, originalRequestId))
  if (keepAlive !== undefined) all = all.pipe(keepAlive)
  if (replyHeaders !== undefined) all = all.pipe(addReplyHeaders(replyHeaders))
  if (originalRequestId !== undefined) all = all.pipe(answerUnder(originalRequestId))
  return all
}

/** Runs work with an AbortSignal as a cold Observable whose teardown aborts it. */
export const fromAbortable = <T>(work: (signal: AbortSignal) => Promise<T>): Observable<T> =>
  new Observable((subscriber) => {
    const abort = new AbortController()
    work(abort.signal).then(
      (value) => {
        subscriber.next(value)
        subscriber.complete()
      },
      (error: unknown) => subscriber.error(error),
    )
    return () => abort.abort()
  })

export interface Asked<Params> {
  readonly params: Params
}

export interface Found<T> {
  readonly found: T
}

/** Adds what the client asks for. @throws Failure as `read` does */
export const readParams =
  <C extends Call, Params>(read: (call: C) => Params): Stage<C, C & Asked<Params>> =>
  (call) => ({ ...call, params: read(call) })

/** Adds what `work` finds. The signal aborts when the client leaves. @throws Failure as `work` does */
export const find =
  <C extends Call, T>(work: (call: C, signal: AbortSignal) => Promise<T>): Stage<C, C & Found<T>> =>
  (call) =>
    fromAbortable((signal) => work(call, signal)).pipe(map((found) => ({ ...call, found })))

/** Answers with these replies. */
export const answer =
  <C extends Call>(replies: (call: C) => Observable<Reply>): Stage<C, never> =>
  (call) =>
    new Answered(call, replies(call))

/** Answers with one reply. */
export const answerOnce = <C extends Call>(reply: (call: C) => Reply): Stage<C, never> =>
  answer((call: C) => of(reply(call)))

/** Answers with JSON. */
export const answerJson = <C extends Call>(body: (call: C) => object): Stage<C, never> =>
  answerOnce((call: C) => jsonReply(body(call)))
