/** The places in an event of the messages protocol that a meter reads. */
import { FAILURES, fields, json, object, type Place, place, SAID, text } from '../answer/places.ts'
import { METRICS_FIELD } from './usage.ts'

/** Fields whose strings are output, `content` that of a summary. Citations, signatures and results of tools are not. */
export const SPOKEN_FIELDS = ['text', 'thinking', 'partial_json', 'content'] as const
const SPOKEN: Record<string, Place> = Object.fromEntries(SPOKEN_FIELDS.map((name) => [name, SAID]))
const USAGE = json((facts, value) => (facts.usage = value))
/** Why a model declined. */
const REASON = object({ category: text((facts, value) => (facts.category = value)) })

export const EVENT = object({
  type: text((facts, value) => (facts.type = value)),
  delta: object({
    ...SPOKEN,
    stop_reason: text((facts, value) => (facts.finish = value)),
    stop_details: REASON,
  }),
  content_block: object({
    ...SPOKEN,
    type: text((facts, value) => (facts.block = value)),
    name: text((facts, value) => (facts.blockName = value)),
    // Of the block behind which a fallback goes on.
    to: object({ model: text((facts, value) => (facts.model = value)) }),
    trigger: REASON,
    content: place({
      fields: fields({ type: text((facts, value) => (facts.blockContent = value)) }),
      is: 'said',
    }),
  }),
  message: object({ usage: USAGE, model: text((facts, value) => (facts.model = value)) }),
  usage: USAGE,
  model: text((facts, value) => (facts.model = value)),
  [METRICS_FIELD]: json((facts, value) => (facts.metrics = value)),
  ...FAILURES,
})
