/** Operations of deliveries. */
import {
  listDeliveries,
  replayDelivery,
  showDelivery,
} from '../../../schemas/management/notifications/deliveries.ts'
import type { DeliveryRecord } from '../../../schemas/notifications/delivery.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { printWebhookBody } from '../../notifications/attempt.ts'
import { implement } from '../operation.ts'
import { readNumberCursor, readRange, toPage } from '../page.ts'

export function deliveryShape(delivery: DeliveryRecord) {
  const last = delivery.attempts.at(-1)
  return {
    ...toApiShape(delivery),
    endpoint_id: delivery.endpointId!,
    url: delivery.target,
    event_id: delivery.event.id,
    type: delivery.event.type,
    attempts: delivery.attempts.length,
    last_status: last?.status ?? null,
    last_error: last?.error ?? null,
    next_at: delivery.state === 'waiting' ? delivery.dueAt.toISOString() : null,
  }
}

const findDeliveryAccount = async (database: Database, { id }: { readonly id: string }): Promise<string> =>
  (await database.deliveries.show(id)).accountId

export const deliveryOperations = [
  implement(listDeliveries, async ({ database }, input) => {
    const records = await database.deliveries.list({
      accountId: input.account_id,
      endpointId: input.endpoint_id ?? null,
      state: input.state ?? null,
      type: input.type ?? null,
      ...readRange(input),
      before: readNumberCursor(input),
      limit: input.limit + 1,
    })
    return toPage(records.map(deliveryShape), input, ({ position }) => String(position))
  }),
  implement(showDelivery, findDeliveryAccount, async ({ database }, { id }) => {
    const record = await database.deliveries.show(id)
    return { ...deliveryShape(record), body: printWebhookBody(record.event), attempts_made: record.attempts }
  }),
  implement(replayDelivery, findDeliveryAccount, async ({ write }, { id }) =>
    deliveryShape(await write((writing) => writing.deliveries.replay(id))),
  ),
]
