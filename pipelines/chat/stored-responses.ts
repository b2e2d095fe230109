/**
 * `GET` and `DELETE /v1/responses/{id}`, and the items of its input: asked of the channel that keeps the response. Free.
 * See docs/api-rules.md, "Responses".
 */
import type { ChannelEntry } from '../../schemas/config/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import { storedResponseRequest } from '../../src/channels/chat/stored-responses.ts'
import type { MediaAnswer, MediaRequest } from '../../src/channels/media/adapter.ts'
import { mask } from '../../src/core/call-log/redact.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'
import { hasAccess } from '../../src/core/routing/channel-access.ts'
import { upstreamTexts } from '../../src/core/routing/upstream-texts.ts'
import type { Handler, Reply } from '../../src/http/handler.ts'
import { unanswered } from '../media/channel-lists.ts'
import { answerOnce } from '../stages/answer.ts'
import {
  type AuthenticateDeps,
  type AuthenticatedCall,
  authenticate,
  type Caller,
} from '../stages/authenticate.ts'
import { type Found, find } from '../stages/find.ts'
import { type StateDeps, storedResponse } from '../stages/follow-state.ts'
import { pipeline } from '../stages/pipeline.ts'
import { type RateDeps, rateLimit } from '../stages/rate-limit.ts'
import type { Call } from '../stages/stage.ts'
import type { MediaCalls } from '../tasks/ports.ts'
import { MAX_WHOLE_RESPONSE_BYTES } from './forward/answers.ts'
import { masked, refusedByUpstream } from './forward/upstream-error.ts'

const DEADLINE_MS = 30_000
/** Of the parts of a path, `v1` being the first. */
const ID_PART = 3
/** Parameters that the upstream gets: the others are ours, such as a key. */
const FORWARDED_PARAMETERS = ['include', 'include[]', 'limit', 'order', 'after', 'before']
const NOT_FOUND = 404

export interface StoredResponsesDeps extends AuthenticateDeps, RateDeps, StateDeps {
  readonly catalog: () => Catalog
  readonly calls: MediaCalls
  readonly forgetStoredResponse: (accountId: string, id: string) => Promise<void>
}

/** Returns the id of the path. @throws Failure `not_found` for one that is no text */
function idOf(path: string): string {
  try {
    return decodeURIComponent(path.split('/')[ID_PART] ?? '')
  } catch {
    throw new Failure('not_found', 'There is no such response.')
  }
}

/** @throws Failure `invalid_request` */
function forwardedQuery(query: string): string {
  const given = new URLSearchParams(query)
  if (given.get('stream') === 'true')
    throw new Failure('invalid_request', 'stream: a stored response is read whole; leave it out.')
  const kept = [...given].filter(([name]) => FORWARDED_PARAMETERS.includes(name))
  return kept.length === 0 ? '' : `?${new URLSearchParams(kept)}`
}

/** Returns the channel of a response. @throws Failure `no_channel_available` */
function channelOf(catalog: Catalog, channelId: string): ChannelEntry {
  const channel = catalog.channels.find((entry) => entry.id === channelId)
  if (channel !== undefined && hasAccess(channel)) return channel
  throw new Failure('no_channel_available', 'The channel that keeps this response is not available.')
}

/** Returns the upstream's answer. @throws its refusal, masked for the client; Failure `upstream_*` */
async function asked(calls: MediaCalls, channel: ChannelEntry, request: MediaRequest): Promise<MediaAnswer> {
  const options = { timeoutMs: DEADLINE_MS, maxAnswerBytes: MAX_WHOLE_RESPONSE_BYTES }
  const answer = await calls.send(request, options).catch(unanswered)
  if (answer.status === 200) return answer
  const { names, secrets } = upstreamTexts([{ channel, upstreamModel: '' }], '')
  const { error } = refusedByUpstream(answer.status, answer.body, answer.header('retry-after'))
  throw masked(error, (text) => mask(text, names, secrets))
}

const replyOf = ({ status, header, body }: MediaAnswer): Reply => ({
  type: 'full',
  status,
  headers: [['content-type', header('content-type') ?? 'application/json']],
  body,
})

/** Asks the channel of a response for what is below its path. */
async function askChannel(
  deps: StoredResponsesDeps,
  { request: { path, query }, known }: Caller,
  method: 'GET' | 'DELETE',
  below: string,
): Promise<Reply> {
  const id = idOf(path)
  const accountId = known.account.id
  const { channelId } = await storedResponse(deps, accountId, id)
  const channel = channelOf(deps.catalog(), channelId)
  const upstream = storedResponseRequest(channel, { method, id, below, query: forwardedQuery(query) })
  const isDelete = method === 'DELETE'
  try {
    const answer = await asked(deps.calls, channel, upstream)
    if (isDelete) await deps.forgetStoredResponse(accountId, id)
    return replyOf(answer)
  } catch (error) {
    // It is gone at the upstream already.
    if (isDelete && (error as { status?: number }).status === NOT_FOUND)
      await deps.forgetStoredResponse(accountId, id)
    throw error
  }
}

const endpoint =
  (method: 'GET' | 'DELETE', below = '') =>
  (deps: StoredResponsesDeps): Handler =>
    pipeline(
      authenticate(deps),
      rateLimit(deps),
      find<AuthenticatedCall, Reply>((caller) => askChannel(deps, caller, method, below)),
      answerOnce(({ found }: Call & Found<Reply>) => found),
    )

export const showResponse = endpoint('GET')
export const deleteResponse = endpoint('DELETE')
export const listResponseInput = endpoint('GET', '/input_items')
