/**
 * Prints the parts of a translated answer as a chat-completions stream. Chunks are joined from strings, most of which
 * never change during a stream; the result of one push leaves as one Buffer. See docs/api-rules.md, "Streams";
 * docs/translation.md, "The answer".
 */
import { Buffer } from 'node:buffer'
import type { FinishReason, Part, UsageTokens } from '../../../../schemas/chat/part.ts'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { ulid } from '../../../core/keys/ids.ts'
import { ClosingFields, finishWord, imageJson, logprobsJson, toolCallFields, usageJson } from './json.ts'

export interface PrinterOptions {
  /** The model as the client named it: upstreams have other names for it. */
  readonly model: string
  readonly upstream: ChatProtocol
  /** Epoch seconds. */
  readonly created: number
  /** True when the client requested the usage chunk. */
  readonly includeUsage: boolean
  /** The client offered legacy functions: it reads one call, as `function_call`. */
  readonly isLegacy?: boolean
}

/** One candidate answer on its way. */
interface OpenChoice {
  readonly closing: ClosingFields
  /** All of a chunk up to and with the brace of its delta. */
  readonly opening: string
  finish: FinishReason | null
  hasTools: boolean
  images: number
  /** Id of the spoken answer; null before the first audio. */
  audioId: string | null
}

/** Returns the id of the answer; a new one where the upstream gave none. */
export const completionId = (id: string): string => (id === '' ? `chatcmpl-${ulid()}` : id)

/** Line breaks between the fields of a JSON text are white space; inside of its strings there are none. */
const onOneLine = (json: string): string => json.replace(/[\r\n]+/g, ' ')

export const audioId = (): string => `audio_${ulid()}`

export class ChatCompletionsPrinter {
  readonly #options: PrinterOptions
  readonly #choices = new Map<number, OpenChoice>()
  readonly #closing: string
  readonly #unfinished: string
  #head = ''
  #out = ''
  #usage: UsageTokens | null = null
  #isClosed = false

  constructor(options: PrinterOptions) {
    this.#options = options
    // With usage requested, every chunk has the field, as the protocol has it.
    this.#closing = options.includeUsage ? '}],"usage":null}\n\n' : '}]}\n\n'
    this.#unfinished = `},"finish_reason":null${this.#closing}`
  }

  /** Prints `part`. After `end` or `error` nothing more is printed: no finish, no `[DONE]`. */
  print(part: Part): void {
    if (this.#isClosed) return
    switch (part.type) {
      case 'start':
        this.#begin(part.id)
        this.#choice(0)
        break
      case 'usage':
        this.#usage = part.usage
        break
      case 'error':
        this.#isClosed = true
        break
      case 'end':
        this.#end()
        break
      default:
        this.#ofChoice(part, this.#choice(part.choice))
    }
  }

  /** Prints the upstream's error event as it came, on one line; nothing more is printed. */
  error(payload: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#out += `data: ${onOneLine(payload)}\n\n`
  }

  /** Returns the bytes printed since the last call; null for none. */
  take(): Buffer | null {
    if (this.#out === '') return null
    const bytes = Buffer.from(this.#out, 'utf8')
    this.#out = ''
    return bytes
  }

  #begin(id: string): void {
    if (this.#head !== '') return
    const { model, created } = this.#options
    this.#head =
      `data: {"id":${JSON.stringify(completionId(id))},"object":"chat.completion.chunk"` +
      `,"created":${created},"model":${JSON.stringify(model)},"choices":[`
  }

  #choice(index: number): OpenChoice {
    const known = this.#choices.get(index)
    if (known !== undefined) return known
    this.#begin('')
    const choice: OpenChoice = {
      closing: new ClosingFields(this.#options.upstream),
      opening: `${this.#head}{"index":${index},"delta":{`,
      finish: null,
      hasTools: false,
      images: 0,
      audioId: null,
    }
    this.#choices.set(index, choice)
    // No empty content: SDKs take it for the beginning of a text, which may never come.
    this.#delta(choice, '"role":"assistant"')
    return choice
  }

  #delta(choice: OpenChoice, fields: string): void {
    this.#out += choice.opening + fields + this.#unfinished
  }

  #ofChoice(part: Extract<Part, { choice: number }>, choice: OpenChoice): void {
    choice.closing.add(part)
    switch (part.type) {
      case 'text':
        if (part.text !== '') this.#delta(choice, `"content":${JSON.stringify(part.text)}`)
        break
      case 'reasoning':
        if (part.text !== '') this.#delta(choice, `"reasoning_content":${JSON.stringify(part.text)}`)
        break
      case 'tool_call':
        choice.hasTools = true
        this.#toolCall(choice, part)
        break
      case 'tool_arguments':
        this.#toolArguments(choice, part)
        break
      case 'image':
        this.#delta(choice, `"images":[${imageJson(part, choice.images++)}]`)
        break
      case 'audio':
        choice.audioId ??= audioId()
        this.#delta(choice, `"audio":{"id":"${choice.audioId}","data":${JSON.stringify(part.base64)}}`)
        break
      case 'refusal':
        this.#delta(choice, `"refusal":${JSON.stringify(part.text)}`)
        break
      case 'logprobs':
        this.#out += `${choice.opening}},"logprobs":${logprobsJson(part.tokens)},"finish_reason":null${this.#closing}`
        break
      case 'finish':
        choice.finish = part.reason
        break
    }
  }

  #toolCall(choice: OpenChoice, call: Extract<Part, { type: 'tool_call' }>): void {
    if (this.#options.isLegacy !== true)
      this.#delta(choice, `"tool_calls":[{"index":${call.index},${toolCallFields(call, '')}}]`)
    else if (call.index === 0)
      this.#delta(choice, `"function_call":{"name":${JSON.stringify(call.name)},"arguments":""}`)
  }

  #toolArguments(choice: OpenChoice, { index, json }: Extract<Part, { type: 'tool_arguments' }>): void {
    const args = `{"arguments":${JSON.stringify(json)}}`
    if (this.#options.isLegacy !== true)
      this.#delta(choice, `"tool_calls":[{"index":${index},"function":${args}}]`)
    else if (index === 0) this.#delta(choice, `"function_call":${args}`)
  }

  /** Finishes the choices: only now is it certain that the answer is whole. */
  #end(): void {
    this.#isClosed = true
    if (this.#choices.size === 0) this.#choice(0)
    for (const choice of this.#choices.values()) {
      // In one delta: SDKs that put deltas together differ in whether they join two arrays or keep the last.
      const closing = choice.closing.fields()
      if (closing.length > 0) this.#delta(choice, closing.join(','))
      const finish = choice.finish ?? (choice.hasTools ? 'tool_calls' : 'stop')
      const reason = finishWord(finish, this.#options.isLegacy === true)
      this.#out += `${choice.opening}},"finish_reason":"${reason}"${this.#closing}`
    }
    if (this.#options.includeUsage && this.#usage !== null)
      this.#out += `${this.#head}],"usage":${usageJson(this.#usage)}}\n\n`
    this.#out += 'data: [DONE]\n\n'
  }
}
