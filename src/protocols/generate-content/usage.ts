/**
 * Usage as the generate-content protocol reports it: on many chunks of a stream, each figure cumulative. A later
 * figure replaces an earlier one and is never added to it; an absent one leaves the earlier one unchanged. See
 * docs/translation.md, "The answer"; docs/failure-modes.md, "Money", rows 7, 8 and 12.
 */
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import { keepExtra, MAX_REPORTED_TOKENS } from '../../core/pricing/usage.ts'
import type { UsageReport } from '../answer/reported-usage.ts'
import { generation } from '../generation.ts'
import { type LooseObject, toFields, toList, toText } from '../loose.ts'
import { findFault, partAbove } from '../usage/faults.ts'
import { readFamily } from './family.ts'

/** Returns the count; null for an absent or invalid one. */
function count(value: unknown): number | null {
  if (typeof value !== 'number') return null
  if (value >= 0 && value <= MAX_REPORTED_TOKENS) return Math.floor(value)
  hasFault = true
  return null
}
/** A count of the current report is one that no call can have. */
let hasFault = false

const DETAILS = {
  prompt: 'promptTokensDetails',
  cache: 'cacheTokensDetails',
  candidates: 'candidatesTokensDetails',
} as const
type Detailed = keyof typeof DETAILS
type Modality = 'AUDIO' | 'IMAGE'

/** Returns the tokens of a modality; null where they are not reported. */
function modalityTokens(usage: LooseObject, of: Detailed, modality: Modality): number | null {
  const found = toList(usage[DETAILS[of]]).find((detail) => toFields(detail).modality === modality)
  return count(toFields(found).tokenCount)
}

/** The tokens of one modality so far. */
class ModalityCounts {
  readonly #modality: Modality
  prompt = 0
  #cached = 0
  output = 0

  constructor(modality: Modality) {
    this.#modality = modality
  }

  read(usage: LooseObject): void {
    this.prompt = modalityTokens(usage, 'prompt', this.#modality) ?? this.prompt
    this.#cached = modalityTokens(usage, 'cache', this.#modality) ?? this.#cached
    this.output = modalityTokens(usage, 'candidates', this.#modality) ?? this.output
  }

  /** Without what came from a cache. */
  get fresh(): number {
    return Math.max(0, this.prompt - this.#cached)
  }
}

const isDetailed = (usage: LooseObject): boolean =>
  usage.promptTokensDetails !== undefined ||
  usage.cacheTokensDetails !== undefined ||
  usage.candidatesTokensDetails !== undefined

const ON_DEMAND = /^on_demand_?/

/** Returns the service tier; empty for the usual one. One API has it as a tier, the other as a type of traffic. */
const readServiceTier = ({ serviceTier, trafficType }: LooseObject): string =>
  toText(serviceTier).toLowerCase() || toText(trafficType).toLowerCase().replace(ON_DEMAND, '')

/** Numbers of what the upstream searched and fetched for its answer, as one chunk has them. */
interface Grounding {
  readonly queries: number
  readonly pages: number
  readonly hasMaps: boolean
}

const FIRST_BILLED_BY_QUERY = generation(3)

/** Returns whether each query is billed; earlier models are billed for one search, however many queries it took. */
const isBilledByQuery = (model: string): boolean =>
  (readFamily(model).generation ?? FIRST_BILLED_BY_QUERY) >= FIRST_BILLED_BY_QUERY

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
  #pages = 0
  #maps = 0
  #runs = 0
  readonly #audio = new ModalityCounts('AUDIO')
  readonly #image = new ModalityCounts('IMAGE')
  /** The service tier in which the upstream served the call; empty without one. */
  serviceTier = ''

  /** Reads `usageMetadata`. */
  report(value: unknown, said: Said): UsageReport {
    const usage = toFields(value)
    hasFault = false
    this.#prompt = count(usage.promptTokenCount) ?? this.#prompt
    this.#toolPrompt = count(usage.toolUsePromptTokenCount) ?? this.#toolPrompt
    this.#cached = count(usage.cachedContentTokenCount) ?? this.#cached
    if (isDetailed(usage)) {
      this.#audio.read(usage)
      this.#image.read(usage)
    }
    if (usage.serviceTier !== undefined || usage.trafficType !== undefined)
      this.serviceTier = readServiceTier(usage) || this.serviceTier
    const prompt = this.#prompt === null ? null : this.#prompt + this.#toolPrompt
    const report = {
      prompt,
      cached: Math.min(prompt ?? 0, this.#cached),
      cacheWrite: 0,
      ...this.#output(usage, prompt, said),
      reasoning: this.#thoughts,
      serverToolCalls: this.#calls,
    }
    const contradiction = hasFault
      ? findFault(value)
      : prompt === null
        ? undefined
        : partAbove('cached', this.#cached, 'prompt', prompt)
    const extra = this.#extra()
    return extra.extra === undefined && !contradiction
      ? report
      : { ...report, ...extra, ...(contradiction && { contradiction }) }
  }

  #extra() {
    return keepExtra({
      inputAudio: this.#audio.fresh,
      inputImage: this.#image.fresh,
      outputAudio: this.#audio.output,
      outputImage: this.#image.output,
      ...(this.#calls > 0 && { tools: this.#tools() }),
    })
  }

  get #calls(): number {
    return this.#searches + this.#pages + this.#maps + this.#runs
  }

  #tools(): Partial<Record<ServerTool, number>> {
    return {
      ...(this.#searches > 0 && { web_search: this.#searches }),
      ...(this.#pages > 0 && { url_context: this.#pages }),
      ...(this.#maps > 0 && { maps: this.#maps }),
      ...(this.#runs > 0 && { code_interpreter: this.#runs }),
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
    return { promptAudio: this.#audio.prompt, outputAudio: this.#audio.output }
  }

  /** Adds pieces of code that the upstream ran. A chunk names only those that no other names. */
  ran(pieces: number): void {
    this.#runs += pieces
  }

  /**
   * Notes what the upstream searched and fetched, as one chunk reports it. Chunks repeat it.
   * @param model as the upstream names it; empty where it does not
   */
  grounded({ queries, pages, hasMaps }: Grounding, model: string): void {
    if (queries > this.#searches) this.#searches = isBilledByQuery(model) ? queries : 1
    this.#pages = Math.max(this.#pages, pages)
    if (hasMaps) this.#maps = 1
  }
}
