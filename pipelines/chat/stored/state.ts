/**
 * Sends a call that goes on with an earlier response or a conversation to the channel that keeps it, and counts the tokens
 * of an earlier response in the estimate; keeps to channels that can answer in the background where the call asks for that. Any other
 * call passes at once. See docs/api-rules.md, "Responses".
 */
import { map } from 'rxjs'
import { Failure } from '../../../schemas/failure.ts'
import { countStoredTokens } from '../../../src/core/pricing/estimate.ts'
import { bytesOfTokens } from '../../../src/core/pricing/text-tokens.ts'
import { MAX_CONTEXT_TOKENS } from '../../../src/core/pricing/usage-bounds.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { StoredResponses } from '../../../src/postgres/requests/repository.ts'
import type { StoredConversation } from '../../../src/postgres/requests/stored-conversations.ts'
import type { StoredItem, StoredResponse } from '../../../src/postgres/requests/stored-responses.ts'
import type { CallState } from '../../../src/protocols/dialect.ts'
import { fromAbortable, type Stage } from '../../calls/pipeline.ts'
import type { PricedCall } from '../select-model.ts'

export interface ResponseFinder {
  /** Returns null for a response that the account does not have. */
  readonly findStoredResponse: (accountId: string, id: string) => Promise<StoredResponse | null>
}

interface ItemFinder {
  /** Returns those of the items that the account has. */
  readonly findStoredItems: (accountId: string, ids: readonly string[]) => Promise<StoredItem[]>
}

export interface ConversationFinder {
  /** Returns null for a conversation that the account does not have. */
  readonly findStoredConversation: (accountId: string, id: string) => Promise<StoredConversation | null>
}

const noSuchResponse = (id: string): Failure =>
  new Failure('not_found', `There is no response '${id}', or it has expired.`)

export const noSuchConversation = (id: string): Failure =>
  new Failure('not_found', `There is no conversation '${id}'.`)

/** No id has it, and PostgreSQL's texts cannot contain it. */
const NUL = '\0'

/** Waits for what the database finds. @throws Failure `service_unavailable` where it does not answer */
export const awaitStored = <Found>(finding: Promise<Found>): Promise<Found> =>
  finding.catch((error: Error) => {
    throw new Failure(
      'service_unavailable',
      'What is stored cannot be found at the moment. Try again shortly.',
      { internal: error.message },
    )
  })

/** Finds a response of the account. @throws Failure `not_found`, `service_unavailable` */
export async function findResponse(
  { findStoredResponse }: ResponseFinder,
  accountId: string,
  id: string,
): Promise<StoredResponse> {
  const response = id.includes(NUL) ? null : await awaitStored(findStoredResponse(accountId, id))
  if (response === null) throw noSuchResponse(id)
  return response
}

/** Finds a conversation of the account. @throws Failure `not_found`, `service_unavailable` */
export async function findConversation(
  { findStoredConversation }: ConversationFinder,
  accountId: string,
  id: string,
): Promise<StoredConversation> {
  const conversation = id.includes(NUL) ? null : await awaitStored(findStoredConversation(accountId, id))
  if (conversation === null) throw noSuchConversation(id)
  return conversation
}

const refuseField = (field: string, why: string): Failure =>
  new Failure('invalid_request', `${field}: ${why}`)

/** A demand of a call on its channel, by the field of the request that makes it. */
interface Need {
  readonly field: 'previous_response_id' | 'conversation' | 'background' | 'input'
  readonly isMet: (route: Route) => boolean
  /** Why a model without such a channel cannot serve the call. */
  readonly why: string
}

const keepsResponses = ({ channel }: Route): boolean => channel.keeps_responses_days > 0

const PREVIOUS: Need = {
  field: 'previous_response_id',
  isMet: keepsResponses,
  why: 'keeps responses; send the full history in input.',
}
const ITEMS: Need = {
  field: 'input',
  isMet: keepsResponses,
  why: 'keeps responses, so an item_reference leads nowhere; set store: false, with which clients send whole items.',
}
const CONVERSATION: Need = {
  field: 'conversation',
  isMet: ({ channel }) => channel.keeps_conversations,
  why: 'keeps conversations; send the full history in input.',
}
const BACKGROUND: Need = {
  field: 'background',
  isMet: (route) => keepsResponses(route) && route.channel.protocol === 'responses',
  why: 'keeps responses, without which none is made in the background; leave it out.',
}

/** Keeps the routes that the call may take. @throws Failure `invalid_request` where none is left */
function keepMetRoutes<C extends PricedCall>(call: C, { field, isMet, why }: Need): C {
  const { model, requested } = call
  // Another model's channels do not have what is kept, and its calls have another price.
  const routes = model === requested ? call.routes.filter(isMet) : []
  if (routes.length === 0) throw refuseField(field, `no channel of the model '${requested.id}' ${why}`)
  return { ...call, routes, fallbacks: [] }
}

/** Keeps the routes to upstreams that can compact. @throws Failure `no_channel_available` where none is left */
function keepCompactingRoutes<C extends PricedCall>(call: C): C {
  const routes = call.routes.filter(({ channel, protocol }) =>
    [channel.protocol, protocol].every((spoken) => spoken === 'responses'),
  )
  if (routes.length > 0) return { ...call, routes, fallbacks: [] }
  throw new Failure(
    'no_channel_available',
    `No channel of the model '${call.requested.id}' compacts conversations: only those of the responses protocol can.`,
  )
}

/** Returns the call with the tokens that it reads of what is kept: of unknown ones, all that the model can read. */
export function addKeptTokens<C extends PricedCall>(call: C, tokens: number | null): C {
  const window = call.model.entry.context_window ?? MAX_CONTEXT_TOKENS
  const keptTokens = Math.min(tokens ?? window, window)
  const { conversationBytes, promptBytes } = call.call
  const kept = bytesOfTokens(keptTokens)
  const counted = { conversationBytes: conversationBytes + kept, promptBytes: promptBytes + kept }
  const all = keptTokens + (call.call.keptTokens ?? 0)
  return { ...call, call: { ...call.call, ...counted, keptTokens: all } }
}

/** Returns the call with the route to the channel that keeps its past. @throws Failure `invalid_request` */
function keepPastRoutes<C extends PricedCall>(
  call: C,
  { field }: Need,
  { channelId }: Pick<StoredConversation, 'channelId'>,
): C {
  const routes = call.routes.filter(({ channel }) => channel.id === channelId)
  if (routes.length === 0)
    throw refuseField(
      field,
      `the channel that keeps it does not serve the model '${call.requested.id}' now. Use a model of that channel, or send the full history in input.`,
    )
  return { ...call, routes }
}

/**
 * Returns the call with the route to the channel that keeps the items which it names, and with the tokens that they have at
 * most.
 * @throws Failure `invalid_request`, `not_found`, `service_unavailable`
 */
async function findItems<C extends PricedCall>(
  { findStoredItems }: ItemFinder,
  call: C,
  ids: readonly string[],
): Promise<C> {
  const keeping = keepMetRoutes(call, ITEMS)
  const known = ids.filter((id) => !id.includes(NUL))
  const items = await awaitStored(findStoredItems(call.known.account.id, known))
  const missing = ids.find((id) => !items.some((item) => item.id === id))
  if (missing !== undefined)
    throw new Failure(
      'not_found',
      `There is no item '${missing}', or it has expired. Set store: false, with which clients send whole items.`,
    )
  const kept = items.reduce((next, item) => keepPastRoutes(next, ITEMS, item), keeping)
  // Of one response, its output counts once.
  const outputs = [...new Map(items.map(({ responseId, tokens }) => [responseId, tokens])).values()]
  return addKeptTokens(
    kept,
    outputs.reduce<number | null>(
      (sum, tokens) => (sum === null || tokens === null ? null : sum + tokens),
      0,
    ),
  )
}

/** Sends a call that names items of earlier responses to the channel that keeps them. Any other passes at once. */
export const followItems =
  <C extends PricedCall>(stored: ItemFinder): Stage<C, C> =>
  (call: C) => {
    const items = call.call.state?.items ?? []
    return items.length === 0 ? call : fromAbortable(() => findItems(stored, call, items))
  }

/** Checks what cannot go together. @throws Failure `invalid_request` */
function checkTogether(
  { previous, conversation, isBackground, isStored, callbackUrl, isCompaction }: CallState,
  stream: boolean,
): void {
  if (isCompaction && (stream || isBackground || conversation !== null))
    throw refuseField(
      stream ? 'stream' : isBackground ? 'background' : 'conversation',
      'a conversation is compacted in one piece, and from its items; leave it out.',
    )
  if (previous !== null && conversation !== null)
    throw refuseField(
      'conversation',
      'it cannot be combined with previous_response_id; leave one of them out.',
    )
  if (isBackground && stream)
    throw refuseField(
      'background',
      'an answer in the background is not streamed; leave stream out, and ask GET /v1/responses/{id} how far it is.',
    )
  if (isBackground && !isStored)
    throw refuseField(
      'background',
      'the answer has to be kept until it is fetched; leave store out, or background.',
    )
  if (!isBackground && callbackUrl !== undefined)
    throw refuseField(
      'callback_url',
      'it tells the end of an answer in the background alone; set background, or leave it out.',
    )
}

/** @throws Failure `invalid_request`, `not_found`, `service_unavailable` */
export const followState =
  <C extends PricedCall>(stored: StoredState): Stage<C, C> =>
  (call: C) => {
    const { state } = call.call
    if (state === undefined) return call
    checkTogether(state, call.call.stream)
    const { previous, conversation, isBackground } = state
    const accountId = call.known.account.id
    const native = state.isCompaction ? keepCompactingRoutes(call) : call
    const able = isBackground ? keepMetRoutes(native, BACKGROUND) : native
    if (previous !== null) {
      const keeping = keepMetRoutes(able, PREVIOUS)
      return fromAbortable(() => findResponse(stored, accountId, previous)).pipe(
        map((response) => {
          const { upstreamId, tokens } = response
          const next = addKeptTokens(keepPastRoutes(keeping, PREVIOUS, response), tokens)
          if (upstreamId === previous) return next
          return { ...next, call: { ...next.call, state: { ...state, upstreamPrevious: upstreamId } } }
        }),
      )
    }
    if (conversation === null) return able
    const keeping = keepMetRoutes(able, CONVERSATION)
    return fromAbortable(() => findConversation(stored, accountId, conversation)).pipe(
      map((kept) => keepPastRoutes(keeping, CONVERSATION, kept)),
    )
  }

/** What is stored of responses and conversations, as a call goes on with it. */
export interface StoredState extends ResponseFinder, ItemFinder, ConversationFinder {
  readonly beginConversationCall: StoredResponses['beginConversationCall']
  /** Notes the end of the call in its conversation. Never rejects. */
  readonly storeResponse: StoredResponses['storeResponse']
}

/** How long a call counts whose process was killed: longer than any call lasts. */
const LIVE_HOURS = 2
const BACKGROUND_HOURS = 48

/** A call among those of its conversation. */
class ConversationCall {
  #isHandedOver = false

  /** It goes to an upstream: what becomes of it there is noted at its end. */
  handOver(): void {
    this.#isHandedOver = true
  }

  get isHandedOver(): boolean {
    return this.#isHandedOver
  }
}

export interface CountedCall extends PricedCall {
  readonly inConversation?: ConversationCall
}

/**
 * Counts a call that goes on with a conversation among what is stored there, from before its estimate until its end tells
 * what it added: no other call reads it uncounted, whatever becomes of this one. Any other call passes at once. See
 * docs/api-rules.md, "Conversations".
 * @throws Failure `not_found`, `service_unavailable`
 */
export const countInConversation =
  <C extends PricedCall>(stored: StoredState): Stage<C, C & CountedCall> =>
  (call: C) => {
    const id = call.call.state?.conversation ?? null
    return id === null ? call : fromAbortable(() => beginInConversation(stored, call, id))
  }

async function beginInConversation<C extends PricedCall>(
  { beginConversationCall, storeResponse }: StoredState,
  call: C,
  id: string,
): Promise<C & CountedCall> {
  const { known, request, model } = call
  const accountId = known.account.id
  const { requestId } = request
  const inConversation = new ConversationCall()
  const beginning = beginConversationCall({
    ...{ accountId, id, requestId },
    tokens: countStoredTokens(model.entry, call.call),
    hours: call.call.state?.isBackground === true ? BACKGROUND_HOURS : LIVE_HOURS,
  })
  // A call that is refused, or whose client leaves before it goes upstream, adds nothing.
  const withdraw = () => {
    if (inConversation.isHandedOver) return
    const conversation = { id, requestId, reported: null, isStored: false }
    void storeResponse({ accountId, id: null, channelId: '', tokens: null, days: 0, conversation })
  }
  call.ends.add(() => void beginning.then(withdraw, () => {}))
  const kept = await awaitStored(beginning)
  if (kept === null) throw noSuchConversation(id)
  return { ...addKeptTokens(call, kept.tokens), inConversation }
}
