/**
 * Reads the answer of an upstream of the messages protocol into parts. Reading is lenient: unknown events are skipped,
 * and an index that counts blocks becomes one that counts tools. See docs/translation.md, "The answer".
 */
import type { FinishReason, Part } from '../../../../schemas/chat/part.ts'
import type { TokenUsage } from '../../../core/pricing/usage.ts'
import { saysError } from '../../answer/content.ts'
import type { UsageReport } from '../../answer/reported-usage.ts'
import { unreadableEvent } from '../../answer/request-errors.ts'
import { isObject, type LooseObject, parseFields, toFields, toText } from '../../loose.ts'
import type { PartReader } from '../../translate/stream.ts'
import { METRICS_FIELD, MessagesUsage, REFUSAL, readBlock, readCategory } from '../usage.ts'
import { ANSWER_TOOL } from './output-format.ts'

type Emit = (part: Part) => void

const FINISH: Readonly<Record<string, FinishReason>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
}

/** Returns the finish reason. `end_turn`, `stop_sequence`, `pause_turn` and unknown reasons are an ordinary end. */
const finishReason = (reason: unknown): FinishReason =>
  typeof reason === 'string' && Object.hasOwn(FINISH, reason) ? FINISH[reason]! : 'stop'

/** Returns whether an event is an error, in the protocol's own shape or in the one that most others have. */
const isError = (event: LooseObject): boolean => event.type === 'error' || saysError(event)

/** No text of a model has more. */
const MAX_SOURCES = 256

/** One content block on its way. */
interface OpenBlock {
  /**
   * Null for all but the client's tools: a call of a tool that the upstream runs itself is no call of the client's.
   */
  readonly toolIndex: number | null
  /** The arguments in one piece, of upstreams that do not stream them; used where no piece came. */
  readonly input: string
  hasArguments: boolean
  signature: string
  /** True for the tool whose arguments are the answer. */
  readonly isAnswer: boolean
  /** Characters of text before it. */
  readonly textStart: number
  /** The sources that its text cites: titles by URL. */
  readonly sources: Map<string, string>
}

/** Cites the URL of a web page, or the source of a search result of the client's own. */
function cite(block: OpenBlock, citation: unknown): void {
  const { url, source, title } = toFields(citation)
  const link = toText(url) || toText(source)
  if (link !== '' && block.sources.size < MAX_SOURCES) block.sources.set(link, toText(title))
}

export class MessagesReader implements PartReader {
  readonly #usage = new MessagesUsage()
  readonly #blocks = new Map<unknown, OpenBlock>()
  #tools = 0
  #stopReason: unknown = null
  #stopDetails: unknown = null
  #answersByTool = false
  /** Characters of text so far. */
  #textCharacters = 0
  report: UsageReport | null = null
  /** The usage of the last report, as it came. */
  usage: unknown = null
  isFinishing = false

  get serviceTier(): string {
    return this.#usage.serviceTier
  }

  withTools(usage: TokenUsage | null): TokenUsage | null {
    return this.#usage.withTools(usage)
  }

  read(name: string, data: string, emit: Emit): void {
    const event = parseFields(data)
    if (event === null) emit({ type: 'error', payload: unreadableEvent('An event is not JSON.') })
    else if (name === 'error' || isError(event)) emit({ type: 'error', payload: data })
    else this.#event(event, emit)
  }

  #event(event: LooseObject, emit: Emit): void {
    if (event.type !== 'ping')
      this.isFinishing = event.type === 'content_block_stop' || event.type === 'message_delta'
    switch (event.type) {
      case 'message_start':
        this.#messageStart(toFields(event.message), emit)
        break
      case 'content_block_start':
        this.#blockStart(event.index, toFields(event.content_block), emit)
        break
      case 'content_block_delta':
        this.#blockDelta(event.index, toFields(event.delta), emit)
        break
      case 'content_block_stop':
        this.#blockStop(event.index, emit)
        break
      case 'message_delta':
        this.#stopReason = toFields(event.delta).stop_reason ?? this.#stopReason
        this.#stopDetails = toFields(event.delta).stop_details ?? this.#stopDetails
        this.#usageReport(event.usage, emit)
        break
      case 'message_stop':
        this.#metrics(event[METRICS_FIELD], emit)
        this.#messageStop(emit)
        break
    }
  }

  /** Reads a whole message as if it were streamed. Returns false for a body that is no message. */
  readWhole(message: LooseObject, emit: Emit): boolean {
    if (isError(message) || !Array.isArray(message.content)) return false
    this.#messageStart(message, emit)
    for (const [index, block] of message.content.entries()) {
      this.#blockStart(index, toFields(block), emit)
      this.#blockStop(index, emit)
    }
    this.#stopReason = message.stop_reason
    this.#stopDetails = message.stop_details
    this.#usageReport(message.usage, emit)
    this.#messageStop(emit)
    return true
  }

  #metrics(value: unknown, emit: Emit): void {
    if (!isObject(value)) return
    this.usage = value
    this.#take(this.#usage.metrics(value), emit)
  }

  #usageReport(value: unknown, emit: Emit): void {
    if (this.#stopReason === REFUSAL) this.#usage.refuse(readCategory(this.#stopDetails))
    this.usage = value
    this.#take(this.#usage.report(value), emit)
  }

  #take(report: UsageReport, emit: Emit): void {
    const { prompt, output } = report
    this.report = report
    if (prompt !== null && output !== null) emit({ type: 'usage', usage: { ...report, prompt, output } })
  }

  #messageStart(message: LooseObject, emit: Emit): void {
    emit({ type: 'start', id: toText(message.id), model: toText(message.model) })
    this.usage = message.usage
    this.report = this.#usage.begin(message.usage)
  }

  #blockStart(index: unknown, block: LooseObject, emit: Emit): void {
    this.#blockStop(index, emit)
    const isAnswer = block.type === 'tool_use' && block.name === ANSWER_TOOL
    const isTool = block.type === 'tool_use' && !isAnswer
    const toolIndex = isTool ? this.#tools++ : null
    const input = isTool || isAnswer ? JSON.stringify(toFields(block.input)) : ''
    this.#answersByTool ||= isAnswer
    const opened = {
      toolIndex,
      input,
      hasArguments: false,
      signature: toText(block.signature),
      isAnswer,
      textStart: this.#textCharacters,
      sources: new Map<string, string>(),
    }
    this.#blocks.set(index, opened)
    this.#usage.blockBegins(readBlock(block))
    for (const citation of Array.isArray(block.citations) ? block.citations : []) cite(opened, citation)
    if (toolIndex !== null) {
      const [id, name] = [toText(block.id), toText(block.name)]
      emit({ type: 'tool_call', choice: 0, index: toolIndex, id, name, signature: null })
    } else if (block.type === 'text') this.#say('text', block.text, emit)
    else if (block.type === 'thinking') this.#say('reasoning', block.thinking, emit)
    else if (block.type === 'redacted_thinking' && typeof block.data === 'string')
      emit({ type: 'sealed_reasoning', choice: 0, data: block.data })
  }

  #say(type: 'text' | 'reasoning', said: unknown, emit: Emit): void {
    const text = toText(said)
    if (text === '') return
    if (type === 'text') this.#textCharacters += countCodePoints(text)
    emit({ type, choice: 0, text })
  }

  #blockDelta(index: unknown, delta: LooseObject, emit: Emit): void {
    const block = this.#blocks.get(index)
    switch (delta.type) {
      case 'text_delta':
        this.#say('text', delta.text, emit)
        break
      case 'thinking_delta':
        this.#say('reasoning', delta.thinking, emit)
        break
      case 'citations_delta':
        if (block !== undefined) cite(block, delta.citation)
        break
      case 'signature_delta':
        if (block !== undefined) block.signature += toText(delta.signature)
        break
      case 'input_json_delta': {
        const json = toText(delta.partial_json)
        if (block === undefined || json === '') break
        block.hasArguments = true
        if (block.isAnswer) this.#say('text', json, emit)
        if (block.toolIndex === null) break
        emit({ type: 'tool_arguments', choice: 0, index: block.toolIndex, json })
        break
      }
    }
  }

  #blockStop(index: unknown, emit: Emit): void {
    const block = this.#blocks.get(index)
    if (block === undefined) return
    this.#blocks.delete(index)
    this.#usage.blockEnds()
    if (block.signature !== '') emit({ type: 'signature', choice: 0, signature: block.signature })
    if (block.isAnswer && !block.hasArguments) this.#say('text', block.input, emit)
    for (const [url, title] of block.sources) {
      const [start, end] = [block.textStart, this.#textCharacters]
      emit({ type: 'citation', choice: 0, start, end, url, title })
    }
    if (block.toolIndex !== null && !block.hasArguments)
      emit({ type: 'tool_arguments', choice: 0, index: block.toolIndex, json: block.input })
  }

  #messageStop(emit: Emit): void {
    for (const index of [...this.#blocks.keys()]) this.#blockStop(index, emit)
    const reason = finishReason(this.#stopReason)
    const explanation = toText(toFields(this.#stopDetails).explanation)
    if (reason === 'content_filter' && explanation !== '')
      emit({ type: 'refusal', choice: 0, text: explanation })
    const isAnswer = this.#answersByTool && reason === 'tool_calls'
    emit({ type: 'finish', choice: 0, reason: isAnswer ? 'stop' : reason })
    emit({ type: 'end' })
  }
}

/** Counts code points. The halves of a pair may come in two pieces: it is the first that counts. */
function countCodePoints(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count--
  return count
}
