/**
 * Reads the answer of an upstream of the generate-content protocol into parts. Reading is lenient: unknown fields are
 * skipped. The protocol has no last event: a stream is complete when it ends after a candidate has finished, or after
 * the prompt was blocked. See docs/translation.md, "The answer".
 */
import type { FinishReason, Part, TokenLogprob } from '../../../../schemas/chat/part.ts'
import { ulid } from '../../../core/keys/ids.ts'
import { saysError } from '../../answer/content.ts'
import type { UsageReport } from '../../answer/reported-usage.ts'
import { unreadableEvent } from '../../answer/request-errors.ts'
import { isObject, type LooseObject, parseFields, toFields, toList, toText } from '../../loose.ts'
import type { PartReader } from '../../translate/stream.ts'
import { GenerateContentUsage, type Said } from '../usage.ts'
import { CitedSources } from './citations.ts'

type Emit = (part: Part) => void

const FILTERED: ReadonlySet<string> = new Set([
  'SAFETY',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'RECITATION',
  'MODEL_ARMOR',
])
/** The limit of the model's output, or of one request. */
const AT_LIMIT: ReadonlySet<string> = new Set(['MAX_TOKENS', 'CONTINUATION'])
const FILTERED_PICTURE = /^IMAGE_/

/** Some upstreams end their streams as other protocols do. */
const DONE = '[DONE]'

interface Candidate {
  calls: number
  /** The text so far. */
  text: string
  readonly sources: CitedSources
  /** The vendor's finish reason; empty until known. */
  message: string
  /** As the upstream has it; empty until known. */
  reason: string
}

/** Returns whether a filter took the answer, by its reason to finish. */
export const isFiltered = (reason: string): boolean => FILTERED.has(reason) || FILTERED_PICTURE.test(reason)

function finishReason({ reason, calls }: Candidate): FinishReason {
  if (AT_LIMIT.has(reason)) return 'length'
  if (isFiltered(reason)) return 'content_filter'
  return calls > 0 ? 'tool_calls' : 'stop'
}

/** Returns the candidate's index; the vendor omits 0, the first. */
const readIndex = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, value as number) : 0)

const isBlocked = ({ promptFeedback }: LooseObject): boolean =>
  toText(toFields(promptFeedback).blockReason) !== ''

/** Returns the code that the upstream ran, and its output, as Markdown. */
function printCode({ executableCode, codeExecutionResult }: LooseObject): string {
  const { code, language } = toFields(executableCode)
  if (toText(code) !== '') return fence(toText(language).toLowerCase(), toText(code))
  const output = toText(toFields(codeExecutionResult).output)
  return output === '' ? '' : fence('', output)
}

const fence = (language: string, text: string): string =>
  `\n\`\`\`${language}\n${text.endsWith('\n') ? text : `${text}\n`}\`\`\`\n`

/** Returns the tokens of `logprobsResult`; skips tokens without text. */
function readLogprobs(result: unknown): readonly TokenLogprob[] {
  if (result == null) return []
  const { chosenCandidates, topCandidates } = toFields(result)
  const top = toList(topCandidates)
  return toList(chosenCandidates).flatMap((chosen, index) => {
    const others = toList(toFields(top[index]).candidates).flatMap(readToken)
    return readToken(chosen).map((token) => ({ ...token, top: others }))
  })
}

function readToken(candidate: unknown): { token: string; logprob: number }[] {
  const { token, logProbability } = toFields(candidate)
  return typeof token === 'string' && typeof logProbability === 'number'
    ? [{ token, logprob: logProbability }]
    : []
}

export class GenerateContentReader implements PartReader {
  readonly #usage = new GenerateContentUsage()
  readonly #candidates = new Map<number, Candidate>()
  /** Candidates without a reason to finish. */
  #unfinished = 0
  #hasBegun = false
  #model = ''
  #said: Said = 'nothing'
  report: UsageReport | null = null
  usage: unknown = null
  #isBlocked = false
  #blockMessage = ''
  #hasErred = false

  /** Should the answer end here, it is whole. */
  get isFinishing(): boolean {
    if (this.#hasErred) return false
    return this.#isBlocked || (this.#candidates.size > 0 && this.#unfinished === 0)
  }

  get serviceTier(): string {
    return this.#usage.serviceTier
  }

  read(_name: string, data: string, emit: Emit): void {
    if (data === DONE) return
    const event = parseFields(data)
    if (event === null) this.#err(unreadableEvent('An event is not JSON.'), emit)
    else if (saysError(event)) this.#err(data, emit)
    else this.#answer(event, emit)
  }

  /** Reads a whole answer as if it were streamed. Returns false for a body that is no answer. */
  readWhole(answer: LooseObject, emit: Emit): boolean {
    if (saysError(answer)) return false
    this.#answer(answer, emit)
    if (this.#hasErred || (this.#candidates.size === 0 && !this.#isBlocked)) return false
    this.#finish(emit)
    return true
  }

  end(emit: Emit): void {
    if (this.isFinishing) this.#finish(emit)
  }

  /** Finishes the candidates: only now is it certain that no further call follows. */
  #finish(emit: Emit): void {
    if (this.#candidates.size === 0) this.#candidate(0)
    for (const [choice, candidate] of this.#candidates) {
      const isBlocked = this.#isBlocked && candidate.reason === ''
      const reason = isBlocked ? 'content_filter' : finishReason(candidate)
      const refusal = isBlocked ? this.#blockMessage : isFiltered(candidate.reason) ? candidate.message : ''
      if (refusal !== '') emit({ type: 'refusal', choice, text: refusal })
      for (const citation of candidate.sources.citations(candidate.text))
        emit({ type: 'citation', choice, ...citation })
      emit({ type: 'finish', choice, reason })
    }
    emit({ type: 'end' })
  }

  #candidate(index: number): Candidate {
    const known = this.#candidates.get(index)
    if (known !== undefined) return known
    const candidate = { calls: 0, reason: '', text: '', message: '', sources: new CitedSources() }
    this.#candidates.set(index, candidate)
    this.#unfinished++
    return candidate
  }

  #answer(answer: LooseObject, emit: Emit): void {
    if (!this.#hasBegun)
      emit({ type: 'start', id: toText(answer.responseId), model: toText(answer.modelVersion) })
    this.#hasBegun = true
    this.#model ||= toText(answer.modelVersion)
    let [queries, pages, hasMaps] = [0, 0, false]
    for (const item of toList(answer.candidates)) {
      const fields = toFields(item)
      const index = readIndex(fields.index)
      const candidate = this.#candidate(index)
      for (const part of toList(toFields(fields.content).parts))
        this.#part(toFields(part), index, candidate, emit)
      const reason = toText(fields.finishReason)
      if (reason !== '' && candidate.reason === '') this.#unfinished--
      candidate.reason = reason || candidate.reason
      candidate.message = toText(fields.finishMessage) || candidate.message
      candidate.sources.add(fields)
      const tokens = readLogprobs(fields.logprobsResult)
      if (tokens.length > 0) emit({ type: 'logprobs', choice: index, tokens })
      const { webSearchQueries, groundingChunks } = toFields(fields.groundingMetadata)
      queries += toList(webSearchQueries).filter((query) => toText(query) !== '').length
      hasMaps ||= toList(groundingChunks).some((chunk) => isObject(toFields(chunk).maps))
      pages += toList(toFields(fields.urlContextMetadata).urlMetadata).length
    }
    this.#isBlocked ||= isBlocked(answer)
    this.#blockMessage ||= toText(toFields(answer.promptFeedback).blockReasonMessage)
    this.#usage.grounded({ queries, pages, hasMaps }, this.#model)
    const report = this.#usage.report(answer.usageMetadata, this.#said)
    this.report = report
    this.usage = answer.usageMetadata
    const { isThoughtAlone: _, prompt, output, ...counts } = report
    if (prompt !== null && output !== null)
      emit({ type: 'usage', usage: { prompt, output, ...counts, ...this.#usage.audio } })
  }

  #part(part: LooseObject, choice: number, candidate: Candidate, emit: Emit): void {
    if (toText(toFields(part.executableCode).language) !== '') this.#usage.ran(1)
    const text = toText(part.text)
    if (text !== '') this.#say(part.thought === true ? 'reasoning' : 'text', text, choice, candidate, emit)
    if (part.inlineData != null) this.#inlineData(part, choice, emit)
    const code = printCode(part)
    if (code !== '') this.#say('text', code, choice, candidate, emit)
    const call = toFields(part.functionCall)
    const name = toText(call.name)
    if (name === '') return
    this.#said = 'text'
    const index = candidate.calls++
    const signature = toText(part.thoughtSignature) || null
    // The vendor gives most calls no id, and some of them one that is not unique.
    emit({ type: 'tool_call', choice, index, id: `call_${ulid()}`, name, signature })
    emit({ type: 'tool_arguments', choice, index, json: JSON.stringify(toFields(call.args)) })
  }

  #say(type: 'text' | 'reasoning', text: string, choice: number, candidate: Candidate, emit: Emit): void {
    if (type === 'text' || this.#said === 'nothing') this.#said = type === 'text' ? 'text' : 'thought'
    if (type === 'text') candidate.text += text
    emit({ type, choice, text })
  }

  /** Pictures that the model draws while it thinks are drafts: they are no part of the answer. */
  #inlineData({ inlineData, thought, thoughtSignature }: LooseObject, choice: number, emit: Emit): void {
    const { mimeType, data } = toFields(inlineData)
    const [mediaType, base64] = [toText(mimeType), toText(data)]
    if (thought === true || base64 === '') return
    this.#said = 'text'
    if (mediaType.startsWith('audio/')) emit({ type: 'audio', choice, base64 })
    else if (mediaType.startsWith('image/'))
      emit({ type: 'image', choice, mediaType, base64, signature: toText(thoughtSignature) || null })
  }

  #err(payload: string, emit: Emit): void {
    this.#hasErred = true
    emit({ type: 'error', payload })
  }
}
