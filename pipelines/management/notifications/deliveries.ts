/** Acts of deliveries. */
import {
  listDeliveries,
  replayDelivery,
  showDelivery,
} from '../../../schemas/management/notifications/deliveries.ts'
import type { DeliveryRecord } from '../../../schemas/notifications/delivery.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { webhookBody } from '../../notifications/attempt.ts'
import { implement } from '../act.ts'
import { afterOf, page } from '../page.ts'

export function deliveryShape(delivery: DeliveryRecord) {
  const last = delivery.attempts.at(-1)
  return {
    id: delivery.id,
    account_id: delivery.accountId,
    endpoint_id: delivery.endpointId!,
    url: delivery.target,
    event_id: delivery.event.id,
    type: delivery.event.type,
    state: delivery.state,
    attempts: delivery.attempts.length,
    last_status: last?.status ?? null,
    last_error: last?.error ?? null,
    next_at: delivery.state === 'waiting' ? delivery.dueAt.toISOString() : null,
    created_at: delivery.createdAt.toISOString(),
    ended_at: delivery.endedAt?.toISOString() ?? null,
  }
}

const ofDelivery = async (database: Database, { id }: { readonly id: string }): Promise<string> =>
  (await database.showDelivery(id)).accountId

export const deliveryActs = [
  implement(listDeliveries, async ({ database }, input) => {
    const after = afterOf(input)
    const records = await database.listDeliveries({
      accountId: input.account_id,
      endpointId: input.endpoint_id ?? null,
      state: input.state ?? null,
      type: input.type ?? null,
      before: after === null || !/^\d{1,18}$/.test(after) ? null : BigInt(after),
      limit: input.limit + 1,
    })
    // The schema of the answer leaves out the position, by which pages go.
    const listed = records.map((record) => ({ ...deliveryShape(record), position: String(record.position) }))
    return page(listed, input, ({ position }) => position)
  }),
  implement(
    showDelivery,
    async ({ database }, { id }) => {
      const record = await database.showDelivery(id)
      return { ...deliveryShape(record), body: webhookBody(record.event), attempts_made: record.attempts }
    },
    ofDelivery,
  ),
  implement(
    replayDelivery,
    async ({ write }, { id }) => deliveryShape(await write((writing) => writing.replayDelivery(id))),
    ofDelivery,
  ),
]
