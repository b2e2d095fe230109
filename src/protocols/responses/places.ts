/** The places in an event of the responses protocol that a meter reads. */
import { FAILURES, json, object, SAID, text } from '../answer/places.ts'

export const EVENT = object({
  type: text((facts, value) => (facts.type = value)),
  delta: SAID,
  item: object({
    id: text((facts, value) => (facts.itemId = value)),
    type: text((facts, value) => (facts.item = value)),
    name: text((facts, value) => (facts.itemName = value)),
    action: object({ type: text((facts, value) => (facts.itemAction = value)) }),
  }),
  response: object({
    id: text((facts, value) => (facts.id = value)),
    model: text((facts, value) => (facts.model = value)),
    service_tier: text((facts, value) => (facts.serviceTier = value)),
    usage: json((facts, value) => (facts.usage = value)),
    error: json((facts, value) => (facts.responseError = value)),
  }),
  ...FAILURES,
})
