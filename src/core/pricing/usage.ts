/** Counts of one call, as they are billed. */
import type { ServerTool } from '../../../schemas/config/catalog.ts'

/** Tokens of one call. `prompt` counts every prompt token; `cached` and `cacheWrite` are parts of it. */
export interface TokenUsage {
  readonly prompt: number
  readonly cached: number
  readonly cacheWrite: number
  readonly output: number
  /** A part of `output`. */
  readonly reasoning: number
  readonly serverToolCalls: number
  /** Absent on most calls. */
  readonly extra?: ExtraUsage
  /** The same counts by model; absent where only one has run. Tools are in none of them. */
  readonly byModel?: readonly ModelUsage[]
}

/** What one of several models has used. */
export interface ModelUsage {
  /** The upstream's name; empty for the model of the request. */
  readonly model: string
  /** How often it ran. */
  readonly runs: number
  readonly usage: TokenUsage
}

/** Counts that few calls have: parts of the other counts, which can have separate prices. */
export interface ExtraUsage {
  /** A part of `cacheWrite`: kept for an hour. */
  readonly cacheWrite1h: number
  /** Parts of the prompt, without what came from a cache. */
  readonly inputAudio: number
  readonly inputImage: number
  /** Parts of `output`. */
  readonly outputAudio: number
  readonly outputImage: number
  /** A part of `serverToolCalls`, by tool. */
  readonly tools: Readonly<Partial<Record<ServerTool, number>>>
  /** Absent unless the upstream read several prompts: the tokens of all are parts of the other counts. */
  readonly compaction?: Compaction
}

/** Prompts that the upstream read apart. */
interface Compaction {
  /** Summaries that it made on the way. */
  readonly count: number
  /** The largest prompt that was read at once: that of the answer, or of a summary. */
  readonly largestPrompt: number
}

/** No call has more: a count above it is a fault of the upstream's, and no one is billed by a fault. */
export const MAX_REPORTED_TOKENS = 1_000_000_000

export const NO_USAGE: TokenUsage = {
  prompt: 0,
  cached: 0,
  cacheWrite: 0,
  output: 0,
  reasoning: 0,
  serverToolCalls: 0,
}

export const NO_EXTRA: ExtraUsage = {
  cacheWrite1h: 0,
  inputAudio: 0,
  inputImage: 0,
  outputAudio: 0,
  outputImage: 0,
  tools: {},
}

const NO_TOOLS: ExtraUsage['tools'] = {}
const NOTHING: { readonly extra?: ExtraUsage } = {}

/** Returns the counts as the field of a usage; nothing where all of them are 0. */
export function keepExtra(counts: Partial<ExtraUsage>): { readonly extra?: ExtraUsage } {
  // Without an object on the way: most reports have none of them.
  const { cacheWrite1h = 0, inputAudio = 0, inputImage = 0, outputAudio = 0, outputImage = 0 } = counts
  const { tools = NO_TOOLS, compaction } = counts
  const isAny = cacheWrite1h + inputAudio + inputImage + outputAudio + outputImage > 0 || !isEmpty(tools)
  if (!isAny && compaction === undefined) return NOTHING
  const extra = { cacheWrite1h, inputAudio, inputImage, outputAudio, outputImage, tools }
  return { extra: compaction === undefined ? extra : { ...extra, compaction } }
}

/** Returns the tokens by which a price for long prompts is chosen. */
export const promptReadAtOnce = ({ prompt, extra }: Pick<TokenUsage, 'prompt' | 'extra'>): number =>
  extra?.compaction?.largestPrompt ?? prompt

function isEmpty(record: object): boolean {
  for (const _ in record) return false
  return true
}

/** Returns the sum of what several models used. */
export const sumUsage = (parts: readonly TokenUsage[]): TokenUsage =>
  parts.reduce(
    (sum, { extra, ...part }): TokenUsage => ({
      prompt: sum.prompt + part.prompt,
      cached: sum.cached + part.cached,
      cacheWrite: sum.cacheWrite + part.cacheWrite,
      output: sum.output + part.output,
      reasoning: sum.reasoning + part.reasoning,
      serverToolCalls: sum.serverToolCalls + part.serverToolCalls,
      ...keepExtra({
        cacheWrite1h: (sum.extra?.cacheWrite1h ?? 0) + (extra?.cacheWrite1h ?? 0),
        tools: { ...sum.extra?.tools, ...extra?.tools },
      }),
    }),
    NO_USAGE,
  )

/** Returns the larger of each count: reports are lower bounds. */
export function largerExtra(
  one: ExtraUsage | undefined,
  other: ExtraUsage | undefined,
): ExtraUsage | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const tools: Partial<Record<ServerTool, number>> = { ...one.tools }
  for (const [tool, calls] of Object.entries(other.tools) as [ServerTool, number][])
    tools[tool] = Math.max(tools[tool] ?? 0, calls)
  const compaction = other.compaction ?? one.compaction
  return {
    ...(compaction !== undefined && { compaction }),
    cacheWrite1h: Math.max(one.cacheWrite1h, other.cacheWrite1h),
    inputAudio: Math.max(one.inputAudio, other.inputAudio),
    inputImage: Math.max(one.inputImage, other.inputImage),
    outputAudio: Math.max(one.outputAudio, other.outputAudio),
    outputImage: Math.max(one.outputImage, other.outputImage),
    tools,
  }
}
