/**
 * Puts the parts of a translated answer together as one whole chat-completions body.
 * Source: specification, "POST /v1/chat/completions", "Response (non-stream)".
 */
import { Buffer } from 'node:buffer'
import type { FinishReason, Part, UsageTokens } from '../../schemas/part.ts'
import { CarriedReasoning, toolCallFields, usageJson } from './chat-completions-json.ts'
import { completionId, type PrinterOptions } from './chat-completions-printer.ts'

interface CollectedTool {
  readonly call: Extract<Part, { type: 'tool_call' }>
  json: string
}

class CollectedChoice {
  readonly #carried = new CarriedReasoning()
  readonly #tools = new Map<number, CollectedTool>()
  #text = ''
  #reasoning = ''
  #finish: FinishReason | null = null

  add(part: Extract<Part, { choice: number }>): void {
    this.#carried.add(part)
    switch (part.type) {
      case 'text':
        this.#text += part.text
        break
      case 'reasoning':
        this.#reasoning += part.text
        break
      case 'tool_call':
        this.#tools.set(part.index, { call: part, json: '' })
        break
      case 'tool_arguments': {
        const tool = this.#tools.get(part.index)
        if (tool !== undefined) tool.json += part.json
        break
      }
      case 'finish':
        this.#finish = part.reason
        break
    }
  }

  json(index: number): string {
    const hasTools = this.#tools.size > 0
    const reason = this.#finish ?? (hasTools ? 'tool_calls' : 'stop')
    return `{"index":${index},"message":{${this.#message().join(',')}},"logprobs":null,"finish_reason":"${reason}"}`
  }

  #message(): string[] {
    const hasTools = this.#tools.size > 0
    const content = this.#text === '' && hasTools ? 'null' : JSON.stringify(this.#text)
    const fields = ['"role":"assistant"', `"content":${content}`, '"refusal":null']
    if (this.#reasoning !== '') fields.push(`"reasoning_content":${JSON.stringify(this.#reasoning)}`)
    const carried = this.#carried.field()
    if (carried !== null) fields.push(carried)
    if (hasTools) {
      const calls = [...this.#tools.values()].map(({ call, json }) => `{${toolCallFields(call, json)}}`)
      fields.push(`"tool_calls":[${calls.join(',')}]`)
    }
    return fields
  }
}

export class ChatCompletionCollector {
  readonly #options: Omit<PrinterOptions, 'includeUsage'>
  readonly #choices = new Map<number, CollectedChoice>()
  #id = ''
  #usage: UsageTokens | null = null

  constructor(options: Omit<PrinterOptions, 'includeUsage'>) {
    this.#options = options
  }

  add(part: Part): void {
    if (part.type === 'start') this.#id = part.id
    else if (part.type === 'usage') this.#usage = part.usage
    else if (part.type !== 'error' && part.type !== 'end') this.#choice(part.choice).add(part)
  }

  #choice(index: number): CollectedChoice {
    const known = this.#choices.get(index)
    if (known !== undefined) return known
    const choice = new CollectedChoice()
    this.#choices.set(index, choice)
    return choice
  }

  /** The `chat.completion`; without usage where none was reported. */
  body(): Buffer {
    const { model, created } = this.#options
    if (this.#choices.size === 0) this.#choice(0)
    const ordered = [...this.#choices].sort(([a], [b]) => a - b)
    const choices = ordered.map(([index, choice]) => choice.json(index))
    const usage = this.#usage === null ? '' : `,"usage":${usageJson(this.#usage)}`
    return Buffer.from(
      `{"id":${JSON.stringify(completionId(this.#id))},"object":"chat.completion","created":${created}` +
        `,"model":${JSON.stringify(model)},"choices":[${choices.join(',')}]${usage}}`,
      'utf8',
    )
  }
}
