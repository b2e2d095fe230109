/**
 * Prints the parts of a translated answer as answers of the generate-content protocol, which a stream sends one after another. A
 * call goes out whole. See docs/translation.md, "The answer".
 */

import type { Seal } from '../../../../schemas/chat/conversation.ts'
import type { FinishReason, Part, UsageTokens } from '../../../../schemas/chat/part.ts'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { ulid } from '../../../core/keys/ids.ts'
import { readErrorMessage } from '../../answer/request-errors.ts'
import { type LooseObject, parseFields, toFields, toList, toText } from '../../loose.ts'
import { printSeal } from '../../translate/seal.ts'

type ToolPart = Extract<Part, { type: 'tool_call' }>
type ChoicePart = Extract<Part, { choice: number }>

interface Options {
  /** The model as the client named it. */
  readonly model: string
  readonly upstream: ChatProtocol
  readonly emit: (answer: LooseObject) => void
}

const FINISH_REASONS: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  length: 'MAX_TOKENS',
  tool_calls: 'STOP',
  content_filter: 'SAFETY',
}

export function printUsage(usage: UsageTokens): LooseObject {
  const { prompt, cached, output, reasoning } = usage
  return {
    promptTokenCount: prompt,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    candidatesTokenCount: output - reasoning,
    ...(reasoning > 0 && { thoughtsTokenCount: reasoning }),
    totalTokenCount: prompt + output,
  }
}

const SERVER_ERROR = 500

/** Returns the protocol's error for one of any protocol. */
export const toGenerateContentError = (payload: string): LooseObject => ({
  error: { code: SERVER_ERROR, message: readErrorMessage(payload), status: 'INTERNAL' },
})

interface OpenChoice {
  readonly calls: Map<number, { readonly call: ToolPart; json: string }>
  /** Reasoning that is not signed yet: clients return signatures, and not the reasoning. */
  reasoning: string
  seal: Seal | null
  finish: FinishReason | null
  refusal: string
}

export class GenerateContentPrinter {
  readonly #options: Options
  readonly #choices = new Map<number, OpenChoice>()
  #id = ''
  #usage: UsageTokens | null = null

  constructor(options: Options) {
    this.#options = options
  }

  print(part: Part): void {
    switch (part.type) {
      case 'start':
        this.#id = part.id
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
    this.#content(part, this.#choice(part.choice))
  }

  #choice(index: number): OpenChoice {
    const known = this.#choices.get(index)
    if (known !== undefined) return known
    const opened = { calls: new Map(), reasoning: '', seal: null, finish: null, refusal: '' }
    this.#choices.set(index, opened)
    return opened
  }

  #emit(index: number, parts: readonly LooseObject[], more: LooseObject = {}): void {
    this.#emitAll([{ content: { role: 'model', parts }, ...more, index }])
  }

  #emitAll(candidates: readonly LooseObject[], more: LooseObject = {}): void {
    const { model, emit } = this.#options
    this.#id ||= ulid()
    emit({ candidates, ...more, modelVersion: model, responseId: this.#id })
  }

  #content(part: ChoicePart, choice: OpenChoice): void {
    switch (part.type) {
      case 'text':
        if (part.text !== '') this.#emit(part.choice, [{ text: part.text, ...signature(choice) }])
        break
      case 'reasoning':
        choice.reasoning += part.text
        if (part.text !== '') this.#emit(part.choice, [{ text: part.text, thought: true }])
        break
      case 'signature':
        choice.seal = this.#seal(part.signature, choice)
        break
      case 'sealed_reasoning':
        choice.seal = { ...this.#seal(part.data, choice), isRedacted: true }
        break
      case 'tool_call':
        choice.calls.set(part.index, { call: part, json: '' })
        break
      case 'tool_arguments': {
        const open = choice.calls.get(part.index)
        if (open !== undefined) open.json += part.json
        break
      }
      case 'image':
        this.#emit(part.choice, [{ inlineData: { mimeType: part.mediaType, data: part.base64 } }])
        break
      case 'audio':
        this.#emit(part.choice, [{ inlineData: { mimeType: 'audio/pcm', data: part.base64 } }])
        break
      case 'refusal':
        choice.refusal += part.text
        break
      case 'finish':
        choice.finish = part.reason
        break
    }
  }

  #seal(data: string, choice: OpenChoice): Seal {
    const { reasoning } = choice
    choice.reasoning = ''
    return { protocol: this.#options.upstream, data, ...(reasoning !== '' && { text: reasoning }) }
  }

  #calls(choice: OpenChoice): readonly LooseObject[] {
    return [...choice.calls.values()].map(({ call, json }) => {
      const { id, name } = call
      if (call.signature !== null)
        choice.seal = { protocol: this.#options.upstream, data: call.signature, isOfCall: true }
      const args = toFields(parseFields(json === '' ? '{}' : json))
      return { functionCall: { id, name, args }, ...signature(choice) }
    })
  }

  #end(): void {
    if (this.#choices.size === 0) this.#choice(0)
    const candidates = [...this.#choices].map(([index, choice]) => {
      const { finish, refusal } = choice
      const calls = this.#calls(choice)
      // A signature that nothing followed needs a part.
      const parts = choice.seal === null ? calls : [...calls, { text: '', ...signature(choice) }]
      return {
        content: { role: 'model', parts },
        finishReason: FINISH_REASONS[finish ?? 'stop'],
        ...(refusal !== '' && { finishMessage: refusal }),
        index,
      }
    })
    this.#emitAll(candidates, this.#usage === null ? {} : { usageMetadata: printUsage(this.#usage) })
  }
}

/** Returns the signature that waits for a part. */
function signature(choice: OpenChoice): LooseObject {
  const { seal } = choice
  if (seal === null) return {}
  choice.seal = null
  return { thoughtSignature: printSeal(seal, 'generate-content') }
}

interface WholeCandidate {
  readonly parts: Record<string, unknown>[]
  last: LooseObject
}

/** Puts the answers of one stream together. */
export class AssembledContent {
  readonly #candidates = new Map<unknown, WholeCandidate>()
  #last: LooseObject = {}

  add(answer: LooseObject): void {
    this.#last = { ...this.#last, ...answer }
    for (const candidate of toList(answer.candidates).map(toFields)) {
      const known = this.#candidates.get(candidate.index) ?? { parts: [], last: {} }
      this.#candidates.set(candidate.index, known)
      known.last = candidate
      for (const part of toList(toFields(candidate.content).parts)) addPart(known.parts, toFields(part))
    }
  }

  answer(): LooseObject {
    const candidates = [...this.#candidates.values()].map(({ parts, last }) => ({
      ...last,
      content: { role: 'model', parts },
    }))
    return { ...this.#last, candidates }
  }
}

/** Joins a piece of text with the one before it, where both are of one kind. */
function addPart(parts: Record<string, unknown>[], part: LooseObject): void {
  const last = parts.at(-1)
  const isMore =
    typeof part.text === 'string' &&
    part.thoughtSignature === undefined &&
    typeof last?.text === 'string' &&
    last.thought === part.thought
  if (isMore) last.text = toText(last.text) + toText(part.text)
  else parts.push({ ...part })
}
