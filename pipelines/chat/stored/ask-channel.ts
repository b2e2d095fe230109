/** Asks the channel that keeps a response or a conversation about it, for its account. Free. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { makeStoredRequest, type StoredQuestion } from '../../../src/channels/chat/responses.ts'
import type { MediaAnswer } from '../../../src/channels/media/adapter.ts'
import { withoutKeys } from '../../../src/core/call-log/key-mask.ts'
import { mask } from '../../../src/core/call-log/redact.ts'
import type { Catalog } from '../../../src/core/routing/catalog.ts'
import { hasAccess } from '../../../src/core/routing/channel-access.ts'
import { listUpstreamTexts } from '../../../src/core/routing/upstream-texts.ts'
import type { Reply } from '../../../src/http/handler.ts'
import type { Caller } from '../../calls/authenticate.ts'
import { maskError, readUpstreamRefusal } from '../../calls/upstream-error.ts'
import type { MediaCalls } from '../../tasks/ports.ts'
import { throwUnanswered } from '../../tasks/ports.ts'
import { MAX_WHOLE_RESPONSE_BYTES } from '../forward/stream-answer.ts'

const DEADLINE_MS = 30_000
/** Parameters that the upstream gets: the others are ours, such as a key. */
const FORWARDED_PARAMETERS = ['include', 'include[]', 'limit', 'order', 'after', 'before']

export const readAccountId = ({ known }: Caller): string => known.account.id

/** The channels that keep what clients store. */
export interface KeepingChannels {
  readonly catalog: () => Catalog
  readonly calls: MediaCalls
}

/** Returns an id of the path. @throws Failure `not_found` for one that no database keeps */
export function readId({ request }: Caller, name: 'id' | 'item_id'): string {
  const id = request.params[name]
  if (!id.includes('\0')) return id
  throw new Failure('not_found', 'There is nothing with this id.')
}

/** @throws Failure `invalid_request` for a stream */
export function forwardQuery(query: string): string {
  const given = new URLSearchParams(query)
  if (given.get('stream') === 'true')
    throw new Failure('invalid_request', 'stream: a stored response is read whole; leave it out.')
  const kept = [...given].filter(([name]) => FORWARDED_PARAMETERS.includes(name))
  return kept.length === 0 ? '' : `?${new URLSearchParams(kept)}`
}

/** Returns the channel that keeps it. @throws Failure `no_channel_available` */
export function findKeepingChannel(catalog: Catalog, channelId: string | null): ChannelEntry {
  const channel = catalog.channels.find((entry) => entry.id === channelId)
  if (channel !== undefined && hasAccess(channel)) return channel
  throw new Failure('no_channel_available', 'The channel that keeps this is not available.')
}

/** Returns the upstream's answer. @throws its refusal, masked for the client; Failure `upstream_*` */
export async function askChannel(
  { calls }: KeepingChannels,
  channel: ChannelEntry,
  question: StoredQuestion,
): Promise<MediaAnswer> {
  const options = { timeoutMs: DEADLINE_MS, maxAnswerBytes: MAX_WHOLE_RESPONSE_BYTES }
  const answer = await calls.send(makeStoredRequest(channel, question), options).catch(throwUnanswered)
  if (answer.status >= 200 && answer.status < 300)
    return { ...answer, body: withoutKeys(channel, answer.body) }
  const { names, secrets } = listUpstreamTexts([{ channel, upstreamModel: '' }], '')
  const { error } = readUpstreamRefusal(channel, answer.status, answer.body, answer.header('retry-after'))
  throw maskError(error, (text) => mask(text, names, secrets))
}

export const toReply = ({ status, header, body }: MediaAnswer): Reply => ({
  type: 'full',
  status,
  headers: [['content-type', header('content-type') ?? 'application/json']],
  body,
})

/** Deletes by `ask`, and forgets what is deleted, or what the upstream no longer has. @throws what `ask` throws */
export async function deleteAndForget<Answered>(
  ask: () => Promise<Answered>,
  forget: () => Promise<unknown>,
): Promise<Answered> {
  try {
    const answered = await ask()
    await forget()
    return answered
  } catch (error) {
    if ((error as { status?: number }).status === 404) await forget()
    throw error
  }
}
