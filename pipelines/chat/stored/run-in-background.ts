/**
 * Makes a task of a call that asks for its answer in the background: its estimate is held, a task worker submits and
 * polls it, and its usage is charged once at its end. Any other call passes. See docs/api-rules.md, "Responses".
 */
import { Readable } from 'node:stream'
import { concatMap, from, map } from 'rxjs'
import type { JobOf } from '../../../schemas/media/job.ts'
import { INPUT_LIFETIME_MS, type StoredFileRef } from '../../../schemas/media/job.ts'
import { laterBytesIn } from '../../../src/core/pricing/estimate.ts'
import { toKeptPrice } from '../../../src/core/pricing/kept-price.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { PLAIN_OPTIONS } from '../../../src/protocols/dialect.ts'
import { protocolAdapter } from '../../../src/protocols/registry.ts'
import { assertFunds, checkUnlessRepeated } from '../../calls/balance.ts'
import { Answered, type Stage } from '../../calls/pipeline.ts'
import type { InputStore } from '../../media/inputs/store-input.ts'
import type { Upload } from '../../media/inputs/uploads.ts'
import { createWithFiles, type MediaOrders } from '../../media/media-call.ts'
import type { TaskOrder } from '../../tasks/order/order.ts'
import { estimateCall, explainEstimate } from '../precharge.ts'
import type { PricedCall } from '../select-model.ts'
import type { KeepingChannels } from './ask-channel.ts'
import { showTask } from './responses.ts'
import type { CountedCall } from './state.ts'

const JSON_TYPE = 'application/json'

export interface BackgroundCalls {
  readonly orders: MediaOrders
  readonly inputs: InputStore
  readonly channels: KeepingChannels
}

/** @throws Failure as `createTask` of the task engine does */
export const runInBackground =
  <C extends CountedCall>({ orders, inputs, channels }: BackgroundCalls): Stage<C, C> =>
  (call: C) => {
    if (call.call.state?.isBackground !== true) return call
    return from(orderInBackground(orders, inputs, call)).pipe(
      map(({ order, task }) => {
        const replies = orders.awaitTask(order, task).pipe(concatMap((taken) => showTask(channels, taken)))
        const isOriginal = task.requestId === call.request.requestId
        if (isOriginal) call.inConversation?.handOver()
        return new Answered(isOriginal ? call : { ...call, originalRequestId: task.requestId }, replies)
      }),
    )
  }

/** Creates the task, which takes over the request. From here on the task leaves the call's row in the log. */
async function orderInBackground(
  orders: MediaOrders,
  inputs: InputStore,
  call: PricedCall,
): Promise<{ order: TaskOrder; task: Task }> {
  const { known } = call
  const callbackUrl = call.call.state?.callbackUrl
  if (callbackUrl !== undefined) await orders.checkCallback(known, callbackUrl)
  const { config } = orders.access.catalog()
  const hold = estimateCall(call, config.estimate)
  const explain = () => explainEstimate(call, config.estimate)
  await checkUnlessRepeated(orders.idempotency.records, call, () => assertFunds(call, hold, config, explain))
  const upload = orders.uploads.begin(known.account.id)
  call.ends.add(() => void upload.end())
  const order = makeOrder(call, hold, await storeBody(inputs, call, upload))
  return { order, task: await createWithFiles(orders.createTask, order, upload) }
}

/** Puts the request into the object store, as the upstream gets it but for the name of the model. */
async function storeBody(
  { files, objects }: InputStore,
  { call, model, request }: PricedCall,
  upload: Upload,
): Promise<StoredFileRef> {
  const { body } = protocolAdapter('responses', 'responses').encodeRequest(call, {
    ...PLAIN_OPTIONS,
    upstreamModel: call.model,
    outputCeiling: model.entry.max_output_tokens ?? null,
  })
  const key = `inputs/${request.requestId}-response.json`
  upload.count(body.length)
  await objects.recordObjects([{ key, expiresAt: Date.now() + INPUT_LIFETIME_MS }])
  await files.put(key, Readable.from([body]), { mediaType: JSON_TYPE, maxBytes: body.length })
  await upload.noteStored(key)
  return { from: 'store', key, media_type: JSON_TYPE, bytes: body.length, name: 'response.json' }
}

function makeOrder(caller: PricedCall, hold: bigint, body: JobOf<'response'>['body']): TaskOrder {
  const { call, model, routes, request } = caller
  const { image, file, audio, inline } = call.links
  const job: JobOf<'response'> = {
    work: 'response',
    body,
    call: {
      model: call.model,
      outputLimit: call.outputLimit,
      choices: call.choices,
      promptBytes: call.promptBytes,
      laterBytes: laterBytesIn(request.body),
      links: { image, file, audio, inline },
      builtInTools: [...call.builtInTools],
      toolCallLimit: call.toolCallLimit,
      settings: call.settings,
      serviceTier: call.serviceTier,
    },
    conversation: call.state?.conversation ?? null,
    kept_days: Math.max(...routes.map(({ channel }) => channel.keeps_responses_days)),
  }
  return {
    caller,
    kind: 'response',
    protocol: 'responses',
    model,
    job,
    hold,
    routes,
    price: toKeptPrice(model.entry, model.entry.pricing!),
    until: 'accepted',
    callbackUrl: call.state?.callbackUrl,
    idempotency: caller.claim?.record ?? null,
  }
}
