/**
 * The way of every request that makes media: whoever calls is known and within the limits, the wallet is not empty, the
 * request is read, its model may be called; then, once for each submit intent, it becomes a task, and the client gets
 * what the task has come to. Source: design, "A video"; decisions, "Media".
 */
import { concatMap, defer, finalize, from, isObservable, type Observable, tap } from 'rxjs'
import type { Settlement } from '../../schemas/events/event.ts'
import { Failure } from '../../schemas/failure.ts'
import type { Credits } from '../../schemas/money.ts'
import { TASK_RULES, type TaskKind } from '../../schemas/tasks/task.ts'
import type { Catalog, Model } from '../../src/core/routing/catalog.ts'
import type { GatewayRequest, Handler, Reply } from '../../src/http/handler.ts'
import type { RenderError } from '../../src/http/reply-writer.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import { REFUSED_MODEL_MAX_CHARS, refusedModel } from '../../src/protocols/request/refused-model.ts'
import type { Credentials } from '../accounts/credentials.ts'
import { refusedDetail } from '../chat/forward/call-detail.ts'
import { refusedSettlement } from '../chat/forward/call-record.ts'
import { authenticated, type Caller } from '../stages/authenticate.ts'
import { type IdempotencyDeps, idempotent } from '../stages/idempotency.ts'
import { type RateDeps, withinAccountLimits } from '../stages/rate-limit.ts'
import { recordingRefusals } from '../stages/record-refusals.ts'
import { insufficientBalance, requireBalance, spendCapReached } from '../stages/require-balance.ts'
import type { TaskOrder } from '../tasks/order.ts'
import type { Upload, Uploads } from './inputs/uploads.ts'
import { KEEP_ALIVE_EVERY_MS, keptAlive } from './kept-alive.ts'
import { selectMediaModel } from './select-media.ts'

const MS_PER_SECOND = 1000

export interface MediaCallDeps extends IdempotencyDeps, RateDeps {
  readonly credentials: Credentials
  readonly catalog: () => Catalog
  /** Writes the row of a refused call, and counts it. Must not throw. */
  readonly onRefused: (settlement: Settlement) => void
  /** `submitTask` of the task engine. */
  readonly submit: (order: TaskOrder) => Observable<Task>
  readonly uploads: Pick<Uploads, 'begin'>
  /** What the client gets for an error. */
  readonly renderError: (path: string, requestId: string) => RenderError
}

/** A request that was read, and what its model is. */
export interface Chosen<Params> {
  readonly caller: Caller
  readonly catalog: Catalog
  readonly params: Params
  readonly model: Model
  readonly upload: Upload
}

/** What reading a request may need besides the request. */
export interface Reading {
  readonly upload: Upload
  /** @throws Failure for a model that the key may not call */
  readonly checkModel: (name: string) => void
}

/** What an endpoint decides of a task; the rest follows. */
export type OrderParts = Omit<TaskOrder, 'caller' | 'kind' | 'protocol' | 'model' | 'onTask'>

/** What one endpoint of media is. */
export interface MediaEndpoint<Params> {
  readonly kind: TaskKind
  /** As the call log names the family of endpoints. */
  readonly protocol: string
  /** What the client asks for. @throws Failure that says which field is wrong */
  readonly read: (request: GatewayRequest, reading: Reading) => Params | Promise<Params>
  /** An id or an alias: the client's word, or the one model that the endpoint has. */
  readonly modelOf: string | ((params: Params) => string)
  /** The model that a key's allowlist has to name, where it is not the one above. */
  readonly permittedBy?: string
  /** Tells requests apart whose body was not kept whole; null: by their bodies. */
  readonly requestHash?: (params: Params) => Buffer | null
  /** Checks what needs the model, and says what is to be done at what price. @throws Failure */
  readonly order: (chosen: Chosen<Params>) => OrderParts | Promise<OrderParts>
  /** Whether an answer may be had again by its Idempotency-Key; every one where this is left out. */
  readonly isReplayable?: (params: Params) => boolean
  /** Whether the client of an answer that takes its time is kept from giving up; see `keptAlive`. */
  readonly isKeptAlive?: (params: Params) => boolean
  /** Of a task that is as `order` said that the answer waits for. May throw what the client gets in its place. */
  readonly reply: (task: Task, chosen: Chosen<Params>) => Reply | Promise<Reply> | Observable<Reply>
}

/**
 * Against what is free: the estimates of calls in flight are not. Decisions, "Chat" (pre-charge).
 * @throws Failure `quota_exceeded`
 */
function assertFree({ known: { view, cap } }: Caller, hold: Credits, { config }: Catalog): void {
  const reserved = config.wallet.reserve_in_flight ? view.inFlight : 0n
  if (hold > view.balance - reserved) throw insufficientBalance()
  if (cap !== null && hold > cap.balance - cap.inFlight) throw spendCapReached()
}

interface Refused extends Caller {
  readonly model?: string
}

export function mediaCall<Params>(deps: MediaCallDeps, endpoint: MediaEndpoint<Params>): Handler {
  const { protocol, kind, modelOf } = endpoint

  /** Whoever refuses a known account's call leaves a row behind. Source: decisions, "Chat". */
  const recordRefusal = ({ request, known, model }: Refused, error: unknown) => {
    const failure =
      error instanceof Failure ? error : new Failure('internal_error', 'The call could not be handled.')
    const asked = typeof modelOf === 'string' ? modelOf : refusedModel(request.path, request.body)
    const name = (model ?? asked).slice(0, REFUSED_MODEL_MAX_CHARS)
    const settlement = refusedSettlement(
      { request, known, protocol },
      {
        model: deps.catalog().resolve(name)?.id ?? name,
        stream: false,
        unit_type: TASK_RULES[kind].unitType,
        detail: refusedDetail({ path: request.path }),
      },
      failure,
      Date.now(),
    )
    deps.onRefused(settlement)
  }
  const refusalsOf =
    (caller: Refused) =>
    <T>(values: Observable<T>): Observable<T> =>
      values.pipe(recordingRefusals((error) => recordRefusal(caller, error)))

  const execute = (chosen: Chosen<Params>): Observable<Reply> => {
    const { caller, model, upload } = chosen
    // Once the row is there the task leaves the call's row itself, whatever comes.
    let isTask = false
    const onTask = () => {
      isTask = true
    }
    return defer(async () => endpoint.order(chosen)).pipe(
      tap(({ hold }) => assertFree(caller, hold, deps.catalog())),
      concatMap((parts) => {
        upload.handOver()
        return deps.submit({ ...parts, caller, kind, protocol, model, onTask })
      }),
      recordingRefusals((error) => {
        if (isTask) return
        void upload.discard()
        recordRefusal({ ...caller, model: model.id }, error)
      }),
      concatMap((task) => {
        // An earlier request with this key created the task and stored its files.
        if (task.requestId !== caller.request.requestId) void upload.discard()
        const reply = endpoint.reply(task, chosen)
        return isObservable(reply) ? reply : from(Promise.resolve(reply))
      }),
    )
  }
  const once = idempotent<Chosen<Params>>(deps, {
    claimantOf: ({ caller, params }) => ({
      request: caller.request,
      accountId: caller.known.account.id,
      requestHash: endpoint.requestHash?.(params) ?? undefined,
    }),
    refusalsOf: ({ caller, model }) => refusalsOf({ ...caller, model: model.id }),
    isReplayable: ({ params }) => endpoint.isReplayable?.(params) ?? true,
    work: execute,
  })

  const choose = async (caller: Caller, upload: Upload): Promise<Chosen<Params>> => {
    let model: string | undefined
    try {
      requireBalance(caller)
      const checkModel = (name: string) =>
        void selectMediaModel(deps.catalog(), caller.known, name, endpoint.permittedBy)
      const params = await endpoint.read(caller.request, { upload, checkModel })
      model = typeof modelOf === 'string' ? modelOf : modelOf(params)
      const catalog = deps.catalog()
      return {
        caller,
        upload,
        catalog,
        params,
        model: selectMediaModel(catalog, caller.known, model, endpoint.permittedBy),
      }
    } catch (error) {
      recordRefusal(model === undefined ? caller : { ...caller, model }, error)
      throw error
    }
  }
  const keepAlive = ({ caller: { request }, catalog }: Chosen<Params>, replies: Observable<Reply>) =>
    keptAlive(replies, (error) => deps.renderError(request.path, request.requestId)(error).body, {
      afterMs: catalog.config.images.keep_alive_after_seconds * MS_PER_SECOND,
      everyMs: KEEP_ALIVE_EVERY_MS,
    })
  const answerTo = (chosen: Chosen<Params>): Observable<Reply> =>
    endpoint.isKeptAlive?.(chosen.params) ? keepAlive(chosen, once(chosen)) : once(chosen)
  const answer = (caller: Caller) => {
    const upload = deps.uploads.begin(caller.known.account.id)
    return from(choose(caller, upload)).pipe(
      concatMap(answerTo),
      finalize(() => void upload.end()),
    )
  }
  const withinLimits = withinAccountLimits(deps, { refusalsOf, work: answer })
  return authenticated(deps.credentials, withinLimits, { onDenied: recordRefusal })
}
