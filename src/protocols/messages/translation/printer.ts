/**
 * Prints the parts of a translated answer as events of the messages protocol. Blocks follow one another: a block ends when the
 * next one begins. See docs/translation.md, "The answer".
 */
import type { Seal } from '../../../../schemas/chat/conversation.ts'
import type { FinishReason, Part, UsageTokens } from '../../../../schemas/chat/part.ts'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { ulid } from '../../../core/keys/ids.ts'
import { readErrorMessage } from '../../answer/request-errors.ts'
import { type LooseObject, parseFields, parseValue, toFields, toText } from '../../loose.ts'
import { printSeal } from '../../translate/seal.ts'

export type MessagesEvent = LooseObject & { readonly type: string }
type ToolPart = Extract<Part, { type: 'tool_call' }>

interface Options {
  /** The model as the client named it. */
  readonly model: string
  readonly upstream: ChatProtocol
  readonly emit: (event: MessagesEvent) => void
}

const STOP_REASONS: Readonly<Record<FinishReason, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
}

/** Returns the usage as the protocol has it: its input is without what the cache read or wrote. */
export function printUsage(usage: UsageTokens | null): LooseObject {
  if (usage === null) return { input_tokens: 0, output_tokens: 0 }
  const { prompt, cached, cacheWrite, output, reasoning, serverToolCalls, extra } = usage
  const longWrites = extra?.cacheWrite1h ?? 0
  return {
    input_tokens: Math.max(0, prompt - cached - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cached,
    ...(cacheWrite > 0 && {
      cache_creation: {
        ephemeral_5m_input_tokens: cacheWrite - longWrites,
        ephemeral_1h_input_tokens: longWrites,
      },
    }),
    output_tokens: output,
    ...(reasoning > 0 && { output_tokens_details: { thinking_tokens: reasoning } }),
    ...(serverToolCalls > 0 && { server_tool_use: { web_search_requests: serverToolCalls } }),
  }
}

/** Returns the protocol's error for one of any protocol. */
export const toMessagesError = (payload: string): MessagesEvent => ({
  type: 'error',
  error: { type: 'api_error', message: readErrorMessage(payload) },
})

/** A call of a tool whose block is not open: its arguments wait. */
interface WaitingTool {
  readonly call: ToolPart
  json: string
}

export class MessagesPrinter {
  readonly #options: Options
  #index = -1
  /** Type of the open block; null between blocks. */
  #open: 'text' | 'thinking' | 'tool_use' | null = null
  /** Number of the tool whose block is open, and its arguments so far. */
  #tool = -1
  #json = ''
  readonly #waiting = new Map<number, WaitingTool>()
  #usage: UsageTokens | null = null
  #finish: FinishReason = 'stop'
  #hasBegun = false

  constructor(options: Options) {
    this.#options = options
  }

  print(part: Part): void {
    switch (part.type) {
      case 'start':
        this.#begin(part.id)
        return
      case 'usage':
        this.#usage = part.usage
        return
      case 'end':
        this.#end()
        return
      case 'error':
        return
    }
    // The protocol has one answer.
    if (part.choice !== 0) return
    this.#begin('')
    this.#content(part)
  }

  #begin(id: string): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    const { model, emit } = this.#options
    emit({
      type: 'message_start',
      message: {
        id: id.startsWith('msg_') ? id : `msg_${ulid()}`,
        type: 'message',
        role: 'assistant',
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: printUsage(null),
      },
    })
  }

  #content(part: Extract<Part, { choice: number }>): void {
    switch (part.type) {
      case 'text':
      case 'refusal':
        if (part.text !== '') this.#say('text', 'text', part.text)
        break
      case 'reasoning':
        if (part.text !== '') this.#say('thinking', 'thinking', part.text)
        break
      case 'signature':
        this.#sign(part.signature)
        break
      case 'sealed_reasoning':
        this.#close()
        this.#sign(part.data, { isRedacted: true })
        break
      case 'tool_call':
        this.#callTool(part)
        break
      case 'tool_arguments':
        this.#addArguments(part.index, part.json)
        break
      case 'citation':
        this.#cite(part.url, part.title)
        break
      case 'finish':
        this.#finish = part.reason
        break
    }
  }

  #start(type: 'text' | 'thinking' | 'tool_use', block: LooseObject): void {
    this.#close()
    this.#open = type
    this.#options.emit({
      type: 'content_block_start',
      index: ++this.#index,
      content_block: { type, ...block },
    })
  }

  #delta(delta: LooseObject): void {
    this.#options.emit({ type: 'content_block_delta', index: this.#index, delta })
  }

  #close(): void {
    if (this.#open === null) return
    this.#open = null
    this.#tool = -1
    this.#options.emit({ type: 'content_block_stop', index: this.#index })
  }

  #say(type: 'text' | 'thinking', field: string, text: string): void {
    if (this.#open !== type) {
      this.#closeTools()
      this.#start(type, type === 'text' ? { text: '' } : { thinking: '', signature: '' })
    }
    this.#delta({ type: `${type}_delta`, [field]: text })
  }

  /** Signs the open block of reasoning, or one without text. */
  #sign(data: string, more: Pick<Seal, 'isRedacted' | 'isOfCall'> = {}): void {
    const seal = { protocol: this.#options.upstream, data, ...more }
    if (this.#open !== 'thinking') this.#start('thinking', { thinking: '', signature: '' })
    this.#delta({ type: 'signature_delta', signature: printSeal(seal, 'messages') })
    this.#close()
  }

  #callTool(call: ToolPart): void {
    if (this.#open !== 'tool_use' || parseValue(this.#json) !== undefined) this.#startTool(call)
    else this.#waiting.set(call.index, { call, json: '' })
  }

  #startTool(call: ToolPart): void {
    if (call.signature !== null) {
      this.#close()
      this.#sign(call.signature, { isOfCall: true })
    }
    this.#start('tool_use', { id: call.id, name: call.name, input: {} })
    this.#tool = call.index
    this.#json = ''
  }

  #addArguments(index: number, json: string): void {
    if (json === '') return
    if (index === this.#tool) {
      this.#json += json
      this.#delta({ type: 'input_json_delta', partial_json: json })
      return
    }
    const waiting = this.#waiting.get(index)
    if (waiting !== undefined) waiting.json += json
  }

  /** Prints the calls that came while another one had not ended. */
  #closeTools(): void {
    for (const [index, { call, json }] of this.#waiting) {
      this.#startTool(call)
      this.#addArguments(index, json)
    }
    this.#waiting.clear()
    this.#close()
  }

  #cite(url: string, title: string): void {
    if (this.#open !== 'text') return
    const citation = { type: 'web_search_result_location', url, title, cited_text: '', encrypted_index: '' }
    this.#delta({ type: 'citations_delta', citation })
  }

  #end(): void {
    this.#begin('')
    this.#closeTools()
    const { emit } = this.#options
    const delta = { stop_reason: STOP_REASONS[this.#finish], stop_sequence: null }
    emit({ type: 'message_delta', delta, usage: printUsage(this.#usage) })
    emit({ type: 'message_stop' })
  }
}

/** Puts the events of one answer together as a whole message. */
export class AssembledMessage {
  #message: LooseObject = {}
  readonly #blocks: Record<string, unknown>[] = []
  #json = ''

  add(event: MessagesEvent): void {
    switch (event.type) {
      case 'message_start':
        this.#message = toFields(event.message)
        break
      case 'content_block_start':
        this.#blocks.push({ ...toFields(event.content_block) })
        this.#json = ''
        break
      case 'content_block_delta':
        this.#delta(this.#blocks.at(-1)!, toFields(event.delta))
        break
      case 'content_block_stop': {
        const block = this.#blocks.at(-1)!
        if (this.#json !== '') block.input = parseFields(this.#json) ?? {}
        break
      }
      case 'message_delta':
        this.#message = { ...this.#message, ...toFields(event.delta), usage: event.usage }
        break
    }
  }

  #delta(block: Record<string, unknown>, delta: LooseObject): void {
    switch (delta.type) {
      case 'text_delta':
        block.text = toText(block.text) + toText(delta.text)
        break
      case 'thinking_delta':
        block.thinking = toText(block.thinking) + toText(delta.thinking)
        break
      case 'signature_delta':
        block.signature = toText(delta.signature)
        break
      case 'input_json_delta':
        this.#json += toText(delta.partial_json)
        break
      case 'citations_delta':
        block.citations = [...((block.citations as unknown[] | undefined) ?? []), delta.citation]
        break
    }
  }

  message(): LooseObject {
    return { ...this.#message, content: this.#blocks }
  }
}
