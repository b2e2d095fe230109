/** A job with its price as it holds now, and what is kept back for it. */
import { Failure } from '../../schemas/failure.ts'
import type { MediaJob } from '../../schemas/media-job.ts'
import type { Model } from '../../src/core/catalog.ts'
import { holdOf, mediaPriceOf } from '../../src/core/media-pricing.ts'
import { invalidField } from '../../src/protocols/client-json.ts'
import type { OrderParts } from './media-call.ts'

/** What of a request chooses among the prices of a model, such as the resolution. */
export interface Variant {
  readonly field: string
  readonly value: string | null
}

/** Upstreams that take `720P` for `720p` do not take it for another price. */
function variantIn({ pricing }: Model['entry'], variant: Variant | null): string | null {
  if (variant === null || variant.value === null) return null
  const asked = variant.value.trim().toLowerCase()
  return Object.keys(pricing?.variants ?? {}).find((name) => name.toLowerCase() === asked) ?? null
}

/**
 * @throws Failure `invalid_request` where the model has no price for what was chosen, `internal_error` where it has none
 * at all
 */
export function pricedJob(
  { id, entry }: Model,
  job: MediaJob,
  variant: Variant | null = null,
): Pick<OrderParts, 'job' | 'price' | 'hold'> {
  const price = mediaPriceOf(entry, variantIn(entry, variant), Date.now())
  if (price !== null) return { job, price, hold: holdOf(price, job) }
  const choices = Object.keys(entry.pricing?.variants ?? {})
  if (variant !== null && choices.length > 0)
    throw invalidField(variant.field, `the model has ${choices.join(', ')}`)
  throw new Failure('internal_error', 'The call could not be handled.', {
    internal: `the model ${id} has no price of media`,
  })
}
