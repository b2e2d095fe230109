/** The answer to a call of the playground, as it grows. */

import { weighCodeUnit } from '../../../../src/core/pricing/text-tokens.ts'
import { keepExtra, type TokenUsage } from '../../../../src/core/pricing/usage.ts'
import type { ToolCall } from './request.ts'

export interface Answer {
  readonly text: string
  readonly reasoning: string
  readonly toolCalls: readonly ToolCall[]
  readonly finishReason: string | null
  /** Null until the provider reports it. */
  readonly usage: TokenUsage | null
  /** The provider's service tier; empty until known. */
  readonly serviceTier: string
  /** Length of all output so far, weighed by script. */
  readonly characters: number
  /** Why the stream broke off. */
  readonly error: string | null
}

export const NO_ANSWER: Answer = {
  text: '',
  reasoning: '',
  toolCalls: [],
  finishReason: null,
  usage: null,
  serviceTier: '',
  characters: 0,
  error: null,
}

interface Part {
  readonly content?: string | null
  readonly reasoning_content?: string | null
  readonly tool_calls?: readonly {
    readonly index?: number
    readonly id?: string
    readonly function?: { readonly name?: string; readonly arguments?: string }
  }[]
}

interface Usage {
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly prompt_tokens_details?: {
    readonly cached_tokens?: number
    readonly cache_write_tokens?: number
    readonly cache_creation?: { readonly ephemeral_1h_input_tokens?: number }
    readonly audio_tokens?: number
    readonly image_tokens?: number
  }
  readonly completion_tokens_details?: {
    readonly reasoning_tokens?: number
    readonly audio_tokens?: number
    readonly image_tokens?: number
  }
  readonly server_tool_use?: { readonly web_search_requests?: number }
}

/** A chunk of a stream, or a whole answer. */
export interface Chunk {
  readonly choices?: readonly {
    readonly delta?: Part
    readonly message?: Part
    readonly finish_reason?: string | null
  }[]
  readonly usage?: Usage | null
  readonly service_tier?: string | null
  readonly error?: { readonly message?: string }
}

function readUsage({
  prompt_tokens_details: input = {},
  completion_tokens_details: output = {},
  ...usage
}: Usage): TokenUsage {
  const searches = usage.server_tool_use?.web_search_requests ?? 0
  return {
    prompt: usage.prompt_tokens ?? 0,
    cached: input.cached_tokens ?? 0,
    cacheWrite: input.cache_write_tokens ?? 0,
    output: usage.completion_tokens ?? 0,
    reasoning: output.reasoning_tokens ?? 0,
    serverToolCalls: searches,
    ...keepExtra({
      cacheWrite1h: input.cache_creation?.ephemeral_1h_input_tokens ?? 0,
      inputAudio: input.audio_tokens ?? 0,
      inputImage: input.image_tokens ?? 0,
      outputAudio: output.audio_tokens ?? 0,
      outputImage: output.image_tokens ?? 0,
      tools: searches > 0 ? { web_search: searches } : {},
    }),
  }
}

function weighText(text: string): number {
  let weight = 0
  for (let i = 0; i < text.length; i++) weight += weighCodeUnit(text.charCodeAt(i))
  return weight
}

function withToolCalls(calls: readonly ToolCall[], parts: NonNullable<Part['tool_calls']>): ToolCall[] {
  const merged = [...calls]
  for (const [position, { index = position, id, function: called }] of parts.entries()) {
    const before = merged[index] ?? { id: '', name: '', arguments: '' }
    merged[index] = {
      id: id ?? before.id,
      name: before.name + (called?.name ?? ''),
      arguments: before.arguments + (called?.arguments ?? ''),
    }
  }
  return merged
}

/** Returns the answer with one more chunk of the stream, or with the whole answer where it was not streamed. */
export function withChunk(answer: Answer, { choices = [], usage, service_tier, error }: Chunk): Answer {
  const choice = choices[0]
  const {
    content,
    reasoning_content: reasoning,
    tool_calls: calls = [],
  } = choice?.delta ?? choice?.message ?? {}
  const written = calls
    .map(({ function: called }) => (called?.name ?? '') + (called?.arguments ?? ''))
    .join('')
  return {
    text: answer.text + (content ?? ''),
    reasoning: answer.reasoning + (reasoning ?? ''),
    toolCalls: calls.length === 0 ? answer.toolCalls : withToolCalls(answer.toolCalls, calls),
    finishReason: choice?.finish_reason ?? answer.finishReason,
    usage: usage ? readUsage(usage) : answer.usage,
    serviceTier: service_tier ?? answer.serviceTier,
    characters: answer.characters + weighText((content ?? '') + (reasoning ?? '') + written),
    error: error?.message ?? answer.error,
  }
}
