/**
 * Usage as the generate-content protocol reports it: on many chunks of a stream, each figure cumulative. A later
 * figure replaces an earlier one and is never added to it; what is absent leaves the earlier one standing.
 * Source: translation, "Response, from `generate-content`"; failures, rows 7, 8 and 12.
 */
import { MAX_REPORTED_TOKENS, type TokenUsage } from '../core/pricing.ts'
import { fieldsOf } from './loose.ts'

/** Null for what is absent or cannot be a count. */
function count(value: unknown): number | null {
  if (typeof value !== 'number' || !(value >= 0) || value > MAX_REPORTED_TOKENS) return null
  return Math.floor(value)
}

/** Tokens of speech among those of `details`; null where it does not tell. */
function audioTokens(details: unknown): number | null {
  if (!Array.isArray(details)) return null
  const audio = details.find((detail) => fieldsOf(detail).modality === 'AUDIO')
  return count(fieldsOf(audio).tokenCount)
}

export class GenerateContentUsage {
  #prompt: number | null = null
  /** Of tools that the upstream ran itself: what they brought is read as prompt. */
  #toolPrompt = 0
  #cached = 0
  #candidates: number | null = null
  #thoughts: number | null = null
  #total: number | null = null
  #searches = 0
  #runs = 0
  #promptAudio = 0
  #outputAudio = 0

  /** Takes in `usageMetadata`. Returns whether it told the output. */
  report(value: unknown): boolean {
    const usage = fieldsOf(value)
    const candidates = count(usage.candidatesTokenCount)
    const thoughts = count(usage.thoughtsTokenCount)
    const total = count(usage.totalTokenCount)
    this.#prompt = count(usage.promptTokenCount) ?? this.#prompt
    this.#toolPrompt = count(usage.toolUsePromptTokenCount) ?? this.#toolPrompt
    this.#cached = count(usage.cachedContentTokenCount) ?? this.#cached
    this.#candidates = candidates ?? this.#candidates
    this.#thoughts = thoughts ?? this.#thoughts
    this.#total = total ?? this.#total
    this.#promptAudio = audioTokens(usage.promptTokensDetails) ?? this.#promptAudio
    this.#outputAudio = audioTokens(usage.candidatesTokensDetails) ?? this.#outputAudio
    return (candidates ?? thoughts ?? total) !== null
  }

  /** Tokens of speech, as parts of the prompt and of the output. */
  get audio(): { readonly promptAudio: number; readonly outputAudio: number } {
    return { promptAudio: this.#promptAudio, outputAudio: this.#outputAudio }
  }

  /** Adds pieces of code that the upstream ran. A chunk names those alone that no other names. */
  ran(pieces: number): void {
    this.#runs += pieces
  }

  /** Searches that the upstream made and pages that it fetched, as one chunk reports them. Chunks repeat them. */
  searched(queries: number): void {
    this.#searches = Math.max(this.#searches, queries)
  }

  /**
   * Null while the prompt is not known. Before the output is, it stands at 0, for what was said since to be estimated
   * on top. An answer that ended and said something (`isOutputDue`) without telling its output has reported no usage.
   */
  tokens(isOutputDue: boolean): TokenUsage | null {
    if (this.#prompt === null) return null
    const prompt = this.#prompt + this.#toolPrompt
    const output = this.#output(prompt)
    if (output === null && isOutputDue) return null
    const reasoning = this.#thoughts ?? 0
    return {
      prompt,
      cached: Math.min(prompt, this.#cached),
      cacheWrite: 0,
      output: output ?? 0,
      reasoning,
      serverToolCalls: this.#searches + this.#runs,
    }
  }

  /** The vendor leaves out what is zero: of an output that is not told apart, the total tells. */
  #output(prompt: number): number | null {
    if (this.#candidates !== null || this.#thoughts !== null)
      return (this.#candidates ?? 0) + (this.#thoughts ?? 0)
    return this.#total === null ? null : Math.max(0, this.#total - prompt)
  }
}
