/** Messages that name due deliveries. */
import { Buffer } from 'node:buffer'
import { DELIVERY_SUBJECT, type DeliveryMessage, deliveryMessage } from '../../schemas/events/event.ts'
import type { Nats } from '../../src/nats/nats.ts'
import type { NamedDelivery } from '../../src/postgres/notifications/deliveries.ts'
import { OutageLog, type PipelineLog } from '../settlement/retrying.ts'

const encoder = new TextEncoder()

/** Returns the id of the delivery; null if it is not such a message. */
export function decodeDeliveryMessage(payload: Uint8Array): { readonly id: string } | null {
  try {
    return { id: deliveryMessage.parse(JSON.parse(Buffer.from(payload).toString('utf8'))).delivery }
  } catch {
    return null
  }
}

/** Returns a function that publishes. Deliveries that NATS does not take are named again later. */
export function bindPublisher(nats: Nats, log: PipelineLog) {
  const publishing = new OutageLog(log, 'Publishing deliveries')
  return ({ id, namedAt }: NamedDelivery): void => {
    const message: DeliveryMessage = { delivery: id }
    const messageId = `${id}.${namedAt.getTime()}`
    nats.publish(DELIVERY_SUBJECT, messageId, encoder.encode(JSON.stringify(message)), (error) => {
      if (error === null) publishing.noteSuccess()
      else if (!nats.isClosed) publishing.noteFailure(error)
    })
  }
}
