/**
 * Reads usage of chat-completions as providers report it: the protocol's fields, and those that only some providers
 * have. A field with one meaning is read from every provider; a field that only one of them has is read by
 * its `usage` in `src/channels/providers`. See docs/pricing.md, "Usage".
 */
import { findProvider } from '../../channels/providers/presets.ts'
import type { UsageRules } from '../../channels/providers/provider.ts'
import { type ExtraUsage, keepExtra, MAX_REPORTED_TOKENS } from '../../core/pricing/usage.ts'
import type { UsageReport } from '../answer/reported-usage.ts'
import { isObject, type LooseObject } from '../loose.ts'
import { readCacheWrites } from './cache-writes.ts'
import { findFault, partAbove } from './faults.ts'
import { readToolCalls, type ToolCalls } from './server-tools.ts'

/** A count as upstreams write it: a number, null, or absent. */
type Count = number | null | undefined

const isCount = (value: unknown): value is Count => value == null || Number.isFinite(value)

/** A count of the current report is one that no call can have. */
let hasFault = false

function count(value: unknown): number {
  if (typeof value !== 'number') return 0
  if (value >= 0 && value <= MAX_REPORTED_TOKENS) return Math.floor(value)
  hasFault = true
  return value > 0 ? MAX_REPORTED_TOKENS : 0
}

const isCredible = (value: unknown): value is Count =>
  value == null || (typeof value === 'number' && value >= 0 && value <= MAX_REPORTED_TOKENS)

const NO_DETAILS: LooseObject = {}
/** Returns the fields of a detail; null for a value that is no part of a report. */
const readDetails = (value: unknown): LooseObject | null =>
  value == null ? NO_DETAILS : isObject(value) ? value : null

const USUAL: UsageRules = {}

/** Returns the cached part of the prompt, by any of its names. */
const readCached = (usage: LooseObject, details: LooseObject): number =>
  Math.max(
    count(details.cached_tokens),
    count(usage.prompt_cache_hit_tokens),
    count(usage.cached_tokens),
    count(usage.cache_read_input_tokens),
    count(usage.num_cached_tokens),
  )

const readWritten = (usage: LooseObject, details: LooseObject): number =>
  Math.max(
    count(details.cache_write_tokens),
    count(details.cache_creation_input_tokens),
    count(usage.cache_creation_input_tokens),
  )

/** Returns the reasoning, also if its provider counts it only in the total. */
function readReasoning(usage: LooseObject, ofOutput: LooseObject, rules: UsageRules): number {
  const reported = count(ofOutput.reasoning_tokens)
  if (reported > 0 || rules.reasonsInTotal !== true || usage.prompt_tokens == null) return reported
  return Math.max(0, count(usage.total_tokens) - count(usage.prompt_tokens) - count(usage.completion_tokens))
}

/** Returns whether the total shows that reasoning is no part of the output. */
function reasonsBeside(usage: LooseObject, reasoning: number, rules: UsageRules): boolean {
  if (reasoning === 0) return false
  const { prompt_tokens, completion_tokens, total_tokens: total } = usage
  if (typeof total !== 'number') return rules.reasonsBeside === true
  return total === count(prompt_tokens) + count(completion_tokens) + reasoning
}

function toolCalls(usage: LooseObject, ofTools: LooseObject, rules: UsageRules): ToolCalls {
  const own = readToolCalls(ofTools)
  return own.calls > 0 || rules.toolCalls === undefined ? own : readToolCalls(rules.toolCalls(usage))
}

function readExtra(
  ofPrompt: LooseObject,
  ofOutput: LooseObject,
  usage: LooseObject,
  tools: ExtraUsage['tools'],
) {
  const { cache_creation: written = usage.cache_creation } = ofPrompt
  return keepExtra({
    cacheWrite1h: isObject(written) ? (readCacheWrites(written, count).long ?? 0) : 0,
    inputAudio: count(ofPrompt.audio_tokens),
    inputImage: count(ofPrompt.image_tokens),
    outputAudio: count(ofOutput.audio_tokens),
    outputImage: count(ofOutput.image_tokens),
    tools,
  })
}

/**
 * Returns the usage that the upstream reported, or null without any: a wrong value in place of a count invalidates the
 * whole report. `prompt_tokens` includes the cached part.
 */
export function readUsage(value: unknown, provider?: string): UsageReport | null {
  if (!isObject(value)) return null
  const { prompt_tokens, completion_tokens } = value
  if (!isCredible(prompt_tokens) || !isCredible(completion_tokens)) return null
  if (prompt_tokens == null && completion_tokens == null) return null
  const ofPrompt = readDetails(value.prompt_tokens_details)
  const ofOutput = readDetails(value.completion_tokens_details)
  /** Tools that the upstream ran itself, where it counts them. */
  const ofTools = readDetails(value.server_tool_use)
  if (ofPrompt === null || ofOutput === null || ofTools === null) return null
  if (!isCount(ofPrompt.cached_tokens) || !isCount(ofPrompt.cache_write_tokens)) return null
  if (!isCount(ofOutput.reasoning_tokens) || !isCount(ofTools.web_search_requests)) return null
  hasFault = false
  const rules = findProvider(provider)?.usage ?? USUAL
  const prompt = count(prompt_tokens)
  const said = count(completion_tokens)
  const hits = readCached(value, ofPrompt)
  const writes = readWritten(value, ofPrompt)
  const thought = readReasoning(value, ofOutput, rules)
  const output = reasonsBeside(value, thought, rules) ? said + thought : said
  const isThinking = rules.reasonsInTotal === true && thought > 0
  const cached = Math.min(prompt, hits)
  const cacheWrite = Math.min(prompt - cached, writes)
  const { calls, tools } = toolCalls(value, ofTools, rules)
  const extra = readExtra(ofPrompt, ofOutput, value, tools)
  const contradiction = hasFault
    ? findFault(value)
    : (partAbove('cached', hits + writes, 'prompt', prompt) ??
      partAbove('reasoning', thought, 'output', output))
  const report = {
    prompt: prompt_tokens == null ? null : prompt,
    cached,
    cacheWrite,
    output: completion_tokens == null && !isThinking ? null : output,
    reasoning: Math.min(output, thought),
    serverToolCalls: calls,
  }
  return extra.extra === undefined && contradiction === undefined
    ? report
    : { ...report, ...extra, ...(contradiction !== undefined && { contradiction }) }
}
