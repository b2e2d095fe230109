/** The stages of a request that makes media, in order. */
import { concatMap, from, isObservable, map, type Observable } from 'rxjs'
import type { TaskKind } from '../../schemas/tasks/task.ts'
import { TASK_RULES } from '../../schemas/tasks/task.ts'
import { printRefusedDetail } from '../../src/core/call-log/call-detail.ts'
import { modelAt } from '../../src/core/pricing/changes.ts'
import type { Catalog, Model } from '../../src/core/routing/catalog.ts'
import type { GatewayRequest, Handler, Reply } from '../../src/http/handler.ts'
import type { RenderError } from '../../src/http/reply-form.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import { type AuthenticatedCall, authenticate, type CallAccess } from '../calls/authenticate.ts'
import { assertBalance, assertFunds, requireBalance, requireCovered } from '../calls/balance.ts'
import type { Idempotency } from '../calls/claim.ts'
import { idempotent } from '../calls/idempotency.ts'
import { assertPrice, readMaxPrice } from '../calls/max-price.ts'
import { Answered, calls, type Stage } from '../calls/pipeline.ts'
import { rateLimit } from '../calls/rate-limit.ts'
import { recordRefusals } from '../calls/refusals.ts'
import type { TaskOrder } from '../tasks/order/order.ts'
import type { Upload } from './inputs/uploads.ts'
import { KEEP_ALIVE_EVERY_MS, withKeepAlive } from './kept-alive.ts'
import { selectMediaModel } from './select-media.ts'

const MS_PER_SECOND = 1000

/** What every request that makes media needs: keys, idempotency, and tasks. */
export interface MediaOrders {
  readonly access: CallAccess
  readonly idempotency: Idempotency
  readonly createTask: (order: TaskOrder) => Promise<Task>
  readonly awaitTask: (order: TaskOrder, task: Task) => Observable<Task>
  readonly uploads: { begin(accountId: string): Upload }
  /** Checks the callback address of a task. @throws Failure `invalid_request` */
  readonly checkCallback: (known: AuthenticatedCall['known'], url: string) => Promise<void>
  /** Returns the reply for an error. */
  readonly renderError: (path: string, requestId: string) => RenderError
}

interface UploadingCall extends AuthenticatedCall {
  readonly upload: Upload
}

interface ReadMediaCall<Params> extends UploadingCall {
  readonly catalog: Catalog
  readonly params: Params
}

/** A request that was read, with its model. */
export interface MediaCall<Params> extends ReadMediaCall<Params> {
  readonly model: Model
}

/** What reading a request may need besides the request. */
export interface Reading {
  readonly upload: Upload
  /** @throws Failure for a model that the key may not call */
  readonly checkModel: (name: string) => void
}

/** What an endpoint decides about a task; the rest follows. */
export type OrderParts = Omit<
  TaskOrder,
  'caller' | 'kind' | 'protocol' | 'model' | 'callbackUrl' | 'idempotency'
>

/** The fields that the requests of all endpoints share. */
interface MediaParams {
  readonly callback_url?: string | null | undefined
}

interface OrderedCall<Params> extends MediaCall<Params> {
  readonly order: TaskOrder
}

interface TaskCall<Params> extends OrderedCall<Params> {
  readonly task: Task
}

/** An endpoint that makes media. */
export interface MediaEndpoint<Params> {
  readonly kind: TaskKind
  /** The name of the family of endpoints in the call log. */
  readonly protocol: string
  /** Reads the request. @throws Failure that names the wrong field */
  readonly read: (request: GatewayRequest, reading: Reading) => Params | Promise<Params>
  /** An id or an alias: the one that the client names, or the only model of the endpoint. */
  readonly model: string | ((params: Params) => string)
  /** The model that a key's allowlist must name, if it is not the one above. */
  readonly permittedBy?: string
  /** Returns what distinguishes requests with one Idempotency-Key. Default: what `read` returned. */
  readonly meaning?: (params: Params) => object
  /** Checks what needs the model, and returns the job and its price. @throws Failure */
  readonly order: (call: MediaCall<Params>) => OrderParts | Promise<OrderParts>
  /** Returns whether an answer is replayed for its Idempotency-Key. Default: always. */
  readonly isReplayable?: (params: Params) => boolean
  /** Returns whether a slow answer sends keep-alives; see `withKeepAlive`. */
  readonly isKeptAlive?: (params: Params) => boolean
  /** Replies once the task is in the state that `order` waits for. May throw the client's error. */
  readonly reply: (task: Task, call: MediaCall<Params>) => Reply | Promise<Reply> | Observable<Reply>
}

export const mediaCall = <Params extends MediaParams>(
  orders: MediaOrders,
  endpoint: MediaEndpoint<Params>,
): Handler =>
  calls(authenticate(orders.access))
    .then(rateLimit(orders.access, assertBalance))
    .then(beginUpload(orders))
    .then(requireBalance(orders.idempotency.records))
    .then(readRequest(orders, endpoint))
    .then(selectModel(endpoint))
    .then(idempotent(orders.idempotency))
    .then(orderTask(orders, endpoint))
    .then(requireFunds(orders))
    .then(createTask(orders))
    .then(answerWithTask(orders, endpoint))
    .onRefused(
      recordRefusals(orders.access, (refused: AuthenticatedCall & Partial<MediaCall<Params>>) => ({
        protocol: endpoint.protocol,
        model: refused.model?.id ?? readModelName(endpoint, refused.params),
        stream: false,
        unitType: TASK_RULES[endpoint.kind].unitType,
        detail: printRefusedDetail({ path: refused.request.path }),
      })),
    )

function readModelName<Params>(
  { model }: MediaEndpoint<Params>,
  params: Params | undefined,
): string | undefined {
  if (typeof model === 'string') return model
  return params === undefined ? undefined : model(params)
}

/** Adds the upload of the request's files. Files that no task takes over are removed at the end of the call. */
const beginUpload =
  <C extends AuthenticatedCall>({ uploads }: MediaOrders): Stage<C, C & UploadingCall> =>
  (call: C) => {
    const upload = uploads.begin(call.known.account.id)
    call.ends.add(() => void upload.end())
    return { ...call, upload }
  }

/** Adds the parameters. @throws Failure that names the wrong field */
const readRequest =
  <C extends UploadingCall, Params extends object>(
    { access: { catalog }, renderError }: MediaOrders,
    { read, meaning, isReplayable, isKeptAlive, permittedBy }: MediaEndpoint<Params>,
  ): Stage<C, C & ReadMediaCall<Params>> =>
  (call: C) => {
    const { request, known, upload } = call
    const checkModel = (name: string) => void selectMediaModel(catalog(), known, name, permittedBy)
    const addParams = (params: Params) => {
      const current = catalog()
      const afterMs = current.config.images.keep_alive_after_seconds * MS_PER_SECOND
      const errorBody = (error: unknown) => renderError(request.path, request.requestId)(error).body
      return {
        ...call,
        catalog: current,
        params,
        isReplayable: isReplayable?.(params),
        meaning: meaning?.(params) ?? params,
        keepAlive: isKeptAlive?.(params)
          ? withKeepAlive(errorBody, { afterMs, everyMs: KEEP_ALIVE_EVERY_MS })
          : undefined,
      }
    }
    return from(Promise.resolve(read(request, { upload, checkModel })).then(addParams))
  }

/** Adds the model, with its current price. @throws Failure `model_not_found`, `model_not_allowed` */
const selectModel =
  <C extends ReadMediaCall<Params>, Params>(
    endpoint: MediaEndpoint<Params>,
  ): Stage<C, C & MediaCall<Params>> =>
  (call: C) => {
    const { catalog, known, params, request } = call
    const name = readModelName(endpoint, params)!
    const model = selectMediaModel(catalog, known, name, endpoint.permittedBy)
    return { ...call, model: modelAt(model, request.submittedAt) }
  }

/** Adds the job, its channels and its price. @throws Failure as the endpoint does */
const orderTask =
  <C extends MediaCall<Params>, Params extends MediaParams>(
    { checkCallback }: MediaOrders,
    { kind, protocol, order }: MediaEndpoint<Params>,
  ): Stage<C, C & OrderedCall<Params>> =>
  (call: C) => {
    const { model, known, params, claim } = call
    const callbackUrl = params.callback_url ?? undefined
    const makeOrder = async () => {
      if (callbackUrl !== undefined) await checkCallback(known, callbackUrl)
      const idempotency = claim?.record ?? null
      const parts = { caller: call, kind, protocol, model, callbackUrl, idempotency }
      return { ...call, order: { ...(await order(call)), ...parts } }
    }
    return from(makeOrder())
  }

/** Refuses a call whose hold is above its highest price, or not covered. @throws Failure `invalid_request`, `quota_exceeded` */
const requireFunds = <C extends OrderedCall<Params>, Params>({ idempotency }: MediaOrders): Stage<C, C> =>
  requireCovered(idempotency.records, (call: C) => {
    assertPrice(call, readMaxPrice(call), call.order.hold)
    assertFunds(call, call.order.hold, call.catalog.config)
  })

/** Adds the task, which writes the call's row in the log. @throws Failure as `createWithFiles` does */
const createTask =
  <C extends OrderedCall<Params>, Params>(orders: MediaOrders): Stage<C, C & TaskCall<Params>> =>
  (call: C) =>
    from(createWithFiles(orders.createTask, call.order, call.upload)).pipe(
      map((task) => {
        const isOriginal = task.requestId === call.request.requestId
        return { ...call, task, originalRequestId: isOriginal ? undefined : task.requestId }
      }),
    )

/**
 * Creates a task, which takes over the files of the upload.
 * @throws Failure as `createTask` of the task engine does
 */
export async function createWithFiles(
  createTask: MediaOrders['createTask'],
  order: TaskOrder,
  upload: Upload,
): Promise<Task> {
  upload.handOver()
  try {
    const task = await createTask(order)
    // An earlier request with this key created the task and stored its files.
    if (task.requestId !== order.caller.request.requestId) void upload.discard()
    return task
  } catch (error) {
    void upload.discard()
    throw error
  }
}

/** Answers once the task is in the state that the endpoint waits for. */
const answerWithTask =
  <C extends TaskCall<Params>, Params>(
    { awaitTask }: MediaOrders,
    { reply }: MediaEndpoint<Params>,
  ): Stage<C, never> =>
  (call: C) => {
    const replies = awaitTask(call.order, call.task).pipe(
      concatMap((task) => {
        const answer = reply(task, call)
        return isObservable(answer) ? answer : from(Promise.resolve(answer))
      }),
    )
    return new Answered(call, replies)
  }
