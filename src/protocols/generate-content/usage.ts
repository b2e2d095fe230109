/**
 * Usage as the generate-content protocol reports it: on many chunks of a stream, each figure cumulative. A later
 * figure replaces an earlier one and is never added to it; an absent one leaves the earlier one unchanged. See
 * docs/translation.md, "The answer"; docs/failure-modes.md, "Money", rows 7, 8 and 12.
 */
import { MAX_REPORTED_TOKENS } from '../../core/pricing/pricing.ts'
import type { UsageReport } from '../answer/reported-usage.ts'
import { fieldsOf, type LooseObject } from '../loose.ts'

/** Returns the count; null for an absent or invalid one. */
function count(value: unknown): number | null {
  if (typeof value !== 'number' || !(value >= 0) || value > MAX_REPORTED_TOKENS) return null
  return Math.floor(value)
}

/** Tokens of speech among those of `details`; null where it is not reported. */
function audioTokens(details: unknown): number | null {
  if (!Array.isArray(details)) return null
  const audio = details.find((detail) => fieldsOf(detail).modality === 'AUDIO')
  return count(fieldsOf(audio).tokenCount)
}

/** Kind of the output so far. */
export type Said = 'nothing' | 'thought' | 'text'

export class GenerateContentUsage {
  #prompt: number | null = null
  /** Tokens of tools that the upstream ran itself: their results are read as prompt. */
  #toolPrompt = 0
  #cached = 0
  #candidates = 0
  #thoughts = 0
  #searches = 0
  #runs = 0
  #promptAudio = 0
  #outputAudio = 0

  /** Reads `usageMetadata`. */
  report(value: unknown, said: Said): UsageReport {
    const usage = fieldsOf(value)
    this.#prompt = count(usage.promptTokenCount) ?? this.#prompt
    this.#toolPrompt = count(usage.toolUsePromptTokenCount) ?? this.#toolPrompt
    this.#cached = count(usage.cachedContentTokenCount) ?? this.#cached
    this.#promptAudio = audioTokens(usage.promptTokensDetails) ?? this.#promptAudio
    this.#outputAudio = audioTokens(usage.candidatesTokensDetails) ?? this.#outputAudio
    const prompt = this.#prompt === null ? null : this.#prompt + this.#toolPrompt
    return {
      prompt,
      cached: Math.min(prompt ?? 0, this.#cached),
      cacheWrite: 0,
      ...this.#output(usage, prompt, said),
      reasoning: this.#thoughts,
      serverToolCalls: this.#searches + this.#runs,
    }
  }

  /**
   * Returns the output. The vendor omits zeros, but also counts that it does not have yet. Without a count of the
   * text, the total gives it if it is larger than the known parts; any other total means zero only without output.
   */
  #output(
    usage: LooseObject,
    prompt: number | null,
    said: Said,
  ): { output: number | null; isThoughtAlone: boolean } {
    const candidates = count(usage.candidatesTokenCount)
    const thoughts = count(usage.thoughtsTokenCount)
    const total = count(usage.totalTokenCount)
    this.#candidates = candidates ?? this.#candidates
    this.#thoughts = thoughts ?? this.#thoughts
    const reported = this.#candidates + this.#thoughts
    if (candidates !== null) return { output: reported, isThoughtAlone: false }
    const implied = total === null || prompt === null ? 0 : total - prompt
    if (implied > reported) return { output: implied, isThoughtAlone: false }
    if (thoughts !== null) return { output: reported, isThoughtAlone: said === 'text' }
    return { output: total !== null && said === 'nothing' ? reported : null, isThoughtAlone: false }
  }

  /** Tokens of speech, as parts of the prompt and of the output. */
  get audio(): { readonly promptAudio: number; readonly outputAudio: number } {
    return { promptAudio: this.#promptAudio, outputAudio: this.#outputAudio }
  }

  /** Adds pieces of code that the upstream ran. A chunk names those alone that no other names. */
  ran(pieces: number): void {
    this.#runs += pieces
  }

  /** Notes searches that the upstream made and pages that it fetched, as one chunk reports them. Chunks repeat them. */
  searched(queries: number): void {
    this.#searches = Math.max(this.#searches, queries)
  }
}
