/**
 * The most that one call can use. An upstream's counts beyond it are a fault of the upstream's: they are charged at the
 * bound, and the call is marked.
 */
import type { ModelEntry } from '../../../schemas/config/catalog.ts'
import { type EstimatedCall, maxServerToolCalls } from './estimate.ts'
import type { TokenUsage } from './pricing.ts'

/** Tokens that a model reads at most where its entry has no `context_window`: no known model reads more. */
export const MAX_CONTEXT_TOKENS = 10_000_000

export interface BoundedUsage {
  readonly usage: TokenUsage
  /** The counts that were beyond their bounds, such as `output 1000000000 > 4096`; empty on a usual call. */
  readonly beyond: readonly string[]
}

const WITHIN_BOUNDS: readonly string[] = []

/** The parts of a request that bound its usage. */
export type BoundedCall = Pick<EstimatedCall, 'outputLimit' | 'choices' | 'builtInTools' | 'toolCallLimit'>

/**
 * Bounds counts of tokens. The prompt is read once, and once more behind each tool that the upstream ran itself. The
 * output of each choice keeps to the model's `max_output_tokens`: upstreams differ in what of it they count towards the
 * limit of the request.
 */
export function boundedUsage(usage: TokenUsage, model: ModelEntry, call: BoundedCall): BoundedUsage {
  const window = model.context_window ?? MAX_CONTEXT_TOKENS
  // Some models search unprompted: the upstream's charge for that is charged.
  const serverToolCalls =
    call.builtInTools.length === 0 ? model.estimate.server_tool_calls : maxServerToolCalls(model, call)
  const most = {
    serverToolCalls,
    prompt: window * (1 + Math.min(usage.serverToolCalls, serverToolCalls)),
    output: Math.max(call.outputLimit ?? 0, model.max_output_tokens ?? window) * call.choices,
  }
  const isWithin =
    usage.prompt <= most.prompt &&
    usage.output <= most.output &&
    usage.serverToolCalls <= most.serverToolCalls &&
    usage.cached + usage.cacheWrite <= usage.prompt &&
    usage.reasoning <= usage.output
  if (isWithin) return { usage, beyond: WITHIN_BOUNDS }
  const beyond: string[] = []
  const within = (name: keyof TokenUsage, bound: number): number => {
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
