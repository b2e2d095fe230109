/** Which model a request of media is for, and what it can be reached by. Source: specification, "Errors". */

import { MEDIA_ADAPTERS as MEDIA_PROTOCOLS } from '../../schemas/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import type { MediaWork } from '../../schemas/media-job.ts'
import { worksOf } from '../../src/channels/media-registry.ts'
import {
  type Catalog,
  isModelAllowed,
  type Model,
  type Route,
  resolveAllowlist,
} from '../../src/core/catalog.ts'
import type { KnownKey } from '../credentials.ts'

const HTTP_FORBIDDEN = 403
const SHOWN_NAME_MAX_CHARS = 200

/**
 * The endpoints of media answer 403 where chat answers 400: specification, "Errors", row `model_not_allowed`.
 * @throws Failure `model_not_found`, `model_not_allowed`
 */
export function selectMediaModel(catalog: Catalog, known: KnownKey, name: string): Model {
  const model = catalog.resolve(name)
  if (model === null || !model.entry.callable)
    throw new Failure('model_not_found', `The model '${name.slice(0, SHOWN_NAME_MAX_CHARS)}' does not exist.`)
  assertAllowed(catalog, known, model)
  return model
}

/** @throws Failure `model_not_allowed` */
export function assertAllowed(catalog: Catalog, known: KnownKey, model: Model): void {
  if (!isModelAllowed(resolveAllowlist(catalog, known.key.allowedModels), model))
    throw new Failure('model_not_allowed', `This API key may not call the model '${model.id}'.`, {
      status: HTTP_FORBIDDEN,
    })
}

/**
 * Ways to the channels that do this work for the model, in order of priority.
 * @throws Failure `no_channel_available`
 */
export function mediaRoutes(catalog: Catalog, model: Model, work: MediaWork): readonly Route[] {
  const routes = MEDIA_PROTOCOLS.filter((protocol) => worksOf(protocol).includes(work)).flatMap((protocol) =>
    catalog.routes(model, protocol),
  )
  if (routes.length === 0)
    throw new Failure('no_channel_available', `No channel serves the model '${model.id}' on this endpoint.`)
  return routes.toSorted((a, b) => a.channel.priority - b.channel.priority)
}
