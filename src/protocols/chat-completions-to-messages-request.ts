/**
 * A chat-completions request as the messages protocol has it. What has no counterpart is left out and named.
 * Source: translation, "Request, to `messages`".
 */
import { Buffer } from 'node:buffer'
import { ESTIMATE_OUTPUT_CAP_TOKENS } from '../../schemas/catalog.ts'
import {
  type TranslatableChatRequest,
  translatableChatRequest,
} from '../../schemas/chat-completions-conversation.ts'
import { translateConversation } from './chat-completions-to-messages-conversation.ts'
import { isForced, translateTools } from './chat-completions-to-messages-tools.ts'
import { invalidField, parseJsonBody, readClientJson } from './client-json.ts'
import type { WireRequest } from './dialect.ts'
import { DroppedFields } from './dropped-fields.ts'
import { mayThink, toolsUsed } from './messages-turns.ts'

export interface MessagesTarget {
  readonly model: string
  readonly stream: boolean
  /** The client's explicit limit, tokens; null when omitted. */
  readonly outputLimit: number | null
  /** The model's ceiling; null when it is not known. */
  readonly outputCeiling: number | null
}

/** Fields without a counterpart, in the order in which they are named. */
const WITHOUT_COUNTERPART = [
  'response_format',
  'n',
  'seed',
  'logprobs',
  'top_logprobs',
  'logit_bias',
  'frequency_penalty',
  'presence_penalty',
  'audio',
  'function_call',
  'functions',
  'modalities',
  'prediction',
  'service_tier',
  'verbosity',
  'web_search_options',
] as const

const THINKING_BUDGET_TOKENS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 4096,
}
const MIN_THINKING_BUDGET_TOKENS = 1024
const MAX_TEMPERATURE = 1
/** The least that the protocol takes of a model that thinks. */
const MIN_THINKING_TOP_P = 0.95
const MAX_USER_ID_CHARS = 256

/** @throws Failure `invalid_request` with a message that names the field */
export function translateRequest(body: Buffer, target: MessagesTarget): WireRequest {
  const request = readClientJson(translatableChatRequest, parseJsonBody(body))
  const dropped = new DroppedFields()
  for (const field of WITHOUT_COUNTERPART) if (request[field] != null) dropped.add(field)
  const { system, turns } = translateConversation(request.messages)
  const { tools, choice } = translateTools(request, toolsUsed(turns), dropped)
  const limit = target.outputLimit ?? target.outputCeiling ?? ESTIMATE_OUTPUT_CAP_TOKENS
  const budget = thinkingBudget(
    request,
    limit,
    { isForced: isForced(choice), mayThink: mayThink(turns) },
    dropped,
  )
  const wire = {
    model: target.model,
    max_tokens: limit,
    ...(system.length === 0 ? {} : { system }),
    messages: turns,
    ...(tools.length === 0 ? {} : { tools }),
    ...(choice === null ? {} : { tool_choice: choice }),
    ...(budget === null ? {} : { thinking: { type: 'enabled', budget_tokens: budget } }),
    ...sampling(request, budget !== null, dropped),
    ...stopSequences(request, dropped),
    ...metadata(request, dropped),
    ...(target.stream ? { stream: true } : {}),
  }
  return { body: printed(wire), dropped: dropped.all() }
}

/** JSON can be read at any depth, but not be printed at any. */
function printed(wire: object): Buffer {
  try {
    return Buffer.from(JSON.stringify(wire), 'utf8')
  } catch {
    throw invalidField('', 'it is nested too deeply')
  }
}

/** Tokens that the model may think for; null where it does not think. */
function thinkingBudget(
  { reasoning_effort: effort }: TranslatableChatRequest,
  limit: number,
  turn: { readonly isForced: boolean; readonly mayThink: boolean },
  dropped: DroppedFields,
): number | null {
  if (effort == null || effort === 'none') return null
  const leaveOut = (note?: string): null => {
    dropped.add('reasoning_effort', note)
    return null
  }
  if (!Object.hasOwn(THINKING_BUDGET_TOKENS, effort)) return leaveOut()
  if (turn.isForced) return leaveOut('not together with a forced tool_choice')
  if (!turn.mayThink) return leaveOut('the turn to go on with carries no signed thinking_blocks')
  const budget = Math.min(THINKING_BUDGET_TOKENS[effort]!, limit - 1)
  return budget < MIN_THINKING_BUDGET_TOKENS ? leaveOut('max_tokens leaves no room for it') : budget
}

function sampling(request: TranslatableChatRequest, thinks: boolean, dropped: DroppedFields): object {
  const { temperature, top_p: topP } = request
  if (thinks) {
    if (temperature != null && temperature !== MAX_TEMPERATURE)
      dropped.add('temperature', 'not together with reasoning_effort')
    if (topP == null || topP >= MIN_THINKING_TOP_P) return topP == null ? {} : { top_p: topP }
    dropped.add('top_p', 'not below 0.95 together with reasoning_effort')
    return {}
  }
  if (temperature != null && temperature > MAX_TEMPERATURE)
    dropped.add('temperature', 'lowered to 1, the most this model takes')
  // At 1 it changes nothing, and there are models that refuse the two together.
  const sendsTopP = topP != null && !(topP === 1 && temperature != null)
  return {
    ...(temperature == null ? {} : { temperature: Math.min(temperature, MAX_TEMPERATURE) }),
    ...(sendsTopP ? { top_p: topP } : {}),
  }
}

function stopSequences({ stop }: TranslatableChatRequest, dropped: DroppedFields): object {
  const given = typeof stop === 'string' ? [stop] : (stop ?? [])
  const sent = given.filter((sequence) => sequence.trim() !== '')
  if (sent.length < given.length) dropped.add('stop', 'blank sequences')
  return sent.length === 0 ? {} : { stop_sequences: sent }
}

function metadata(request: TranslatableChatRequest, dropped: DroppedFields): object {
  const user = request.user ?? request.safety_identifier ?? ''
  if (user.length > MAX_USER_ID_CHARS) dropped.add('user', 'longer than 256 characters')
  return user === '' || user.length > MAX_USER_ID_CHARS ? {} : { metadata: { user_id: user } }
}
