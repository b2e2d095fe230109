/**
 * Puts the parts of a translated answer together as one whole chat-completions body.
 * See docs/api-rules.md, "Chat protocols".
 */
import { Buffer } from 'node:buffer'
import type { FinishReason, Part, TokenLogprob, UsageTokens } from '../../../../schemas/chat/part.ts'
import { ClosingFields, finishWord, imageJson, logprobsJson, toolCallFields, usageJson } from './json.ts'
import { audioId, completionId, type PrinterOptions } from './printer.ts'

type CollectorOptions = Omit<PrinterOptions, 'includeUsage'>

interface CollectedTool {
  readonly call: Extract<Part, { type: 'tool_call' }>
  json: string
}

class CollectedChoice {
  readonly #options: CollectorOptions
  readonly #closing: ClosingFields
  readonly #images: string[] = []
  readonly #audio: Buffer[] = []
  readonly #logprobs: TokenLogprob[] = []
  readonly #tools = new Map<number, CollectedTool>()
  #text = ''
  #reasoning = ''
  #refusal = ''
  #finish: FinishReason | null = null

  constructor(options: CollectorOptions) {
    this.#options = options
    this.#closing = new ClosingFields(options.upstream)
  }

  add(part: Extract<Part, { choice: number }>): void {
    this.#closing.add(part)
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
      case 'image':
        this.#images.push(imageJson(part, this.#images.length))
        break
      case 'audio':
        this.#audio.push(Buffer.from(part.base64, 'base64'))
        break
      case 'refusal':
        this.#refusal += part.text
        break
      case 'logprobs':
        for (const token of part.tokens) this.#logprobs.push(token)
        break
      case 'finish':
        this.#finish = part.reason
        break
    }
  }

  json(index: number): string {
    const finish = this.#finish ?? (this.#tools.size > 0 ? 'tool_calls' : 'stop')
    const reason = finishWord(finish, this.#options.isLegacy === true)
    const logprobs = this.#logprobs.length === 0 ? null : logprobsJson(this.#logprobs)
    return `{"index":${index},"message":{${this.#message().join(',')}},"logprobs":${logprobs},"finish_reason":"${reason}"}`
  }

  #message(): string[] {
    const content = this.#text === '' && this.#tools.size > 0 ? 'null' : JSON.stringify(this.#text)
    const refusal = this.#refusal === '' ? 'null' : JSON.stringify(this.#refusal)
    const fields = ['"role":"assistant"', `"content":${content}`, `"refusal":${refusal}`]
    if (this.#reasoning !== '') fields.push(`"reasoning_content":${JSON.stringify(this.#reasoning)}`)
    fields.push(...this.#closing.fields())
    if (this.#images.length > 0) fields.push(`"images":[${this.#images.join(',')}]`)
    if (this.#audio.length > 0) fields.push(this.#audioField())
    return this.#tools.size === 0 ? fields : [...fields, this.#calls()]
  }

  #calls(): string {
    const [first] = this.#tools.values()
    if (this.#options.isLegacy === true && first !== undefined)
      return `"function_call":{"name":${JSON.stringify(first.call.name)},"arguments":${JSON.stringify(first.json)}}`
    const calls = [...this.#tools.values()].map(({ call, json }) => `{${toolCallFields(call, json)}}`)
    return `"tool_calls":[${calls.join(',')}]`
  }

  /** Returns the audio. It expires at once: it is not stored, so it cannot be requested again. */
  #audioField(): string {
    const data = Buffer.concat(this.#audio).toString('base64')
    return `"audio":{"id":"${audioId()}","data":"${data}","expires_at":${this.#options.created},"transcript":""}`
  }
}

export class ChatCompletionCollector {
  readonly #options: CollectorOptions
  readonly #choices = new Map<number, CollectedChoice>()
  #id = ''
  #usage: UsageTokens | null = null

  constructor(options: CollectorOptions) {
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
    const choice = new CollectedChoice(this.#options)
    this.#choices.set(index, choice)
    return choice
  }

  /** Returns the `chat.completion`; without usage where none was reported. */
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
