/**
 * Reads events that are too long to be buffered, as their bytes pass, in pieces of any size: counts the output, and
 * finds usage, an error and the end of the answer at any place.
 */
import type { Buffer } from 'node:buffer'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { type AnswerFacts, PlaceScanner } from '../answer/place-scan.ts'
import { counts, ERROR, FINISH, list, object, type Place, SAID } from '../answer/places.ts'
import type { LooseObject } from '../loose.ts'
import type { LongEventReader } from './framer.ts'
import { SsePayload } from './payload.ts'

const DELTA = object({
  content: SAID,
  reasoning_content: SAID,
  reasoning: SAID,
  refusal: SAID,
  tool_calls: list(object({ function: object({ arguments: SAID }) })),
  function_call: object({ arguments: SAID }),
})
/** The report has one count for each tool. */
const SERVER_TOOL_CALLS: Place = { fields: [], rest: { is: 'sum', name: 'server_tool_calls' } }
/** Of xAI. */
const CALL_COUNTS = [
  ...['web_search_calls', 'x_search_calls', 'code_interpreter_calls', 'file_search_calls', 'mcp_calls'],
  ...['document_search_calls', 'image_generation_calls'],
]
const SERVER_SIDE_TOOLS = object(counts(...CALL_COUNTS))
const SERVICE_TIER: Place = { is: 'text', name: 'service_tier' }
const INPUT_DETAILS = object({
  ...counts('cached_tokens', 'cache_write_tokens', 'cache_creation_input_tokens'),
  cache_creation: object(counts('ephemeral_1h_input_tokens')),
  audio_tokens: { is: 'count', name: 'input_audio' },
  image_tokens: { is: 'count', name: 'input_image' },
})
const OUTPUT_DETAILS = object({
  ...counts('reasoning_tokens'),
  audio_tokens: { is: 'count', name: 'output_audio' },
  image_tokens: { is: 'count', name: 'output_image' },
})
const CHAT_COMPLETIONS = object({
  choices: list(object({ delta: DELTA, message: DELTA, finish_reason: FINISH })),
  usage: object({
    ...counts('prompt_tokens', 'completion_tokens', 'total_tokens'),
    ...counts('prompt_cache_hit_tokens', 'cached_tokens', 'cache_read_input_tokens', 'num_cached_tokens'),
    prompt_tokens_details: INPUT_DETAILS,
    completion_tokens_details: OUTPUT_DETAILS,
    server_tool_use: SERVER_TOOL_CALLS,
    ...counts('num_sources_used'),
    server_side_tool_usage_details: SERVER_SIDE_TOOLS,
  }),
  service_tier: SERVICE_TIER,
  error: ERROR,
})

const TYPE: Place = { is: 'text', name: 'type' }
const MESSAGES_COUNTS = {
  ...counts('input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'),
  cache_creation: object(counts('ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens')),
  service_tier: SERVICE_TIER,
  output_tokens_details: object(counts('thinking_tokens')),
  server_tool_use: SERVER_TOOL_CALLS,
}
const MESSAGES_USAGE = object({
  ...MESSAGES_COUNTS,
  iterations: list({
    ...object({ ...MESSAGES_COUNTS, type: { is: 'text', name: 'iteration' } }),
    is: 'iteration',
  }),
})
const MESSAGES_DELTA = object({ text: SAID, thinking: SAID, partial_json: SAID, content: SAID })
const MESSAGES = object({
  type: TYPE,
  delta: MESSAGES_DELTA,
  content_block: MESSAGES_DELTA,
  message: object({ usage: MESSAGES_USAGE }),
  usage: MESSAGES_USAGE,
  error: ERROR,
})

const RESPONSES = object({
  type: TYPE,
  delta: SAID,
  item: object({
    type: { is: 'text', name: 'item' },
    name: { is: 'text', name: 'item_name' },
    action: object({ type: { is: 'text', name: 'item_action' } }),
  }),
  response: object({
    id: { is: 'text', name: 'response_id' },
    usage: object({
      ...counts('input_tokens', 'output_tokens', 'total_tokens'),
      input_tokens_details: INPUT_DETAILS,
      output_tokens_details: OUTPUT_DETAILS,
      server_side_tool_usage_details: SERVER_SIDE_TOOLS,
    }),
    service_tier: SERVICE_TIER,
    error: ERROR,
  }),
  error: ERROR,
})

/** The meter of generate-content scans every event, long or not. */
type MeteredByFrame = Exclude<ChatProtocol, 'generate-content'>

const PLACES: Readonly<Record<MeteredByFrame, Place>> = {
  'chat-completions': CHAT_COMPLETIONS,
  messages: MESSAGES,
  responses: RESPONSES,
}

export class LongEvents implements LongEventReader {
  readonly #protocol: MeteredByFrame
  readonly #onFacts: (facts: AnswerFacts) => void
  /** Made for the first long event. */
  #payload: SsePayload | null = null

  /** @param onFacts called when the payload of an event has ended */
  constructor(protocol: MeteredByFrame, onFacts: (facts: AnswerFacts) => void) {
    this.#protocol = protocol
    this.#onFacts = onFacts
  }

  push(bytes: Buffer, start: number, end: number): void {
    this.#payload ??= new SsePayload(new PlaceScanner(PLACES[this.#protocol], this.#onFacts))
    this.#payload.push(bytes, start, end)
  }
}

/**
 * Returns the counts of a long event in the form in which its protocol reports them; null where it reports none. No
 * two counts of a report have the same name, so that each part of it may have all of them.
 */
export function usageOf({ usage, iterations }: AnswerFacts): LooseObject | null {
  if (usage === null) return null
  const { server_tool_calls, input_audio, input_image, output_audio, output_image } = usage
  const ofInput = { ...usage, audio_tokens: input_audio, image_tokens: input_image }
  const ofOutput = { ...usage, audio_tokens: output_audio, image_tokens: output_image }
  return {
    ...usage,
    prompt_tokens_details: ofInput,
    completion_tokens_details: ofOutput,
    cache_creation: usage,
    input_tokens_details: ofInput,
    output_tokens_details: ofOutput,
    ...(server_tool_calls !== undefined && { server_tool_use: { calls: server_tool_calls } }),
    ...(iterations !== null && { iterations }),
    ...(CALL_COUNTS.some((name) => usage[name] !== undefined) && { server_side_tool_usage_details: usage }),
  }
}
