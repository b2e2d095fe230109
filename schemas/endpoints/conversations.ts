/** Endpoints of conversations that an upstream keeps. */
import { z } from 'zod'
import { changedConversation, newConversation, newItems } from '../chat/conversations.ts'
import { jsonAnswer, type RouteDescription } from './endpoint.ts'
import { STORED_FAILURES } from './stored-responses.ts'

const OWN = 'Free. Only those of the account.'

const id = z.string().describe('Id of the conversation, such as conv_1.')
const item_id = z.string().describe('Id of the item, such as msg_1.')
const ofOne = { pathParameters: z.object({ id }) } as const
const ofItem = { pathParameters: z.object({ id, item_id }) } as const
const include = z.string().optional().describe('Passed on.')

const kept = { tag: 'Chat', key: 'anywhere', failures: STORED_FAILURES, details: OWN } as const

const conversation = z.looseObject({ id: z.string(), object: z.literal('conversation'), created_at: z.int() })
const deleted = z.looseObject({ id: z.string(), object: z.string(), deleted: z.literal(true) })
const list = z.looseObject({ object: z.literal('list'), data: z.array(z.looseObject({})) })
const one = z.looseObject({ id: z.string(), type: z.string() })

export const CONVERSATION_ENDPOINTS: readonly RouteDescription[] = [
  {
    ...kept,
    name: 'beginConversation',
    summary: 'Begin a conversation at an upstream that keeps it.',
    details: `${OWN} Where no channel that the key may use keeps conversations, it is 400.`,
    failures: [...STORED_FAILURES, 'model_not_found', 'model_not_allowed', 'request_too_large'],
    body: { name: 'NewConversation', schema: newConversation.optional() },
    example: { items: [{ role: 'user', content: 'Hello!' }] },
    answers: [jsonAnswer('Conversation', conversation)],
  },
  {
    ...kept,
    ...ofOne,
    name: 'showConversation',
    summary: 'Read a conversation.',
    answers: [jsonAnswer('Conversation', conversation)],
  },
  {
    ...kept,
    ...ofOne,
    name: 'changeConversation',
    summary: 'Change the metadata of a conversation.',
    failures: [...STORED_FAILURES, 'request_too_large'],
    body: { name: 'ChangedConversation', schema: changedConversation },
    example: { metadata: { topic: 'bread' } },
    answers: [jsonAnswer('Conversation', conversation)],
  },
  {
    ...kept,
    ...ofOne,
    name: 'deleteConversation',
    summary: 'Delete a conversation.',
    answers: [jsonAnswer('ConversationDeleted', deleted)],
  },
  {
    ...kept,
    ...ofOne,
    name: 'listConversationItems',
    summary: 'List the items of a conversation.',
    query: z.object({
      limit: z.string().optional(),
      order: z.string().optional(),
      after: z.string().optional(),
      include,
    }),
    answers: [jsonAnswer('ConversationItems', list)],
  },
  {
    ...kept,
    ...ofOne,
    name: 'addConversationItems',
    summary: 'Add items to a conversation.',
    details: `${OWN} The next call in it is billed for reading them.`,
    failures: [...STORED_FAILURES, 'request_too_large'],
    query: z.object({ include }),
    body: { name: 'NewConversationItems', schema: newItems },
    example: { items: [{ role: 'user', content: 'Hello!' }] },
    answers: [jsonAnswer('ConversationItems', list)],
  },
  {
    ...kept,
    ...ofItem,
    name: 'showConversationItem',
    summary: 'Read an item of a conversation.',
    query: z.object({ include }),
    answers: [jsonAnswer('ConversationItem', one)],
  },
  {
    ...kept,
    ...ofItem,
    name: 'deleteConversationItem',
    summary: 'Delete an item of a conversation.',
    answers: [jsonAnswer('Conversation', conversation)],
  },
]
