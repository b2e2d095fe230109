/**
 * Prints the parts of a translated answer as events of the responses protocol. The last event has the whole response, which is
 * also the answer in one piece. See docs/translation.md, "The answer".
 */
import type { Seal } from '../../../../schemas/chat/conversation.ts'
import type { FinishReason, Part, UsageTokens } from '../../../../schemas/chat/part.ts'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { ulid } from '../../../core/keys/ids.ts'
import { readErrorFields, readErrorMessage } from '../../answer/request-errors.ts'
import { type LooseObject, toText } from '../../loose.ts'
import { printSeal } from '../../translate/seal.ts'
import { customInput, type ToolNames } from '../../translate/tool-names.ts'

export type ResponsesEvent = LooseObject & { readonly type: string }
type ToolPart = Extract<Part, { type: 'tool_call' }>

interface Options {
  /** The model as the client named it. */
  readonly model: string
  /** Epoch seconds. */
  readonly created: number
  readonly upstream: ChatProtocol
  readonly tools: ToolNames
  /** Fields of the request that a response repeats. */
  readonly echoed: LooseObject
  readonly emit: (event: ResponsesEvent) => void
}

export function printUsage(usage: UsageTokens): LooseObject {
  const { prompt, cached, cacheWrite, output, reasoning } = usage
  return {
    input_tokens: prompt,
    input_tokens_details: {
      cached_tokens: cached,
      ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + output,
  }
}

/** Returns the protocol's error for one of any protocol. */
export function toResponsesError(payload: string): ResponsesEvent {
  const { code, type } = readErrorFields(payload)
  const name = toText(code) || toText(type) || 'server_error'
  return { type: 'error', code: name, message: readErrorMessage(payload), param: null }
}

/** An item on its way. `item` is as it will be. */
interface OpenItem {
  readonly index: number
  readonly item: Record<string, unknown>
}

interface OpenMessage extends OpenItem {
  text: string
  readonly annotations: LooseObject[]
}

interface OpenReasoning extends OpenItem {
  text: string
}

interface OpenCall extends OpenItem {
  json: string
  readonly isCustom: boolean
}

const ENDS: Readonly<Partial<Record<FinishReason, string>>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}

export class ResponsesPrinter {
  readonly #options: Options
  readonly #id = `resp_${ulid()}`
  readonly #output: Record<string, unknown>[] = []
  readonly #calls = new Map<number, OpenCall>()
  #sequence = 0
  #message: OpenMessage | null = null
  #reasoning: OpenReasoning | null = null
  #refusal = ''
  #usage: UsageTokens | null = null
  #finish: FinishReason = 'stop'
  #hasBegun = false

  constructor(options: Options) {
    this.#options = options
  }

  print(part: Part): void {
    switch (part.type) {
      case 'start':
        this.#begin()
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
    this.#begin()
    this.#content(part)
  }

  #emit(type: string, fields: LooseObject): void {
    this.#options.emit({ type: `response.${type}`, sequence_number: this.#sequence++, ...fields })
  }

  #response(status: string, more: LooseObject = {}): LooseObject {
    const { model, created, echoed } = this.#options
    return {
      id: this.#id,
      object: 'response',
      created_at: created,
      status,
      error: null,
      incomplete_details: null,
      ...echoed,
      model,
      output: status === 'in_progress' ? [] : this.#output,
      store: false,
      usage: null,
      ...more,
    }
  }

  #begin(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#emit('created', { response: this.#response('in_progress') })
    this.#emit('in_progress', { response: this.#response('in_progress') })
  }

  #content(part: Extract<Part, { choice: number }>): void {
    switch (part.type) {
      case 'text':
        if (part.text !== '') this.#say(part.text)
        break
      case 'refusal':
        this.#refusal += part.text
        break
      case 'reasoning':
        if (part.text !== '') this.#think(part.text)
        break
      case 'signature':
        this.#endMessage()
        this.#seal(part.signature)
        break
      case 'sealed_reasoning':
        this.#endMessage()
        this.#endReasoning()
        this.#seal(part.data, { isRedacted: true })
        break
      case 'tool_call':
        this.#callTool(part)
        break
      case 'tool_arguments':
        this.#addArguments(part.index, part.json)
        break
      case 'image':
        this.#endMessage()
        this.#endReasoning()
        this.#whole({
          id: `ig_${ulid()}`,
          type: 'image_generation_call',
          status: 'completed',
          result: part.base64,
        })
        break
      case 'citation':
        this.#cite(part)
        break
      case 'finish':
        this.#finish = part.reason
        break
    }
  }

  #add(item: Record<string, unknown>, begun: LooseObject): OpenItem {
    const index = this.#output.length
    this.#output.push(item)
    this.#emit('output_item.added', { output_index: index, item: { ...item, ...begun } })
    return { index, item }
  }

  #done({ index, item }: OpenItem): void {
    this.#emit('output_item.done', { output_index: index, item })
  }

  #whole(item: Record<string, unknown>): void {
    this.#done(this.#add(item, {}))
  }

  #place({ index, item }: OpenItem): LooseObject {
    return { item_id: item.id, output_index: index }
  }

  #openMessage(): OpenMessage {
    this.#endReasoning()
    if (this.#message !== null) return this.#message
    const item = { id: `msg_${ulid()}`, type: 'message', status: 'completed', role: 'assistant', content: [] }
    const opened = this.#add(item, { status: 'in_progress' })
    this.#message = { ...opened, text: '', annotations: [] }
    return this.#message
  }

  #say(text: string): void {
    const message = this.#openMessage()
    const place = { ...this.#place(message), content_index: 0 }
    if (message.text === '') this.#emit('content_part.added', { ...place, part: textPart('', []) })
    message.text += text
    this.#emit('output_text.delta', { ...place, delta: text, logprobs: [] })
  }

  #endMessage(): void {
    const message = this.#message
    if (message === null) return
    this.#message = null
    const place = { ...this.#place(message), content_index: 0 }
    const part = textPart(message.text, message.annotations)
    this.#emit('output_text.done', { ...place, text: message.text, logprobs: [] })
    this.#emit('content_part.done', { ...place, part })
    message.item.content = [part]
    this.#done(message)
  }

  #refuse(text: string): void {
    if (text === '') return
    const item = { id: `msg_${ulid()}`, type: 'message', status: 'completed', role: 'assistant' }
    const opened = this.#add(
      { ...item, content: [{ type: 'refusal', refusal: text }] },
      { status: 'in_progress', content: [] },
    )
    const place = { ...this.#place(opened), content_index: 0 }
    this.#emit('content_part.added', { ...place, part: { type: 'refusal', refusal: '' } })
    this.#emit('refusal.delta', { ...place, delta: text })
    this.#emit('refusal.done', { ...place, refusal: text })
    this.#emit('content_part.done', { ...place, part: { type: 'refusal', refusal: text } })
    this.#done(opened)
  }

  #cite({ start, end, url, title }: Extract<Part, { type: 'citation' }>): void {
    const message = this.#message
    if (message === null) return
    const annotation = { type: 'url_citation', start_index: start, end_index: end, url, title }
    const at = { content_index: 0, annotation_index: message.annotations.length }
    message.annotations.push(annotation)
    this.#emit('output_text.annotation.added', { ...this.#place(message), ...at, annotation })
  }

  #openReasoning(): OpenReasoning {
    this.#endMessage()
    if (this.#reasoning !== null) return this.#reasoning
    const opened = this.#add({ id: `rs_${ulid()}`, type: 'reasoning', summary: [] }, {})
    this.#reasoning = { ...opened, text: '' }
    return this.#reasoning
  }

  #think(text: string): void {
    const reasoning = this.#openReasoning()
    const place = { ...this.#place(reasoning), summary_index: 0 }
    if (reasoning.text === '')
      this.#emit('reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } })
    reasoning.text += text
    this.#emit('reasoning_summary_text.delta', { ...place, delta: text })
  }

  #endReasoning(): void {
    const reasoning = this.#reasoning
    if (reasoning === null) return
    this.#reasoning = null
    const { text, item } = reasoning
    if (text !== '') {
      const place = { ...this.#place(reasoning), summary_index: 0 }
      const part = { type: 'summary_text', text }
      this.#emit('reasoning_summary_text.done', { ...place, text })
      this.#emit('reasoning_summary_part.done', { ...place, part })
      item.summary = [part]
    }
    this.#done(reasoning)
  }

  /** Ends the open reasoning, or one without text, with the proof of its vendor. */
  #seal(data: string, more: Pick<Seal, 'isRedacted' | 'isOfCall'> = {}): void {
    const seal = { protocol: this.#options.upstream, data, ...more }
    this.#openReasoning().item.encrypted_content = printSeal(seal, 'responses')
    this.#endReasoning()
  }

  #callTool(part: ToolPart): void {
    this.#endMessage()
    this.#endReasoning()
    if (part.signature !== null) this.#seal(part.signature, { isOfCall: true })
    const { name, namespace, isCustom } = this.#options.tools.find(part.name)
    const input = isCustom ? { input: '' } : { arguments: '' }
    const item = {
      id: `${isCustom ? 'ctc' : 'fc'}_${ulid()}`,
      type: isCustom ? 'custom_tool_call' : 'function_call',
      status: 'completed',
      call_id: part.id,
      name,
      ...(namespace !== undefined && { namespace }),
      ...input,
    }
    this.#calls.set(part.index, { ...this.#add(item, { status: 'in_progress' }), json: '', isCustom })
  }

  #addArguments(index: number, json: string): void {
    const call = this.#calls.get(index)
    if (call === undefined || json === '') return
    call.json += json
    if (!call.isCustom) this.#emit('function_call_arguments.delta', { ...this.#place(call), delta: json })
  }

  #endCall(call: OpenCall): void {
    const place = this.#place(call)
    if (call.isCustom) {
      const input = customInput(call.json)
      this.#emit('custom_tool_call_input.delta', { ...place, delta: input })
      this.#emit('custom_tool_call_input.done', { ...place, input })
      call.item.input = input
    } else {
      const json = call.json === '' ? '{}' : call.json
      this.#emit('function_call_arguments.done', { ...place, name: call.item.name, arguments: json })
      call.item.arguments = json
    }
    this.#done(call)
  }

  #end(): void {
    this.#begin()
    this.#endMessage()
    this.#endReasoning()
    this.#refuse(this.#refusal)
    for (const call of this.#calls.values()) this.#endCall(call)
    const reason = ENDS[this.#finish]
    const status = reason === undefined ? 'completed' : 'incomplete'
    const usage = this.#usage === null ? null : printUsage(this.#usage)
    const details = reason === undefined ? null : { reason }
    this.#emit(status, { response: this.#response(status, { usage, incomplete_details: details }) })
  }
}

const textPart = (text: string, annotations: readonly LooseObject[]): LooseObject => ({
  type: 'output_text',
  text,
  annotations,
  logprobs: [],
})
