/** The chat-completions dialect: `POST /v1/chat/completions` and `GET /v1/models` in OpenAI's public shapes. */

import { findNamedModel, refuseBadKey } from '../../access.ts'
import { type TokenLogprob, wireLogprobs } from '../../answers/logprobs.ts'
import { type Choice, inTurn, NO_USAGE, type Script, type Usage, writeScript } from '../../answers/script.ts'
import type { Frame } from '../../answers/sse.ts'
import {
  type Answer,
  type Dialect,
  eventStream,
  failuresAs,
  jsonAnswer,
  type OpenedRequest,
  openWith,
  type ReceivedRequest,
  SimulatedFailure,
} from '../../dialect.ts'
import type { Directives } from '../../directives/grammar.ts'
import { errorBody } from './error.ts'
import { type ChatRequest, readChatRequest, readPrompt } from './request.ts'
import { fallen, type StreamedUsage, toStreamedUsage, wholeUsage, wireUsage } from './usage.ts'

const LISTED_MODELS = ['sim-small', 'sim-medium', 'sim-large', 'sim-reasoner']
const EPOCH_SECONDS = 1_735_689_600

export const chatCompletions: Dialect = {
  name: 'chat-completions',
  endpoints: [
    { method: 'POST', path: /^\/v1\/chat\/completions$/, open: openChat },
    { method: 'GET', path: /^\/v1\/models$/, open: openModels },
  ],
  failure: failuresAs(errorBody),
}

function openModels(request: ReceivedRequest): OpenedRequest {
  refuseBadKey(request.headers)
  const data = LISTED_MODELS.map((id) => ({
    id,
    object: 'model',
    created: EPOCH_SECONDS,
    owned_by: 'simulator',
  }))
  return openWith({ object: 'list', data })
}

function openChat(request: ReceivedRequest): OpenedRequest {
  refuseBadKey(request.headers)
  const chat = readChatRequest(request.body)
  const { model, directives } = findNamedModel(
    chat.model,
    (model) => `The model \`${model}\` does not exist or you do not have access to it.`,
  )
  return {
    model: chat.model,
    stream: chat.stream,
    directives: [directives, chat.messageDirectives, chat.bodyDirectives],
    answer: (merged) => answerChat(chat, model, merged),
  }
}

function answerChat(chat: ChatRequest, model: string, directives: Directives): Answer {
  if (directives.fault?.kind === 'no_stream_options' && chat.hasStreamOptions) {
    const message = 'Unrecognized request argument supplied: stream_options'
    throw new SimulatedFailure(400, 'simulated', message, { param: 'stream_options' })
  }
  const script = writeScript(readPrompt(chat, model), directives)
  const usage = wholeUsage(script.usage, directives)
  const base = makeBase(script, model, directives.service_tier)
  if (!chat.stream) {
    const body = {
      ...base('chat.completion'),
      choices: script.choices.map(makeChoice),
      usage,
    }
    return { ...jsonAnswer(200, body), tokens: script.usage.completion }
  }
  const head = base('chat.completion.chunk')
  const chunks = new ChunkWriter(head, script, chat.includeUsage, directives)
  return eventStream(chunks.frames())
}

/** Makes the fields that every body and chunk begins with: byte for byte the same for the same script. */
function makeBase(
  script: Script,
  model: string,
  serviceTier = 'default',
): (object: string) => Record<string, unknown> {
  const id = `chatcmpl-${script.id}`
  const { created } = script
  return (object) => ({
    id,
    object,
    created,
    model,
    service_tier: serviceTier,
    system_fingerprint: 'fp_simulator',
  })
}

function makeChoice(choice: Choice, index: number): unknown {
  const calls = choice.toolCalls.map(({ id, name, pieces }) => ({
    id: `call_${id}`,
    type: 'function',
    function: { name, arguments: pieces.join('') },
  }))
  const message = {
    role: 'assistant',
    content: calls.length > 0 ? null : readText(choice),
    ...(choice.reasoning.length > 0 ? { reasoning_content: choice.reasoning.join('') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(choice.pictures.length > 0 ? { images: makeImages(choice) } : {}),
    refusal: null,
    annotations: makeAnnotations(choice),
  }
  const logprobs = calls.length > 0 ? null : makeLogprobs(choice.logprobs)
  return { index, message, logprobs, finish_reason: choice.finish }
}

function makeLogprobs(tokens: readonly TokenLogprob[] | null): unknown {
  return tokens === null ? null : { content: wireLogprobs(tokens), refusal: null }
}

class ChunkWriter {
  readonly #head: string
  readonly #script: Script
  readonly #usage: StreamedUsage
  readonly #directives: Directives
  #emitted = 0

  constructor(base: Record<string, unknown>, script: Script, includeUsage: boolean, directives: Directives) {
    this.#head = JSON.stringify(base).slice(0, -1)
    this.#script = script
    this.#usage = toStreamedUsage(includeUsage, directives)
    this.#directives = directives
  }

  /** Yields role chunks, a token of each choice in turn, finish chunks, usage, and the end marker. */
  *frames(): Iterator<Frame, void> {
    const { choices, usage } = this.#script
    for (const [index, choice] of choices.entries()) {
      const hidden = choice.reasoning.length > 0 ? 0 : choice.reasoningTokens
      const content = choice.toolCalls.length > 0 ? 'null' : '""'
      this.#emitted += hidden
      yield this.#chunk(index, `{"role":"assistant","content":${content},"refusal":null}`)
    }
    for (const [index, delta] of inTurn(choices.map(splitDeltas))) {
      this.#emitted += delta.tokens
      yield this.#chunk(index, delta.json, delta)
    }
    for (const [index, choice] of choices.entries()) {
      const last = index === choices.length - 1
      const withUsage = last && this.#usage === 'finish_chunk'
      yield this.#chunk(index, '{}', { finish: choice.finish, withUsage })
    }
    if (this.#usage === 'own_chunk' || this.#usage === 'own_chunk_unasked') yield this.#usageChunk(usage)
    if (this.#usage === 'zero') yield this.#usageChunk(NO_USAGE)
    if (this.#directives.usage_fault === 'falling') yield this.#usageChunk(fallen(usage))
    yield { data: '[DONE]', tokens: 0, terminator: true }
  }

  #chunk(index: number, delta: string, more: ChunkOptions = {}): Frame {
    const { finish = null, tokens = 0, withUsage = false, logprobs = 'null' } = more
    const reason = finish === null ? 'null' : `"${finish}"`
    const choice = `{"index":${index},"delta":${delta},"logprobs":${logprobs},"finish_reason":${reason}}`
    return { data: `${this.#head},"choices":[${choice}]${this.#usageField(withUsage)}}`, tokens }
  }

  /** If usage was requested, every chunk but the last has `"usage":null`, as in the public interface. */
  #usageField(withUsage: boolean): string {
    const { usage } = this.#script
    const json = (reported: Usage) => JSON.stringify(wireUsage(reported, this.#directives))
    if (withUsage && this.#directives.usage_form === 'groq')
      return `,"x_groq":{"id":"req_simulated","usage":${json(usage)}}`
    if (withUsage) return `,"usage":${json(usage)}`
    if (this.#usage === 'every_chunk') {
      const reasoning = Math.min(usage.reasoning, this.#emitted)
      const soFar = { ...usage, completion: this.#emitted, reasoning }
      return `,"usage":${json(soFar)}`
    }
    return this.#usage === 'own_chunk' || this.#usage === 'zero' ? ',"usage":null' : ''
  }

  #usageChunk(usage: Usage): Frame {
    const json = JSON.stringify(wireUsage(usage, this.#directives))
    return { data: `${this.#head},"choices":[],"usage":${json}}`, tokens: 0 }
  }
}

type ChunkOptions = {
  readonly finish?: string
  readonly tokens?: number
  readonly withUsage?: boolean
  /** JSON. */
  readonly logprobs?: string
}
type Delta = { readonly json: string; readonly tokens: number; readonly logprobs?: string }

const oneToken = (json: string): Delta => ({ json, tokens: 1 })

/** Yields one delta per token; results of the provider's own tools count none. */
function* splitDeltas(choice: Choice): Iterable<Delta> {
  for (const token of choice.reasoning) yield oneToken(`{"reasoning_content":${JSON.stringify(token)}}`)
  for (const [index, token] of choice.text.entries()) {
    const delta = oneToken(`{"content":${JSON.stringify(token)}}`)
    const logprob = choice.logprobs?.[index]
    yield logprob === undefined ? delta : { ...delta, logprobs: JSON.stringify(makeLogprobs([logprob])) }
  }
  for (const [index, { id, name, pieces }] of choice.toolCalls.entries()) {
    const called = { index, id: `call_${id}`, type: 'function', function: { name, arguments: '' } }
    yield oneToken(JSON.stringify({ tool_calls: [called] }))
    for (const piece of pieces)
      yield oneToken(JSON.stringify({ tool_calls: [{ index, function: { arguments: piece } }] }))
  }
  if (choice.pictures.length > 0) yield { json: JSON.stringify({ images: makeImages(choice) }), tokens: 0 }
  const annotations = makeAnnotations(choice)
  if (annotations.length > 0) yield { json: JSON.stringify({ annotations }), tokens: 0 }
}

export function readText(choice: Choice): string {
  return choice.text.join('')
}

/** Every source is cited for the whole text; positions are characters. */
function makeAnnotations(choice: Choice): unknown[] {
  const end = [...readText(choice)].length
  return choice.searches.flatMap(({ sources }) =>
    sources.map(({ url, title }) => ({
      type: 'url_citation',
      url_citation: { start_index: 0, end_index: end, url, title },
    })),
  )
}

export function makeImages(choice: Choice): unknown[] {
  return choice.pictures.map(({ base64 }, index) => ({
    type: 'image_url',
    index,
    image_url: { url: `data:image/png;base64,${base64}` },
  }))
}
