/**
 * The pieces of JSON that a chat-completions answer is made of, streamed or whole.
 *
 * What a vendor signs or seals of a model's thought must come back with the next turn, so it travels in the assistant
 * message, in fields that exist in the field and that SDKs keep when they echo the message: signed and sealed
 * reasoning as `thinking_blocks` (`{type: thinking, thinking, signature}`, `{type: redacted_thinking, data}`), the
 * signature of the thought behind a tool call as `extra_content.google.thought_signature` on that call.
 */
import type { Part, UsageTokens } from '../../schemas/part.ts'

export function usageJson(usage: UsageTokens): string {
  const { prompt, cached, cacheWrite, output, reasoning } = usage
  const writes = cacheWrite > 0 ? `,"cache_write_tokens":${cacheWrite}` : ''
  return (
    `{"prompt_tokens":${prompt},"completion_tokens":${output},"total_tokens":${prompt + output}` +
    `,"prompt_tokens_details":{"cached_tokens":${cached}${writes}}` +
    `,"completion_tokens_details":{"reasoning_tokens":${reasoning}}}`
  )
}

type ToolCall = Extract<Part, { type: 'tool_call' }>

/** The fields of a tool call, without the braces around them. `args` is JSON text. */
export function toolCallFields(call: ToolCall, args: string): string {
  const signature =
    call.signature === null
      ? ''
      : `,"extra_content":{"google":{"thought_signature":${JSON.stringify(call.signature)}}}`
  return (
    `"id":${JSON.stringify(call.id)},"type":"function"` +
    `,"function":{"name":${JSON.stringify(call.name)},"arguments":${JSON.stringify(args)}}${signature}`
  )
}

/** Gathers the reasoning of one choice that has to come back with the next turn. */
export class CarriedReasoning {
  #open = ''
  readonly #blocks: string[] = []

  /** Takes in any part; most leave no trace. */
  add(part: Part): void {
    switch (part.type) {
      case 'reasoning':
        this.#open += part.text
        break
      case 'signature':
        this.#blocks.push(
          `{"type":"thinking","thinking":${JSON.stringify(this.#open)},"signature":${JSON.stringify(part.signature)}}`,
        )
        this.#open = ''
        break
      case 'sealed_reasoning':
        this.#blocks.push(`{"type":"redacted_thinking","data":${JSON.stringify(part.data)}}`)
        break
      // What was not signed before the model went on is not signed at all: it could not be sent back.
      case 'text':
      case 'tool_call':
        this.#open = ''
        break
    }
  }

  /** The field `thinking_blocks`; null where there is nothing to carry. */
  field(): string | null {
    return this.#blocks.length === 0 ? null : `"thinking_blocks":[${this.#blocks.join(',')}]`
  }
}
