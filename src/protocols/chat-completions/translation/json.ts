/**
 * The JSON parts of a chat-completions answer, streamed or whole. A vendor's signature or seal on a model's reasoning
 * must be returned with the next turn, so it travels in the assistant message, in fields that other products use and
 * that SDKs keep when they echo the message: signed and sealed reasoning as `thinking_blocks` (`{type: thinking,
 * thinking, signature}`, `{type: redacted_thinking, data}`), the signature of a tool call's reasoning as
 * `extra_content.google.thought_signature` on that call.
 */
import { Buffer } from 'node:buffer'
import type { FinishReason, Part, TokenLogprob, UsageTokens } from '../../../../schemas/chat/part.ts'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { printSeal } from '../../translate/seal.ts'

export function usageJson(usage: UsageTokens): string {
  const { prompt, cached, cacheWrite, output, reasoning, serverToolCalls } = usage
  const writes = countField('cache_write_tokens', cacheWrite)
  const searches = serverToolCalls > 0 ? `,"server_tool_use":{"web_search_requests":${serverToolCalls}}` : ''
  const { cacheWrite1h = 0, inputImage, outputImage } = usage.extra ?? {}
  const kept = cacheWrite1h > 0 ? `,"cache_creation":{"ephemeral_1h_input_tokens":${cacheWrite1h}}` : ''
  return (
    `{"prompt_tokens":${prompt},"completion_tokens":${output},"total_tokens":${prompt + output}` +
    `,"prompt_tokens_details":{"cached_tokens":${cached}${writes}${kept}` +
    `${countField('audio_tokens', usage.promptAudio)}${countField('image_tokens', inputImage)}}` +
    `,"completion_tokens_details":{"reasoning_tokens":${reasoning}` +
    `${countField('audio_tokens', usage.outputAudio)}${countField('image_tokens', outputImage)}}${searches}}`
  )
}

/** Returns a further field, where its count is not 0. */
const countField = (name: string, count = 0): string => (count > 0 ? `,"${name}":${count}` : '')

type ToolCall = Extract<Part, { type: 'tool_call' }>

/** Returns the fields of a tool call, without the braces around them. `args` is JSON text. */
export function toolCallFields(call: ToolCall, args: string): string {
  return (
    `"id":${JSON.stringify(call.id)},"type":"function"` +
    `,"function":{"name":${JSON.stringify(call.name)},"arguments":${JSON.stringify(args)}}` +
    signatureField(call.signature)
  )
}

const signatureField = (signature: string | null): string =>
  signature === null ? '' : `,"extra_content":{"google":{"thought_signature":${JSON.stringify(signature)}}}`

type Image = Extract<Part, { type: 'image' }>

/** Returns one of the pictures of `images`; `index` counts them. */
export function imageJson({ mediaType, base64, signature }: Image, index: number): string {
  const url = JSON.stringify(`data:${mediaType};base64,${base64}`)
  return `{"type":"image_url","index":${index},"image_url":{"url":${url}}${signatureField(signature)}}`
}

type Citation = Extract<Part, { type: 'citation' }>

const citationJson = ({ start, end, url, title }: Citation): string =>
  `{"type":"url_citation","url_citation":{"start_index":${start},"end_index":${end}` +
  `,"url":${JSON.stringify(url)},"title":${JSON.stringify(title)}}}`

const tokenJson = ({ token, logprob }: { token: string; logprob: number }): string =>
  `"token":${JSON.stringify(token)},"logprob":${logprob},"bytes":[${[...Buffer.from(token)].join(',')}]`

/** Returns the `logprobs` of a choice. */
export function logprobsJson(tokens: readonly TokenLogprob[]): string {
  const content = tokens.map((token) => {
    const top = token.top.map((other) => `{${tokenJson(other)}}`)
    return `{${tokenJson(token)},"top_logprobs":[${top.join(',')}]}`
  })
  return `{"content":[${content.join(',')}],"refusal":null}`
}

/** Returns the finish reason; `function_call` for a request of legacy functions. */
export const finishWord = (reason: FinishReason, isLegacy: boolean): string =>
  isLegacy && reason === 'tool_calls' ? 'function_call' : reason

/** Gathers the fields of one choice as a whole: the reasoning that has to come back, and the sources cited. */
export class ClosingFields {
  readonly #upstream: ChatProtocol
  #open = ''
  readonly #blocks: string[] = []
  readonly #citations: string[] = []

  constructor(upstream: ChatProtocol) {
    this.#upstream = upstream
  }

  /** Returns the text of a block's proof; blocks are those of the messages protocol. */
  #proof(data: string): string {
    return JSON.stringify(printSeal({ protocol: this.#upstream, data }, 'messages'))
  }

  /** Takes in any part; most leave no trace. */
  add(part: Part): void {
    switch (part.type) {
      case 'reasoning':
        this.#open += part.text
        break
      case 'signature':
        this.#blocks.push(
          `{"type":"thinking","thinking":${JSON.stringify(this.#open)},"signature":${this.#proof(part.signature)}}`,
        )
        this.#open = ''
        break
      case 'sealed_reasoning':
        this.#blocks.push(`{"type":"redacted_thinking","data":${this.#proof(part.data)}}`)
        break
      case 'citation':
        this.#citations.push(citationJson(part))
        break
      // Reasoning that was not signed before the next part is never signed: it could not be sent back.
      case 'text':
      case 'tool_call':
        this.#open = ''
        break
    }
  }

  /** Returns `thinking_blocks` and `annotations`, unless empty. */
  fields(): readonly string[] {
    return [
      ...(this.#blocks.length === 0 ? [] : [`"thinking_blocks":[${this.#blocks.join(',')}]`]),
      ...(this.#citations.length === 0 ? [] : [`"annotations":[${this.#citations.join(',')}]`]),
    ]
  }
}
