/** The messages dialect: `POST /v1/messages` and `/v1/messages/count_tokens` in Anthropic's public shapes. */

import type { IncomingHttpHeaders } from 'node:http'
import { BAD_KEY, findNamedModel } from '../../access.ts'
import { type Choice, countHiddenTokens, countPromptTokens, writeScript } from '../../answers/script.ts'
import type { Frame } from '../../answers/sse.ts'
import { makeHexadecimalId, makeSeededRandom, toSeed } from '../../answers/words.ts'
import {
  type Answer,
  type Dialect,
  eventStream,
  jsonAnswer,
  type OpenedRequest,
  type ReceivedRequest,
  SimulatedFailure,
} from '../../dialect.ts'
import type { Directives } from '../../directives/grammar.ts'
import { type ContentBlock, readContent } from './content.ts'
import { invalid } from './fields.ts'
import { type OtherRuns, runOtherModels, toCategory } from './other-models.ts'
import { type MessagesRequest, readMessagesRequest } from './request.ts'
import { type StreamedUsage, toStreamedUsage, wholeUsage } from './usage.ts'

const STOP_REASONS = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' } as const

export const messages: Dialect = {
  name: 'messages',
  endpoints: [
    { method: 'POST', path: /^\/v1\/messages$/, open: openMessages },
    { method: 'POST', path: /^\/v1\/messages\/count_tokens$/, open: openCount },
  ],
  failure: (failure) => {
    const body = errorBody(failure)
    return jsonAnswer(failure.status, body, { 'request-id': body.request_id, ...failure.headers })
  },
  failureFrame: (failure) => ({ event: 'error', data: JSON.stringify(errorBody(failure)), tokens: 0 }),
}

function openMessages(request: ReceivedRequest): OpenedRequest {
  return open(request, false, answerMessages)
}

function openCount(request: ReceivedRequest): OpenedRequest {
  return open(request, true, ({ prompt }, _model, directives) => {
    const tokens = directives.prompt_tokens ?? countPromptTokens(prompt.json)
    return jsonAnswer(200, { input_tokens: tokens })
  })
}

type Answering = (request: MessagesRequest, model: string, directives: Directives) => Answer

function open(request: ReceivedRequest, counting: boolean, answer: Answering): OpenedRequest {
  refuseStrangers(request.headers)
  const asked = readMessagesRequest(request.body, { counting })
  const { model, directives } = findNamedModel(asked.model, (model) => `model: ${model}`)
  return {
    model: asked.model,
    stream: asked.stream,
    directives: [directives, asked.messageDirectives, asked.bodyDirectives],
    answer: (merged) => answer(asked, model, merged),
  }
}

function refuseStrangers(headers: IncomingHttpHeaders): void {
  const key = headers['x-api-key'] ?? /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1]
  if (key === undefined) throw new SimulatedFailure(401, 'invalid_api_key', 'x-api-key header is required')
  if (key === BAD_KEY) throw new SimulatedFailure(401, 'invalid_api_key', 'invalid x-api-key')
  if (headers['anthropic-version'] === undefined) throw invalid('anthropic-version: header is required')
}

function answerMessages(request: MessagesRequest, model: string, directives: Directives): Answer {
  const script = writeScript({ ...request.prompt, model }, directives)
  const { id } = script
  const [choice] = script.choices
  if (choice === undefined) throw new Error('A script has a choice for every one that is asked for.')
  const ending = findEnding(choice, directives)
  const sealsReasoning = directives.reasoning_sealed === true
  const others = runOtherModels(request.others, model, script, directives)
  const own = readContent(choice, { thinks: request.thinks, sealsReasoning, id })
  const content = [...others.blocks, ...own]
  const message = { id: `msg_${id}`, type: 'message', role: 'assistant', model }
  const headers = { 'request-id': `req_${id}` }
  if (!request.stream) {
    const usage = withIterations(wholeUsage(script.usage, directives), others)
    const body = {
      ...message,
      model: others.model,
      content: content.map(({ whole }) => whole),
      ...ending,
      usage,
    }
    return { ...jsonAnswer(200, body, headers), tokens: script.usage.completion }
  }
  const streamed = toStreamedUsage(script.usage, directives)
  const usage = { ...streamed, end: withIterations(streamed.end, others) }
  return eventStream(
    printFrames({ message, content, ending, usage, hidden: countHiddenTokens(script) }),
    headers,
  )
}

const withIterations = (usage: unknown, { iterations }: OtherRuns): unknown =>
  usage === undefined || iterations === undefined ? usage : { ...(usage as object), iterations }

function findEnding({ finish, stopSequence }: Choice, { refused, code }: Directives) {
  if (refused === true) {
    const stop_details = {
      type: 'refusal',
      category: toCategory(code),
      explanation: 'It cannot be answered.',
    }
    return { stop_reason: 'refusal', stop_sequence: null, stop_details }
  }
  return {
    stop_reason: stopSequence === null ? STOP_REASONS[finish] : 'stop_sequence',
    stop_sequence: stopSequence,
  }
}

type Streamed = {
  readonly message: Record<string, unknown>
  readonly content: readonly ContentBlock[]
  readonly ending: Record<string, unknown>
  readonly usage: StreamedUsage
  readonly hidden: number
}

function* printFrames({ message, content, ending, usage, hidden }: Streamed): Iterator<Frame, void> {
  const begun = { ...message, content: [], stop_reason: null, stop_sequence: null, usage: usage.start }
  let emitted = hidden
  yield event('message_start', { message: begun })
  for (const [index, block] of content.entries()) {
    emitted += block.openingTokens
    yield event('content_block_start', { index, content_block: block.opening }, block.openingTokens)
    if (index === 0) yield event('ping', {})
    const head = `{"type":"content_block_delta","index":${index},"delta":`
    for (const { json, tokens } of block.deltas) {
      emitted += tokens
      yield { event: 'content_block_delta', data: `${head}${json}}`, tokens }
    }
    yield event('content_block_stop', { index })
    const soFar = usage.afterBlock(emitted)
    if (soFar !== undefined)
      yield event('message_delta', { delta: { stop_reason: null, stop_sequence: null }, usage: soFar })
  }
  yield event('message_delta', { delta: ending, usage: usage.end })
  yield { ...event('message_stop', {}), terminator: true }
}

function event(type: string, fields: Record<string, unknown>, tokens = 0): Frame {
  return { event: type, data: JSON.stringify({ type, ...fields }), tokens }
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

function errorBody({ status, message }: SimulatedFailure) {
  const type = ERROR_TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
  const requestId = makeHexadecimalId(makeSeededRandom(toSeed(message)))
  return { type: 'error', error: { type, message }, request_id: `req_${requestId}` }
}
