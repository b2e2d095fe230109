/**
 * Reads the answer of an upstream of the responses protocol into parts. Items follow one another; an index that counts items
 * becomes one that counts calls. See docs/translation.md, "The answer".
 */
import type { FinishReason, Part } from '../../../../schemas/chat/part.ts'
import { NO_USAGE, type TokenUsage } from '../../../core/pricing/usage.ts'
import { saysError } from '../../answer/content.ts'
import type { UsageReport } from '../../answer/reported-usage.ts'
import { unreadableEvent } from '../../answer/request-errors.ts'
import { type LooseObject, parseFields, toFields, toList, toText } from '../../loose.ts'
import type { PartReader } from '../../translate/stream.ts'
import { itemFacts, ServerToolItems } from '../tool-items.ts'
import { readResponsesUsage } from '../usage.ts'

type Emit = (part: Part) => void

/** Reasoning is proved by the id of its item and its encrypted content. */
export const reasoningProof = (id: string, encrypted: string): string => `${id} ${encrypted}`

interface OpenItem {
  readonly type: string
  /** The number of the call; -1 for an item that is none. */
  readonly call: number
  /** Its text or arguments have arrived in pieces. */
  hasPieces: boolean
}

const CALLS: ReadonlySet<string> = new Set(['function_call', 'custom_tool_call'])

export class ResponsesReader implements PartReader {
  readonly #tools: ServerToolItems
  readonly #items = new Map<unknown, OpenItem>()
  #calls = 0
  #hasBegun = false
  #isRefused = false
  report: UsageReport | null = null
  usage: unknown = null
  serviceTier = ''
  /** An item has ended and nothing followed. */
  isFinishing = false

  constructor(provider?: string) {
    this.#tools = new ServerToolItems(provider)
  }

  withTools(usage: TokenUsage | null): TokenUsage | null {
    return usage === null && this.#tools.calls === 0 ? null : this.#tools.addTo(usage ?? NO_USAGE)
  }

  read(name: string, data: string, emit: Emit): void {
    const event = parseFields(data)
    if (event === null) {
      if (data !== '[DONE]') emit({ type: 'error', payload: unreadableEvent('An event is not JSON.') })
      return
    }
    const type = toText(event.type) || name
    if (type === 'error' || type === 'response.failed' || saysError(event))
      emit({ type: 'error', payload: errorPayload(event, data) })
    else this.#event(type, event, emit)
  }

  /** Reads a whole response as if it were streamed. Returns false for a body that is none. */
  readWhole(response: LooseObject, emit: Emit): boolean {
    if (saysError(response) || response.status === 'failed' || !Array.isArray(response.output)) return false
    this.#begin(response, emit)
    for (const [index, item] of response.output.entries()) {
      this.#itemAdded(index, toFields(item), emit)
      this.#itemDone(index, toFields(item), emit)
    }
    this.#end(response, emit)
    return true
  }

  #event(type: string, event: LooseObject, emit: Emit): void {
    this.isFinishing = type === 'response.output_item.done'
    const { output_index: index, delta } = event
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
        this.#begin(toFields(event.response), emit)
        break
      case 'response.output_item.added':
        this.#itemAdded(index, toFields(event.item), emit)
        break
      case 'response.output_text.delta':
        this.#piece(index, { type: 'text', choice: 0, text: toText(delta) }, emit)
        break
      case 'response.refusal.delta':
        this.#isRefused = true
        this.#piece(index, { type: 'refusal', choice: 0, text: toText(delta) }, emit)
        break
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        this.#piece(index, { type: 'reasoning', choice: 0, text: toText(delta) }, emit)
        break
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.#argumentsPiece(index, toText(delta), emit)
        break
      case 'response.output_text.annotation.added':
        citation(event.annotation, emit)
        break
      case 'response.output_item.done':
        this.#itemDone(index, toFields(event.item), emit)
        break
      case 'response.completed':
      case 'response.incomplete':
      case 'response.done':
        this.#end(toFields(event.response), emit)
        break
    }
  }

  #begin(response: LooseObject, emit: Emit): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    emit({ type: 'start', id: toText(response.id), model: toText(response.model) })
  }

  #item(index: unknown): OpenItem {
    const known = this.#items.get(index)
    if (known !== undefined) return known
    const item = { type: '', call: -1, hasPieces: false }
    this.#items.set(index, item)
    return item
  }

  #itemAdded(index: unknown, item: LooseObject, emit: Emit): void {
    if (this.#items.has(index)) return
    const type = toText(item.type)
    const call = CALLS.has(type) ? this.#calls++ : -1
    this.#items.set(index, { type, call, hasPieces: false })
    if (call < 0) return
    const id = toText(item.call_id) || toText(item.id)
    const namespace = toText(item.namespace)
    const name = toText(item.name)
    emit({
      type: 'tool_call',
      choice: 0,
      index: call,
      id,
      name: namespace === '' ? name : `${namespace}__${name}`,
      signature: null,
    })
    if (type === 'custom_tool_call')
      emit({ type: 'tool_arguments', choice: 0, index: call, json: '{"input":"' })
  }

  #piece(index: unknown, part: Extract<Part, { text: string }>, emit: Emit): void {
    this.#item(index).hasPieces = true
    if (part.text !== '') emit(part)
  }

  #argumentsPiece(index: unknown, text: string, emit: Emit): void {
    const item = this.#item(index)
    if (item.call < 0 || text === '') return
    item.hasPieces = true
    const json = item.type === 'custom_tool_call' ? JSON.stringify(text).slice(1, -1) : text
    emit({ type: 'tool_arguments', choice: 0, index: item.call, json })
  }

  #itemDone(index: unknown, item: LooseObject, emit: Emit): void {
    this.#itemAdded(index, item, emit)
    this.#tools.add(itemFacts(item))
    const { type, hasPieces } = this.#item(index)
    switch (type) {
      case 'message':
        for (const part of toList(item.content).map(toFields)) this.#messagePart(index, part, hasPieces, emit)
        break
      case 'reasoning': {
        const said = [...toList(item.summary), ...toList(item.content)].map((part) =>
          toText(toFields(part).text),
        )
        if (!hasPieces) this.#piece(index, { type: 'reasoning', choice: 0, text: said.join('\n\n') }, emit)
        const encrypted = toText(item.encrypted_content)
        if (encrypted !== '')
          emit({ type: 'signature', choice: 0, signature: reasoningProof(toText(item.id), encrypted) })
        break
      }
      case 'function_call':
        if (!hasPieces) this.#argumentsPiece(index, toText(item.arguments), emit)
        break
      case 'custom_tool_call':
        if (!hasPieces) this.#argumentsPiece(index, toText(item.input), emit)
        emit({ type: 'tool_arguments', choice: 0, index: this.#item(index).call, json: '"}' })
        break
      case 'image_generation_call':
        if (toText(item.result) !== '')
          emit({
            type: 'image',
            choice: 0,
            mediaType: 'image/png',
            base64: toText(item.result),
            signature: null,
          })
        break
    }
  }

  #messagePart(index: unknown, part: LooseObject, hasPieces: boolean, emit: Emit): void {
    if (hasPieces) return
    if (part.type === 'refusal') {
      this.#isRefused = true
      this.#piece(index, { type: 'refusal', choice: 0, text: toText(part.refusal) }, emit)
      return
    }
    this.#piece(index, { type: 'text', choice: 0, text: toText(part.text) }, emit)
    for (const annotation of toList(part.annotations)) citation(annotation, emit)
  }

  #end(response: LooseObject, emit: Emit): void {
    this.#begin(response, emit)
    this.serviceTier = toText(response.service_tier)
    this.usage = response.usage
    this.#tools.report(response.usage)
    const report = readResponsesUsage(response.usage)
    if (report !== null) {
      this.report = this.#tools.addTo(report)
      const { prompt, output, extra } = this.report
      const audio = { promptAudio: extra?.inputAudio ?? 0, outputAudio: extra?.outputAudio ?? 0 }
      if (prompt !== null && output !== null)
        emit({ type: 'usage', usage: { ...this.report, prompt, output, ...audio } })
    }
    emit({ type: 'finish', choice: 0, reason: this.#finishReason(response) })
    emit({ type: 'end' })
  }

  #finishReason({ status, incomplete_details: details }: LooseObject): FinishReason {
    const reason = toText(toFields(details).reason)
    if (reason === 'content_filter' || this.#isRefused) return 'content_filter'
    if (status === 'incomplete') return 'length'
    return this.#calls > 0 ? 'tool_calls' : 'stop'
  }
}

/** Returns the payload with its error where every other protocol has it. */
function errorPayload(event: LooseObject, data: string): string {
  const error = toFields(event.response).error ?? event.error
  if (error != null && typeof error === 'object') return JSON.stringify({ error })
  return event.type === 'error' ? JSON.stringify({ error: event }) : data
}

function citation(value: unknown, emit: Emit): void {
  const { type, url, title, start_index: start, end_index: end } = toFields(value)
  if (type !== 'url_citation' || toText(url) === '') return
  const at = (index: unknown): number => (typeof index === 'number' ? index : 0)
  emit({
    type: 'citation',
    choice: 0,
    start: at(start),
    end: at(end),
    url: toText(url),
    title: toText(title),
  })
}
