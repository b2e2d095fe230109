/** The responses dialect: `POST /v1/responses` in OpenAI's public shapes. */

import { findNamedModel, refuseBadKey } from '../../access.ts'
import { countPromptTokens, NO_USAGE, type Script, type Usage, writeScript } from '../../answers/script.ts'
import type { Frame } from '../../answers/sse.ts'
import { makeId, makeSeededRandom, toSeed } from '../../answers/words.ts'
import {
  type Answer,
  type Dialect,
  eventStream,
  failuresAs,
  isObject,
  jsonAnswer,
  type OpenedRequest,
  parseJsonObject,
  type ReceivedRequest,
  SimulatedFailure,
} from '../../dialect.ts'
import type { Directives, UsageMode } from '../../directives/grammar.ts'
import type { World } from '../../world.ts'
import { errorBody } from '../chat-completions/error.ts'
import { takeInBackground } from './background.ts'
import { CONVERSATION_ENDPOINTS } from './conversations.ts'
import { invalid, missing } from './input.ts'
import { type OutputItem, outputItems } from './items.ts'
import { KEPT_ENDPOINTS } from './kept.ts'
import { type ResponsesRequest, readResponsesRequest } from './request.ts'

export const responses: Dialect = {
  name: 'responses',
  endpoints: [
    { method: 'POST', path: /^\/v1\/responses$/, open },
    { method: 'POST', path: /^\/v1\/responses\/compact$/, open: openCompaction },
    { method: 'POST', path: /^\/v1\/responses\/input_tokens$/, open: openCount },
    ...KEPT_ENDPOINTS,
    ...CONVERSATION_ENDPOINTS,
  ],
  failure: failuresAs(errorBody),
  failureFrame: ({ message, param }, eventsBefore) => ({
    event: 'error',
    data: JSON.stringify({
      type: 'error',
      code: 'server_error',
      message,
      param,
      sequence_number: eventsBefore,
    }),
    tokens: 0,
  }),
}

function open(request: ReceivedRequest): OpenedRequest {
  refuseBadKey(request.headers)
  const asked = readResponsesRequest(request.body, request.world)
  const { model, directives } = findNamedModel(
    asked.model,
    (model) =>
      new SimulatedFailure(400, 'model_not_found', `The requested model '${model}' does not exist.`, {
        param: 'model',
      }),
  )
  return {
    model: asked.model,
    stream: asked.stream,
    directives: [directives, asked.messageDirectives, asked.bodyDirectives],
    answer: (merged) => answer(asked, model, merged, request.world),
  }
}

function openCount(request: ReceivedRequest): OpenedRequest {
  const { model, directives } = open(request)
  const { prompt } = readResponsesRequest(request.body, request.world)
  return {
    model,
    directives,
    answer: ({ prompt_tokens: tokens }) =>
      jsonAnswer(200, {
        object: 'response.input_tokens',
        input_tokens: tokens ?? countPromptTokens(prompt.json),
      }),
  }
}

/** Fields of a request that the vendor's compaction does not have. */
const NOT_COMPACTED = ['background', 'conversation', 'max_output_tokens', 'store', 'stream'] as const

/** Keeps what the user has said, and seals the rest in one item. */
function openCompaction(request: ReceivedRequest): OpenedRequest {
  const opened = open(request)
  const body = parseJsonObject(request.body)
  for (const field of NOT_COMPACTED)
    if (body[field] !== undefined) throw invalid(field, `Unknown parameter: '${field}'.`)
  const { prompt, input } = readResponsesRequest(request.body, request.world)
  const said = input.filter((item) => isObject(item) && item.role === 'user')
  return {
    ...opened,
    answer(directives) {
      const model = opened.model ?? ''
      const { usage, created, id } = writeScript({ ...prompt, model }, directives)
      return {
        ...jsonAnswer(200, {
          id: `resp_${makeId(id)}`,
          object: 'response.compaction',
          created_at: created,
          output: [
            ...said,
            { id: `cmp_${makeId(id)}`, type: 'compaction', encrypted_content: makeId(prompt.json) },
          ],
          usage: makeUsage(usage, directives.usage),
        }),
        tokens: usage.completion,
      }
    },
  }
}

function answer(request: ResponsesRequest, model: string, directives: Directives, world: World): Answer {
  if (directives.strict_input === true) refuseLoose(request)
  const script = writeScript({ ...request.prompt, model }, directives)
  const [choice] = script.choices
  if (choice === undefined) throw new Error('A script has a choice for every one that is asked for.')
  const id = makeId(JSON.stringify([script.id, request.input, request.repeated]))
  const random = makeSeededRandom(toSeed(id))
  const response = {
    ...makeResponse(request, script, model, id),
    ...(directives.service_tier !== undefined && { service_tier: directives.service_tier }),
  }
  const sealsReasoning = directives.reasoning_sealed ?? request.sealsReasoning
  const items = outputItems(choice, { random, sealsReasoning, isCut: choice.finish === 'length' })
  const ending = findEnding(choice.finish)
  const usage = makeUsage(script.usage, directives.usage)
  const finished = { ...response, ...ending, output: items.map(({ whole }) => whole), usage }
  const { conversation, input } = request
  if (conversation !== null) world.conversations.add(conversation, [...input, ...finished.output])
  const keep = (id: string) =>
    world.responses.keep(id, {
      response: finished,
      input,
      output: finished.output,
      json: request.prompt.json + JSON.stringify(finished.output),
    })
  if (request.isBackground) {
    const half = { ...script.usage, completion: Math.floor(script.usage.completion / 2) }
    const usageSoFar = makeUsage({ ...half, reasoning: 0 }, directives.usage)
    return takeInBackground({
      world,
      model: request.model,
      directives,
      begun: response,
      finished,
      usage,
      usageSoFar,
      keep,
    })
  }
  if (request.isStored) keep(finished.id)
  if (!request.stream) return { ...jsonAnswer(200, finished), tokens: script.usage.completion }
  const begun = { ...response, usage: directives.usage === 'early' ? usage : null }
  return eventStream(printFrames(begun, items, finished))
}

/** Refuses what some upstreams refuse, although the public interface takes it. */
function refuseLoose({ isInputString, hasInstructions }: ResponsesRequest): void {
  if (isInputString) throw invalid('input', 'Input must be a list.')
  if (!hasInstructions) throw missing('instructions')
}

function makeResponse(request: ResponsesRequest, { created }: Script, model: string, id: string) {
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: created,
    status: 'in_progress',
    background: false,
    error: null as unknown,
    incomplete_details: null as unknown,
    model,
    output: [] as unknown[],
    ...request.repeated,
  }
}

const findEnding = (finish: string) =>
  finish === 'length'
    ? { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
    : { status: 'completed' }

function makeUsage(usage: Usage, mode: UsageMode | undefined): unknown {
  if (mode === 'none') return null
  return wireUsage(mode === 'zero' ? NO_USAGE : usage)
}

/** Counts that few providers report are only there if they are not 0. */
function wireUsage(usage: Usage) {
  const { prompt, cached, cacheWrite, completion, reasoning, inputAudio, outputAudio } = usage
  const tools = usage.searches + usage.pictures
  return {
    input_tokens: prompt,
    input_tokens_details: {
      cached_tokens: cached,
      ...(cacheWrite > 0 ? { cache_write_tokens: cacheWrite } : {}),
      ...(inputAudio > 0 ? { audio_tokens: inputAudio } : {}),
    },
    output_tokens: completion,
    output_tokens_details: {
      reasoning_tokens: reasoning,
      ...(outputAudio > 0 ? { audio_tokens: outputAudio } : {}),
    },
    total_tokens: prompt + completion,
    ...(tools > 0 ? { num_server_side_tools_used: tools } : {}),
  }
}

/** Yields the items one after the other, including calls and server tools. */
function* printFrames(
  begun: Record<string, unknown>,
  items: readonly OutputItem[],
  finished: Record<string, unknown>,
): Iterator<Frame, void> {
  let sequence = 0
  const frame = (type: string, fields: Record<string, unknown>, tokens = 0): Frame => {
    const data = JSON.stringify({ type, ...fields, sequence_number: sequence })
    sequence += 1
    return { event: type, data, tokens }
  }
  yield frame('response.created', { response: begun })
  yield frame('response.in_progress', { response: begun })
  for (const [index, { whole, opening, events }] of items.entries()) {
    yield frame('response.output_item.added', { output_index: index, item: opening })
    const at = { item_id: whole.id, output_index: index }
    for (const { type, fields, tokens } of events) yield frame(type, { ...at, ...fields }, tokens)
    yield frame('response.output_item.done', { output_index: index, item: whole })
  }
  yield { ...frame(`response.${finished.status}`, { response: finished }), terminator: true }
}
