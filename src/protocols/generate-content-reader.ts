/**
 * Reads what an upstream of the generate-content protocol says into parts. It is read loosely: what is unknown is
 * skipped. The protocol has no last event: a stream is complete when it ends after a candidate has finished, or after
 * the prompt was blocked. Source: translation, "Response, from `generate-content`".
 */
import type { FinishReason, Part } from '../../schemas/part.ts'
import { ulid } from '../core/ids.ts'
import type { TokenUsage } from '../core/pricing.ts'
import { GenerateContentUsage } from './generate-content-usage.ts'
import { fieldsOf, type Loose, parsedFields, textOf } from './loose.ts'
import type { PartReader } from './translated-stream.ts'

type Emit = (part: Part) => void

const FILTERED: ReadonlySet<string> = new Set([
  'SAFETY',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'RECITATION',
])
const FILTERED_PICTURE = /^IMAGE_/

/** Some upstreams end their streams as other protocols do. */
const DONE = '[DONE]'

interface Candidate {
  calls: number
  /** As the upstream has it; empty until it is told. */
  reason: string
}

function finishReason({ reason, calls }: Candidate): FinishReason {
  if (reason === 'MAX_TOKENS') return 'length'
  if (FILTERED.has(reason) || FILTERED_PICTURE.test(reason)) return 'content_filter'
  return calls > 0 ? 'tool_calls' : 'stop'
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** The first candidate's index is 0, which the vendor leaves out. */
const indexOf = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, value as number) : 0)

const isError = ({ error }: Loose): boolean =>
  (typeof error === 'string' && error !== '') || Object.keys(fieldsOf(error)).length > 0

const payloadOf = (message: string): string => JSON.stringify({ error: { message } })

export class GenerateContentReader implements PartReader {
  readonly #usage = new GenerateContentUsage()
  readonly #candidates = new Map<number, Candidate>()
  #hasBegun = false
  #hasSpoken = false
  #isBlocked = false
  #hasErred = false
  #hasEnded = false

  /** Should the answer end here, it is whole. */
  get isComplete(): boolean {
    if (this.#hasErred) return false
    const candidates = [...this.#candidates.values()]
    if (candidates.length === 0) return this.#isBlocked
    return this.#isBlocked || candidates.every(({ reason }) => reason !== '')
  }

  get usage(): TokenUsage | null {
    return this.#usage.tokens(this.#hasSpoken && (this.#hasEnded || this.isComplete))
  }

  read(_name: string, data: string, emit: Emit): boolean {
    if (data === DONE) return false
    const event = parsedFields(data)
    if (event === null) this.#err(payloadOf('An event is not JSON.'), emit)
    else if (isError(event)) this.#err(data, emit)
    else this.#answer(event, emit)
    return true
  }

  /** A whole answer, as if it had been streamed. Returns false for what is none. */
  readWhole(answer: Loose, emit: Emit): boolean {
    if (isError(answer)) return false
    this.#answer(answer, emit)
    if (this.#hasErred || (this.#candidates.size === 0 && !this.#isBlocked)) return false
    this.end(emit)
    return true
  }

  /** Only now is it certain that no further call comes, so only now do the candidates finish. */
  end(emit: Emit): void {
    this.#hasEnded = true
    if (this.#candidates.size === 0) this.#candidate(0)
    for (const [choice, candidate] of this.#candidates) {
      const reason = this.#isBlocked && candidate.reason === '' ? 'content_filter' : finishReason(candidate)
      emit({ type: 'finish', choice, reason })
    }
    emit({ type: 'end' })
  }

  #candidate(index: number): Candidate {
    const known = this.#candidates.get(index)
    if (known !== undefined) return known
    const candidate = { calls: 0, reason: '' }
    this.#candidates.set(index, candidate)
    return candidate
  }

  #answer(answer: Loose, emit: Emit): void {
    if (!this.#hasBegun)
      emit({ type: 'start', id: textOf(answer.responseId), model: textOf(answer.modelVersion) })
    this.#hasBegun = true
    let queries = 0
    for (const item of listOf(answer.candidates)) {
      const fields = fieldsOf(item)
      const index = indexOf(fields.index)
      const candidate = this.#candidate(index)
      for (const part of listOf(fieldsOf(fields.content).parts))
        this.#part(fieldsOf(part), index, candidate, emit)
      candidate.reason = textOf(fields.finishReason) || candidate.reason
      queries += listOf(fieldsOf(fields.groundingMetadata).webSearchQueries).length
    }
    this.#isBlocked ||= textOf(fieldsOf(answer.promptFeedback).blockReason) !== ''
    this.#usage.searched(queries)
    if (this.#usage.report(answer.usageMetadata)) this.#tellUsage(emit)
  }

  #tellUsage(emit: Emit): void {
    const usage = this.usage
    if (usage !== null) emit({ type: 'usage', usage })
  }

  #part(part: Loose, choice: number, candidate: Candidate, emit: Emit): void {
    const text = textOf(part.text)
    if (text !== '') {
      this.#hasSpoken = true
      emit({ type: part.thought === true ? 'reasoning' : 'text', choice, text })
    }
    const call = fieldsOf(part.functionCall)
    const name = textOf(call.name)
    if (name === '') return
    this.#hasSpoken = true
    const index = candidate.calls++
    const signature = textOf(part.thoughtSignature) || null
    // The vendor gives most calls no id, and some of them one that is not unique.
    emit({ type: 'tool_call', choice, index, id: `call_${ulid()}`, name, signature })
    emit({ type: 'tool_arguments', choice, index, json: JSON.stringify(fieldsOf(call.args)) })
  }

  #err(payload: string, emit: Emit): void {
    this.#hasErred = true
    emit({ type: 'error', payload })
  }
}
