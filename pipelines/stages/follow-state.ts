/**
 * Sends a call that goes on with an earlier response to the channel that keeps it, and counts the tokens of that
 * response in the estimate. A call without one passes at once. See docs/api-rules.md, "Responses".
 */
import { map } from 'rxjs'
import { Failure } from '../../schemas/failure.ts'
import { bytesOfTokens } from '../../src/core/pricing/text-tokens.ts'
import type { StoredResponse } from '../../src/postgres/requests/stored-responses.ts'
import { fromAbortable } from '../replies/from-abortable.ts'
import type { PricedCall } from './select-model.ts'
import { type Stage, stage } from './stage.ts'

export interface StateDeps {
  /** Returns null for a response that the account does not have. */
  readonly findStoredResponse: (accountId: string, id: string) => Promise<StoredResponse | null>
}

export const noSuchResponse = (id: string): Failure =>
  new Failure('not_found', `There is no response '${id}', or it has expired.`)

/** Finds a response of the account. @throws Failure `not_found`, `service_unavailable` */
export async function storedResponse(
  { findStoredResponse }: StateDeps,
  accountId: string,
  id: string,
): Promise<StoredResponse> {
  const found = await findStoredResponse(accountId, id).catch((error: Error) => {
    throw new Failure(
      'service_unavailable',
      'Stored responses cannot be found at the moment. Try again shortly.',
      {
        internal: error.message,
      },
    )
  })
  if (found === null) throw noSuchResponse(id)
  return found
}

const refused = (why: string): Failure => new Failure('invalid_request', `previous_response_id: ${why}`)

/** Returns the call with the route to the channel that keeps the response. @throws Failure `invalid_request` */
function continued<C extends PricedCall>(call: C, { channelId, tokens }: StoredResponse): C {
  const routes = call.routes.filter(({ channel }) => channel.id === channelId)
  if (routes.length === 0)
    throw refused(
      `the channel that keeps this response does not serve the model '${call.requested.id}' now. Use the model of the response, or send the full history in input.`,
    )
  const promptBytes = call.call.promptBytes + bytesOfTokens(tokens)
  // Another model's channels do not have the response.
  return { ...call, model: call.requested, routes, fallbacks: [], call: { ...call.call, promptBytes } }
}

/** @throws Failure `invalid_request`, `not_found`, `service_unavailable` */
export const followState = <C extends PricedCall>(deps: StateDeps): Stage<C, C> =>
  stage((call: C) => {
    const previous = call.call.state?.previous ?? null
    if (previous === null) return call
    if (!call.routes.some(({ channel }) => channel.keeps_responses_days > 0))
      throw refused(
        `no channel of the model '${call.model.id}' keeps responses; send the full history in input.`,
      )
    const { id } = call.known.account
    return fromAbortable(() => storedResponse(deps, id, previous)).pipe(
      map((found) => continued(call, found)),
    )
  })
