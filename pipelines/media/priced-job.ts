/** A job with its current price and its hold. */
import { Failure } from '../../schemas/failure.ts'
import type { JobOf, MediaJob, MediaWork } from '../../schemas/media/job.ts'
import { computeHold, findMediaPrice } from '../../src/core/media/pricing.ts'
import { makesSound } from '../../src/core/media/sound.ts'
import { findDefaultVariant, findVariant, listVariants } from '../../src/core/media/variants.ts'
import type { Model } from '../../src/core/routing/catalog.ts'
import { invalidField } from '../../src/protocols/request/client-json.ts'
import type { MediaCall, OrderParts } from './media-call.ts'
import { assertEndpoint, type EndpointType, requireRoutes } from './select-media.ts'

/**
 * Returns the variant that a field of the request names, as the model spells it; null if the model has one price.
 * @param having what the possible variants share, if the model has others too
 * @throws Failure `invalid_request` that names the possible variants
 */
export function chooseVariant(
  entry: Model['entry'],
  field: string,
  value: string | null,
  having = '',
): string | null {
  const names = listVariants(entry)
  if (names.length === 0) return null
  const chosen = value === null ? findDefaultVariant(entry) : findVariant(names, value)
  if (chosen !== null) return chosen
  throw invalidField(
    field,
    `${value === null ? 'it is required: ' : ''}the model has ${names.join(', ')}${having}`,
  )
}

/**
 * Returns the order of a job whose model has one price.
 * @throws Failure `no_channel_available`; as `priceJob` does
 */
export function priceOrder(
  { catalog, model }: Pick<MediaCall<unknown>, 'catalog' | 'model'>,
  type: EndpointType,
  job: JobOf<MediaWork>,
  until: OrderParts['until'] = 'accepted',
): OrderParts {
  assertEndpoint(model, [type])
  const routes = requireRoutes(catalog, model, job.work)
  return { ...priceJob(model, job), routes, until }
}

/**
 * Prices a job. `variant` comes from `chooseVariant`.
 * @throws Failure `internal_error` if the model has no price
 */
export function priceJob(
  { id, entry }: Model,
  job: MediaJob,
  variant: string | null = null,
): Pick<OrderParts, 'job' | 'price' | 'hold'> {
  const sound = job.work === 'video' && makesSound(entry, job.generate_audio)
  const price = findMediaPrice(entry, variant, Date.now(), sound)
  if (price !== null) return { job, price, hold: computeHold(price, job) }
  throw new Failure('internal_error', 'The call could not be handled.', {
    internal: `the model ${id} has no price of media`,
  })
}
