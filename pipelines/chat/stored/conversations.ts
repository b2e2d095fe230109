/**
 * `/v1/conversations`: asked of the channel that keeps each conversation; a new one goes to a channel that keeps some.
 * Free. See docs/api-rules.md, "Conversations".
 */
import type { ZodType } from 'zod'
import { changedConversation, newConversation, newItems } from '../../../schemas/chat/conversations.ts'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import type { StoredQuestion } from '../../../src/channels/chat/responses.ts'
import type { MediaAnswer } from '../../../src/channels/media/adapter.ts'
import { pathPart } from '../../../src/channels/media/request.ts'
import { scanFields } from '../../../src/core/json/scanner/tape.ts'
import { applySplices, removal } from '../../../src/core/json/splice.ts'
import { countLinkedTokens } from '../../../src/core/pricing/estimate.ts'
import { estimateInputTokens } from '../../../src/core/pricing/text-tokens.ts'
import {
  type Catalog,
  type Model,
  mayCall,
  notAllowed,
  selectCallable,
} from '../../../src/core/routing/catalog.ts'
import type { Handler, Reply } from '../../../src/http/handler.ts'
import type { StoredResponses } from '../../../src/postgres/requests/repository.ts'
import { parseFields, toText } from '../../../src/protocols/loose.ts'
import { readJsonBody } from '../../../src/protocols/request/client-json.ts'
import { withoutForeignFields } from '../../../src/protocols/request/foreign-fields.ts'
import { CONVERSATION_NAMES } from '../../../src/protocols/request/known-names.ts'
import { findLinkedParts } from '../../../src/protocols/request/linked-parts.ts'
import type { CallAccess, Caller } from '../../calls/authenticate.ts'
import { UpstreamRefusal } from '../../calls/upstream-error.ts'
import { replyForFree } from '../../media/free-call.ts'
import type { LinkChecker } from '../select-model.ts'
import {
  askChannel,
  deleteAndForget,
  findKeepingChannel,
  forwardQuery,
  type KeepingChannels,
  readAccountId,
  readId,
  toReply,
} from './ask-channel.ts'
import { awaitStored, type ConversationFinder, findConversation } from './state.ts'

const PROTOCOL = 'responses'

export interface ConversationRecords extends ConversationFinder {
  readonly storeConversation: StoredResponses['storeConversation']
  readonly addToConversation: StoredResponses['addToConversation']
  readonly forgetConversation: StoredResponses['forgetConversation']
}

export interface KeptConversations {
  readonly access: CallAccess
  readonly channels: KeepingChannels
  readonly links: LinkChecker
  readonly conversations: ConversationRecords
}

/** @throws Failure `invalid_request` */
const readBody = <Body>(schema: ZodType<Body>, body: Buffer): Body =>
  readJsonBody(withoutForeignFields(PROTOCOL, schema), body, CONVERSATION_NAMES)

/**
 * Returns the tokens that the items of a body are estimated at, by the model that counts most for a link: any may go on
 * with the conversation. @throws Failure `invalid_request` for a link
 */
async function countStoredTokens(
  { links: checker, access: { catalog } }: KeptConversations,
  body: Buffer,
  items: unknown,
): Promise<number> {
  const links = findLinkedParts(items)
  if (links.urls.length > 0) await checker.checkLinks(links.urls)
  const span = scanFields(body).fields.get('items')
  const bytes = span === undefined ? 0 : span.end - span.start
  return (
    estimateInputTokens(bytes) +
    Math.max(0, ...catalog().models.map(({ entry }) => countLinkedTokens(entry, links)))
  )
}

/** Returns the models that the key may call, or the one that the client names. @throws Failure `model_*` */
function listModels(catalog: Catalog, { known }: Caller, name: string | null | undefined): readonly Model[] {
  if (name == null) return catalog.models.filter((model) => mayCall(catalog, known, model))
  const model = selectCallable(catalog, name)
  if (mayCall(catalog, known, model)) return [model]
  throw notAllowed(model)
}

/** Returns the channel for a new conversation: the first in priority. @throws Failure `invalid_request` */
function chooseChannel(models: readonly Model[], catalog: Catalog): ChannelEntry {
  const able = models
    .flatMap((model) => catalog.routes(model, PROTOCOL).map(({ channel }) => channel))
    .filter(({ keeps_conversations }) => keeps_conversations)
  const [first] = able.toSorted((a, b) => a.priority - b.priority)
  if (first !== undefined) return first
  throw new Failure(
    'invalid_request',
    'No channel that this key may use keeps conversations; go on with previous_response_id, or send the full history in input.',
  )
}

/** Returns the client's body without the field that is ours. */
function withoutModel(body: Buffer): Buffer {
  const { fields } = scanFields(body)
  const span = fields.get('model')
  if (span === undefined) return body
  return fields.size === 1 ? Buffer.from('{}') : applySplices(body, [removal(body, span)])
}

/** Notes where a conversation is. What cannot be noted cannot be used: it is removed again. */
async function note(
  deps: KeptConversations,
  caller: Caller,
  channel: ChannelEntry,
  id: string,
  tokens: number,
) {
  const noted = { accountId: readAccountId(caller), id, channelId: channel.id, tokens }
  await deps.conversations
    .storeConversation(noted)
    .catch(async (error: Error & { readonly code?: string }) => {
      await askChannel(deps.channels, channel, { method: 'DELETE', kind: 'conversations', id }).catch(
        () => {},
      )
      if (error.code === 'limit_reached') throw new Failure('conflict', error.message)
      throw new Failure(
        'service_unavailable',
        'Conversations cannot be begun at the moment. Try again shortly.',
        { internal: error.message },
      )
    })
}

const readAnswerId = ({ body }: MediaAnswer): string => toText(parseFields(body.toString('utf8'))?.id)

export const beginConversation = (deps: KeptConversations): Handler =>
  replyForFree(deps.access, async (caller) => {
    const catalog = deps.access.catalog()
    const given = caller.request.body.length === 0 ? Buffer.from('{}') : caller.request.body
    const { model: name, items } = readBody(newConversation, given)
    const channel = chooseChannel(listModels(catalog, caller, name), catalog)
    const tokens = await countStoredTokens(deps, given, items)
    const body = withoutModel(given)
    const answer = await askChannel(deps.channels, channel, {
      method: 'POST',
      kind: 'conversations',
      id: '',
      body,
    })
    const id = readAnswerId(answer)
    if (id === '')
      throw new Failure('upstream_error', 'The upstream answered with something that is no conversation.')
    await note(deps, caller, channel, id, tokens)
    return toReply(answer)
  })

/** What is asked below the path of a conversation. */
type QuestionBelow = Omit<StoredQuestion, 'kind' | 'id' | 'query'>

/** Asks the channel of a conversation for what is below its path. @throws Failure `not_found` */
async function askAbout(deps: KeptConversations, caller: Caller, question: QuestionBelow): Promise<Reply> {
  const id = readId(caller, 'id')
  const { channelId } = await findConversation(deps.conversations, readAccountId(caller), id)
  const channel = findKeepingChannel(deps.access.catalog(), channelId)
  const query = forwardQuery(caller.request.query)
  return toReply(await askChannel(deps.channels, channel, { kind: 'conversations', id, query, ...question }))
}

export const showConversation = (deps: KeptConversations): Handler =>
  replyForFree(deps.access, (caller) => askAbout(deps, caller, { method: 'GET' }))

export const changeConversation = (deps: KeptConversations): Handler =>
  replyForFree(deps.access, (caller) => {
    readJsonBody(changedConversation, caller.request.body)
    return askAbout(deps, caller, { method: 'POST', body: caller.request.body })
  })

export const deleteConversation = (deps: KeptConversations): Handler =>
  replyForFree(deps.access, (caller) =>
    deleteAndForget(
      () => askAbout(deps, caller, { method: 'DELETE' }),
      () => deps.conversations.forgetConversation(readAccountId(caller), readId(caller, 'id')),
    ),
  )

export const listConversationItems = (deps: KeptConversations): Handler =>
  replyForFree(deps.access, (caller) => askAbout(deps, caller, { method: 'GET', below: '/items' }))

export const addConversationItems = (deps: KeptConversations): Handler =>
  replyForFree(deps.access, async (caller) => {
    const { body } = caller.request
    const { items } = readBody(newItems, body)
    const tokens = await countStoredTokens(deps, body, items)
    const add = (count: number) =>
      deps.conversations.addToConversation(readAccountId(caller), readId(caller, 'id'), count)
    // Before they are there: what is stored is counted, whatever becomes of this process and of the answer.
    await awaitStored(add(tokens))
    return askAbout(deps, caller, { method: 'POST', below: '/items', body }).catch(async (error: unknown) => {
      if (isRefusal(error)) await add(-tokens).catch(() => {})
      throw error
    })
  })

/** Returns whether an upstream has refused a request, so that nothing came of it. */
const isRefusal = (error: unknown): boolean =>
  error instanceof UpstreamRefusal && error.status >= 400 && error.status < 500

const printItemPath = (caller: Caller): string => `/items/${pathPart(readId(caller, 'item_id'))}`

export const showConversationItem = (deps: KeptConversations): Handler =>
  replyForFree(deps.access, (caller) =>
    askAbout(deps, caller, { method: 'GET', below: printItemPath(caller) }),
  )

export const deleteConversationItem = (deps: KeptConversations): Handler =>
  replyForFree(deps.access, (caller) =>
    askAbout(deps, caller, { method: 'DELETE', below: printItemPath(caller) }),
  )
