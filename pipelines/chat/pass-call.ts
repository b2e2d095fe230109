/**
 * A call of an endpoint whose requests pass to the same path of a channel, such as `POST /v1/embeddings`: the stages of its
 * pipeline, in the order in which they happen.
 */
import type { PassedEndpoint } from '../../schemas/config/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import { printRefusedDetail } from '../../src/core/call-log/call-detail.ts'
import { cutText } from '../../src/core/json/cut.ts'
import { type Catalog, type Model, selectCallable } from '../../src/core/routing/catalog.ts'
import type { Handler } from '../../src/http/handler.ts'
import { READERS } from '../../src/protocols/registry.ts'
import { type AuthenticatedCall, authenticate } from '../calls/authenticate.ts'
import { assertBalance, requireBalance } from '../calls/balance.ts'
import { idempotent } from '../calls/idempotency.ts'
import { calls, type Stage } from '../calls/pipeline.ts'
import { rateLimit } from '../calls/rate-limit.ts'
import { recordRefusals } from '../calls/refusals.ts'
import type { ChatDeps } from './chat.ts'
import { forward } from './forward/forward.ts'
import { limitPrice, precharge, reserve } from './precharge.ts'
import { readCall } from './read-call.ts'
import { readSound } from './read-sound.ts'
import { checkLinks, type PricedCall, selectModel } from './select-model.ts'

const HTTP_NOT_FOUND = 404
const SHOWN_NAME_MAX_CHARS = 200

/** What models of the endpoints are for, as a refusal says it. */
const PURPOSES: Readonly<Record<PassedEndpoint, string>> = {
  embeddings: 'embeddings',
  rerank: 'rerank',
  audio_transcriptions: 'transcriptions',
}

const servesEndpoint = ({ entry }: Model, endpoint: PassedEndpoint): boolean =>
  entry.endpoint_type === endpoint

/** Refuses every call where the catalog has no model for the endpoint. @throws Failure `model_not_found` */
const requireModels =
  <C extends AuthenticatedCall>(current: () => Catalog, endpoint: PassedEndpoint): Stage<C, C> =>
  (call: C) => {
    if (current().models.some((model) => servesEndpoint(model, endpoint))) return call
    throw noModel('', endpoint)
  }

const noModel = (name: string, endpoint: PassedEndpoint): Failure =>
  new Failure('model_not_found', `There is no model ${name}for ${PURPOSES[endpoint]}.`, {
    status: HTTP_NOT_FOUND,
  })

/** Returns how a model of the endpoint is found. */
const findFor =
  (endpoint: PassedEndpoint) =>
  (catalog: Catalog, name: string): Model => {
    const model = selectCallable(catalog, name, HTTP_NOT_FOUND)
    if (servesEndpoint(model, endpoint)) return model
    throw noModel(`'${cutText(name, SHOWN_NAME_MAX_CHARS)}' `, endpoint)
  }

export const passCall = (deps: ChatDeps, endpoint: PassedEndpoint): Handler =>
  calls(authenticate(deps.access))
    .then(rateLimit(deps.access, assertBalance))
    .then(requireModels(deps.access.catalog, endpoint))
    .then(requireBalance(deps.idempotency.records))
    .then(endpoint === 'audio_transcriptions' ? readSound() : readCall(deps.bodies, READERS[endpoint]))
    .then(selectModel(deps.access.catalog, findFor(endpoint)))
    .then(idempotent(deps.idempotency))
    .then(checkLinks(deps.links))
    .then(limitPrice(deps.access.catalog))
    .then(precharge(deps.access.catalog))
    .then(reserve(deps.reservations))
    .then(forward(deps.forwarding))
    .onRefused(
      recordRefusals(deps.access, ({ call, model }: AuthenticatedCall & Partial<PricedCall>) => ({
        protocol: endpoint,
        model: call?.model,
        stream: call?.stream === true,
        unitType: call?.units?.type ?? null,
        detail: printRefusedDetail({ call, model }),
      })),
    )
