/**
 * The most that one call can use, and what is charged of a report that cannot be believed: counts beyond the most, or
 * that contradict each other, are a fault of the upstream's, and the call is marked.
 */
import type { ModelEntry, ServerTool } from '../../../schemas/config/catalog.ts'
import { ONE_RATE } from '../../../schemas/money.ts'
import { assumeToolCalls, type EstimatedCall } from './estimate.ts'
import { findFactor, priceAt, type TokenPrice } from './pricing.ts'
import type { TokenUsage } from './usage.ts'

/** Tokens that a model reads at most where its entry has no `context_window`: no known model reads more. */
export const MAX_CONTEXT_TOKENS = 10_000_000

interface BoundedUsage {
  readonly usage: TokenUsage
  /** The counts that were beyond their bounds, such as `output 1000000000 > 4096`; empty on a usual call. */
  readonly beyond: readonly string[]
}

const WITHIN_BOUNDS: readonly string[] = []

/** The parts of a model that bound the usage of a call. */
export type BoundingModel = Pick<ModelEntry, 'context_window' | 'max_output_tokens' | 'estimate'>

/** The parts of a request that bound its usage. */
export type BoundedCall = Pick<
  EstimatedCall,
  'outputLimit' | 'choices' | 'builtInTools' | 'toolCallLimit' | 'prompts'
>

/**
 * Returns the calls of the upstream's tools that the estimate's formula has for the call. Some models search unprompted.
 */
export const countEstimatedToolCalls = (model: BoundingModel, call: BoundedCall): number =>
  call.builtInTools.length === 0 ? model.estimate.server_tool_calls : assumeToolCalls(model, call)

/** Calls of a tool that a report is believed to count for one call where the client set no limit. */
const BELIEVED_TOOL_CALLS = 100

/** Returns the most calls of the upstream's tools that are charged: the estimate's number is a guess. */
const mostToolCalls = ({ builtInTools, toolCallLimit }: BoundedCall): number =>
  toolCallLimit !== null && builtInTools.length > 0
    ? toolCallLimit
    : BELIEVED_TOOL_CALLS * Math.max(1, builtInTools.length)

/** Tools whose calls each report has. Those of the others are in no report of messages, though they ran. */
const COUNTED_TOOLS: ReadonlySet<ServerTool> = new Set(['web_search', 'url_context'])

/** Returns how often the prompt may have been read. */
function mostReads(usage: TokenUsage, { builtInTools }: BoundedCall, toolCalls: number): number {
  const areCounted = builtInTools.every((tool) => COUNTED_TOOLS.has(tool))
  return 1 + (areCounted ? Math.min(usage.serverToolCalls, toolCalls) : toolCalls)
}

/**
 * Bounds counts of tokens. Each prompt is read once, and once more behind each tool that the upstream ran itself; before
 * each of these it may be read to be summarised. The output of each choice and summary keeps to the model's
 * `max_output_tokens`: upstreams differ in what of it they count towards the limit of the request.
 */
export function boundUsage(usage: TokenUsage, model: BoundingModel, call: BoundedCall): BoundedUsage {
  const window = model.context_window ?? MAX_CONTEXT_TOKENS
  const serverToolCalls = mostToolCalls(call)
  const reads = mostReads(usage, call, serverToolCalls)
  const compactions = Math.min(usage.extra?.compaction?.count ?? 0, reads)
  const most = {
    serverToolCalls,
    prompt: window * (reads + compactions) * (call.prompts ?? 1),
    output: Math.max(call.outputLimit ?? 0, model.max_output_tokens ?? window) * (call.choices + compactions),
  }
  const isWithin =
    usage.prompt <= most.prompt &&
    usage.output <= most.output &&
    usage.serverToolCalls <= most.serverToolCalls &&
    usage.cached + usage.cacheWrite <= usage.prompt &&
    usage.reasoning <= usage.output
  // Parts of these counts are charged up to them, whatever they say.
  if (isWithin) return { usage, beyond: WITHIN_BOUNDS }
  const beyond: string[] = []
  const within = (name: Exclude<keyof TokenUsage, 'extra' | 'byModel'>, bound: number): number => {
    if (usage[name] > bound) beyond.push(`${name} ${usage[name]} > ${bound}`)
    return Math.min(usage[name], bound)
  }
  const prompt = within('prompt', most.prompt)
  const output = within('output', most.output)
  const cached = within('cached', prompt)
  return {
    beyond,
    usage: {
      prompt,
      output,
      cached,
      cacheWrite: within('cacheWrite', prompt - cached),
      reasoning: within('reasoning', output),
      serverToolCalls: within('serverToolCalls', most.serverToolCalls),
    },
  }
}

/** The delivered part of a call, by the gateway's own counts. */
interface Delivered {
  /** Tokens, by the formula of the estimate. */
  readonly prompt: number
  readonly output: number
  readonly serverToolCalls: number
}

/**
 * Returns what a report that contradicts itself may bill: each count up to that of the estimate's formula for what was
 * delivered, and none at a price above the usual ones.
 */
export function limitUsage(usage: TokenUsage, delivered: Delivered): TokenUsage {
  const prompt = Math.min(usage.prompt, delivered.prompt)
  const output = Math.min(usage.output, delivered.output)
  return {
    prompt,
    cached: Math.min(usage.cached, prompt),
    cacheWrite: 0,
    output,
    // As output: its separate price may be the dearer one.
    reasoning: 0,
    serverToolCalls: Math.min(usage.serverToolCalls, delivered.serverToolCalls),
  }
}

/**
 * Returns the service tier that a report which contradicts itself may bill at the instant `now` (epoch milliseconds):
 * the reported one, unless it is dearer than the estimate counted for the requested one.
 */
export function chooseTrustedTier(
  price: TokenPrice,
  reported: string,
  requested: string,
  now: number,
): string {
  const current = priceAt(price, now)
  const factor = (tier: string) => findFactor(current, tier) ?? ONE_RATE
  const isDearer = factor(reported) > ONE_RATE && factor(reported) > factor(requested)
  if (!isDearer) return reported
  return factor(requested) > ONE_RATE ? requested : ''
}
