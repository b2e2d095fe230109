/**
 * Reads the answer of an upstream of the chat-completions protocol into parts. Reading is lenient: what it does not know is
 * skipped. See docs/translation.md, "The answer".
 */
import type { FinishReason, Part, TokenLogprob } from '../../../../schemas/chat/part.ts'
import { ulid } from '../../../core/keys/ids.ts'
import { saysError } from '../../answer/content.ts'
import type { UsageReport } from '../../answer/reported-usage.ts'
import { unreadableEvent } from '../../answer/request-errors.ts'
import { type LooseObject, parseFields, toFields, toList, toText } from '../../loose.ts'
import type { PartReader } from '../../translate/stream.ts'
import { readUsage } from '../../usage/chat-completions.ts'

type Emit = (part: Part) => void

const DONE = '[DONE]'

const FINISH: Readonly<Record<string, FinishReason>> = {
  length: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'content_filter',
}
/** Legacy functions have one call, without an index. */
const ONLY_CALL = 0
const DATA_URI = /^data:([^;,]+);base64,(.*)$/s

interface OpenCall {
  /** Counts the calls of the choice from 0. */
  readonly number: number
  /** The upstream's; empty without one. */
  readonly id: string
}

interface OpenChoice {
  /** The latest call of each index of the upstream. */
  readonly calls: Map<number, OpenCall>
  callCount: number
  isFinished: boolean
}

export class CompletionReader implements PartReader {
  readonly #provider: string | undefined
  readonly #choices = new Map<number, OpenChoice>()
  #hasBegun = false
  #isDone = false
  report: UsageReport | null = null
  usage: unknown = null
  serviceTier = ''

  constructor(provider?: string) {
    this.#provider = provider
  }

  /** Every choice has finished: usage comes next, if anything does. */
  get isFinishing(): boolean {
    return this.#choices.size > 0 && [...this.#choices.values()].every(({ isFinished }) => isFinished)
  }

  read(_name: string, data: string, emit: Emit): void {
    if (data === DONE) {
      this.#isDone = true
      emit({ type: 'end' })
      return
    }
    const chunk = parseFields(data)
    if (chunk === null) emit({ type: 'error', payload: unreadableEvent('An event is not JSON.') })
    else if (saysError(chunk)) emit({ type: 'error', payload: data })
    else this.#chunk(chunk, emit)
  }

  /** Reads a whole completion as if it were streamed. Returns false for a body that is none. */
  readWhole(answer: LooseObject, emit: Emit): boolean {
    if (saysError(answer) || !Array.isArray(answer.choices)) return false
    this.#chunk(answer, emit)
    emit({ type: 'end' })
    return true
  }

  /** Some upstreams leave out the last event. */
  end(emit: Emit): void {
    if (!this.#isDone && this.isFinishing) emit({ type: 'end' })
  }

  #chunk(chunk: LooseObject, emit: Emit): void {
    if (!this.#hasBegun) emit({ type: 'start', id: toText(chunk.id), model: toText(chunk.model) })
    this.#hasBegun = true
    this.serviceTier = toText(chunk.service_tier) || this.serviceTier
    for (const item of toList(chunk.choices)) this.#choice(toFields(item), emit)
    const usage = chunk.usage ?? toFields(toList(chunk.choices)[0]).usage
    if (usage != null) this.#report(usage, emit)
  }

  #report(value: unknown, emit: Emit): void {
    this.usage = value
    const report = readUsage(value, this.#provider)
    if (report === null) return
    this.report = report
    const { prompt, output } = report
    if (prompt === null || output === null) return
    const { inputAudio = 0, outputAudio = 0 } = report.extra ?? {}
    const audio = { promptAudio: inputAudio, outputAudio }
    emit({ type: 'usage', usage: { ...report, prompt, output, ...audio } })
  }

  #choice(choice: LooseObject, emit: Emit): void {
    const index = Number.isSafeInteger(choice.index) ? (choice.index as number) : 0
    const open = this.#choices.get(index) ?? { calls: new Map(), callCount: 0, isFinished: false }
    this.#choices.set(index, open)
    this.#message(toFields(choice.delta ?? choice.message), index, open, emit)
    const tokens = readTokens(choice.logprobs)
    if (tokens.length > 0) emit({ type: 'logprobs', choice: index, tokens })
    const reason = toText(choice.finish_reason)
    if (reason === '') return
    open.isFinished = true
    // Some upstreams end with `stop` after calls.
    const isCalling = reason === 'stop' && open.callCount > 0
    emit({ type: 'finish', choice: index, reason: isCalling ? 'tool_calls' : (FINISH[reason] ?? 'stop') })
  }

  #message(message: LooseObject, choice: number, open: OpenChoice, emit: Emit): void {
    const reasoning = toText(message.reasoning_content) || toText(message.reasoning)
    if (reasoning !== '') emit({ type: 'reasoning', choice, text: reasoning })
    for (const block of toList(message.thinking_blocks).map(toFields)) this.#thought(block, choice, emit)
    const { content } = message
    if (typeof content === 'string') {
      if (content !== '') emit({ type: 'text', choice, text: content })
    } else for (const part of toList(content).map(toFields)) this.#contentPart(part, choice, emit)
    if (toText(message.refusal) !== '') emit({ type: 'refusal', choice, text: toText(message.refusal) })
    for (const image of toList(message.images)) imagePart(toFields(image), choice, emit)
    const audio = toText(toFields(message.audio).data)
    if (audio !== '') emit({ type: 'audio', choice, base64: audio })
    for (const [at, call] of toList(message.tool_calls).entries())
      this.#toolCall(toFields(call), at, choice, open, emit)
    const legacy = toFields(message.function_call)
    if (Object.keys(legacy).length > 0)
      this.#toolCall({ function: legacy, index: ONLY_CALL }, ONLY_CALL, choice, open, emit)
    for (const annotation of toList(message.annotations)) citation(annotation, choice, emit)
  }

  #thought({ type, signature, data }: LooseObject, choice: number, emit: Emit): void {
    if (type === 'redacted_thinking' && toText(data) !== '')
      emit({ type: 'sealed_reasoning', choice, data: toText(data) })
    else if (toText(signature) !== '') emit({ type: 'signature', choice, signature: toText(signature) })
  }

  /** Some upstreams answer with a list of parts, reasoning among them. */
  #contentPart(part: LooseObject, choice: number, emit: Emit): void {
    const text = toText(part.text)
    if (part.type === 'thinking') {
      const thought =
        toText(part.thinking) ||
        toList(part.thinking)
          .map((each) => toText(toFields(each).text))
          .join('')
      if (thought !== '') emit({ type: 'reasoning', choice, text: thought })
    } else if (part.type === 'image_url') imagePart(part, choice, emit)
    else if (text !== '') emit({ type: 'text', choice, text })
  }

  #toolCall(call: LooseObject, at: number, choice: number, open: OpenChoice, emit: Emit): void {
    const called = toFields(call.function)
    const name = toText(called.name)
    const place = Number.isSafeInteger(call.index) ? (call.index as number) : at
    let known = open.calls.get(place)
    if (known === undefined || (name !== '' && isAnother(call, known))) {
      if (name === '') return
      known = { number: open.callCount++, id: toText(call.id) }
      open.calls.set(place, known)
      const id = known.id || `call_${ulid()}`
      const signature = toText(toFields(toFields(call.extra_content).google).thought_signature) || null
      emit({ type: 'tool_call', choice, index: known.number, id, name, signature })
    }
    // Some upstreams send the arguments as an object.
    const json =
      typeof called.arguments === 'object' && called.arguments !== null
        ? JSON.stringify(called.arguments)
        : toText(called.arguments)
    if (json !== '') emit({ type: 'tool_arguments', choice, index: known.number, json })
  }
}

/** Some upstreams send no index, or the same one for all calls: then the id tells a call from the one before it. */
function isAnother({ index, id }: LooseObject, known: OpenCall): boolean {
  return toText(id) === '' ? !Number.isSafeInteger(index) : id !== known.id
}

function imagePart({ image_url: link }: LooseObject, choice: number, emit: Emit): void {
  const match = DATA_URI.exec(toText(toFields(link).url) || toText(link))
  if (match === null) return
  const [, mediaType = '', base64 = ''] = match
  emit({ type: 'image', choice, mediaType, base64, signature: null })
}

function citation(annotation: unknown, choice: number, emit: Emit): void {
  const { url, title, start_index: start, end_index: end } = toFields(toFields(annotation).url_citation)
  if (toText(url) === '') return
  const at = (value: unknown): number => (typeof value === 'number' ? value : 0)
  emit({ type: 'citation', choice, start: at(start), end: at(end), url: toText(url), title: toText(title) })
}

function readTokens(logprobs: unknown): readonly TokenLogprob[] {
  const read = (value: unknown): { token: string; logprob: number }[] => {
    const { token, logprob } = toFields(value)
    return typeof token === 'string' && typeof logprob === 'number' ? [{ token, logprob }] : []
  }
  return toList(toFields(logprobs).content).flatMap((item) => {
    const top = toList(toFields(item).top_logprobs).flatMap(read)
    return read(item).map((token) => ({ ...token, top }))
  })
}
