/** Finds the model of a request for media, and the routes to its channels. See docs/errors.md, "Catalog". */
import type { ChannelEntry, ENDPOINT_TYPES } from '../../schemas/config/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import type { MediaWork } from '../../schemas/media/job.ts'
import { listWorks, MEDIA_PROTOCOLS } from '../../src/channels/media/registry.ts'
import {
  type Catalog,
  type Model,
  mayCall,
  notAllowed,
  type Route,
  selectCallable,
} from '../../src/core/routing/catalog.ts'
import type { KnownKey } from '../../src/credentials/credentials.ts'

const HTTP_FORBIDDEN = 403
const HTTP_NOT_FOUND = 404

/** Names of digital humans and clips, whether or not such a model exists. */
const OF_DIGITAL_HUMANS = /^(?:dh|clip)-/

/** @throws Failure `model_not_found`, of digital humans and clips with 404 */
const findCallableModel = (catalog: Catalog, name: string): Model =>
  selectCallable(catalog, name, OF_DIGITAL_HUMANS.test(name) ? HTTP_NOT_FOUND : undefined)

/**
 * Finds the model. Media endpoints answer 403 where chat answers 400. See docs/api-rules.md, "Models".
 * @param permittedBy the model that an allowlist must name, if it is another one: clips have several endpoints and one
 *   name
 * @throws Failure `model_not_found`, `model_not_allowed`
 */
export function selectMediaModel(
  catalog: Catalog,
  known: KnownKey,
  name: string,
  permittedBy: string = name,
): Model {
  const model = findCallableModel(catalog, name)
  const permitted = permittedBy === name ? model : findCallableModel(catalog, permittedBy)
  if (!mayCall(catalog, known, permitted)) throw notAllowed(permitted, HTTP_FORBIDDEN)
  return model
}

export type EndpointType = (typeof ENDPOINT_TYPES)[number]

/** @throws Failure `no_channel_available` for a model that belongs to other endpoints */
export function assertEndpoint({ id, entry }: Model, types: readonly EndpointType[]): void {
  if (entry.endpoint_type === null || !types.includes(entry.endpoint_type))
    throw new Failure('no_channel_available', `No channel serves the model '${id}' on this endpoint.`)
}

/** Returns the routes by priority, then in the order of the configuration. */
function listRoutes(catalog: Catalog, model: Model, work: MediaWork): readonly Route[] {
  const protocols = MEDIA_PROTOCOLS.filter((protocol) => listWorks(protocol).includes(work))
  const routes = protocols.flatMap((protocol) => catalog.routes(model, protocol))
  const place = ({ channel }: Route): number => catalog.channels.indexOf(channel)
  return routes.toSorted((a, b) => a.channel.priority - b.channel.priority || place(a) - place(b))
}

/** Lists the channels that do this work for the model. */
export const listChannels = (catalog: Catalog, model: Model, work: MediaWork): readonly ChannelEntry[] =>
  listRoutes(catalog, model, work).map(({ channel }) => channel)

/** Returns whether any channel does this work for the model. */
export const isServed = (catalog: Catalog, model: Model, work: MediaWork): boolean =>
  listRoutes(catalog, model, work).length > 0

/**
 * Returns the routes to the channels that do this work for the model, by priority.
 * @throws Failure `no_channel_available`
 */
export function requireRoutes(catalog: Catalog, model: Model, work: MediaWork): readonly Route[] {
  const routes = listRoutes(catalog, model, work)
  if (routes.length === 0)
    throw new Failure('no_channel_available', `No channel serves the model '${model.id}' on this endpoint.`)
  return routes
}
