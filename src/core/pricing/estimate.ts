/**
 * The pre-charge estimate and the substitute for usage that an upstream did not report.
 * See docs/api-rules.md, "Pre-charge".
 */
import { isAscii } from 'node:buffer'
import {
  ESTIMATE_OUTPUT_CAP_TOKENS,
  type ModelEntry,
  type ServerTool,
} from '../../../schemas/config/catalog.ts'
import type { Credits } from '../../../schemas/money.ts'
import { factorOf, priceAt, type TokenPrice, tokenCharge } from './pricing.ts'
import { estimateInputTokens, estimatePromptTokens } from './text-tokens.ts'
import { extraOf, NO_USAGE, type TokenUsage } from './usage.ts'

/** Counts the bytes of UTF-8 characters behind the first of each: none in ASCII, two in each Chinese character. */
export function laterBytesIn(text: Buffer): number {
  if (isAscii(text)) return 0
  let count = 0
  for (let i = 0; i < text.length; i++) if ((text[i]! & 0xc0) === 0x80) count++
  return count
}

/** Returns the largest output: the explicit limit in full, else min(the model's default, 32768). */
function outputAllowance(model: ModelEntry, explicitLimit: number | null): number {
  if (explicitLimit !== null) return explicitLimit
  const usual = model.default_max_tokens ?? model.max_output_tokens ?? ESTIMATE_OUTPUT_CAP_TOKENS
  return Math.min(usual, ESTIMATE_OUTPUT_CAP_TOKENS)
}

/** Numbers of parts of a request, by kind. */
type PartCounts = Readonly<Record<'image' | 'file' | 'audio', number>>

/** The parts of a request that decide its worst case. */
export interface EstimatedCall {
  readonly promptBytes: number
  /** Tokens; null when omitted. */
  readonly outputLimit: number | null
  /** The request's `n`. */
  readonly choices: number
  readonly builtInTools: readonly ServerTool[]
  /** The most calls of these tools that the client allows; null where it leaves that open. */
  readonly toolCallLimit: number | null
  /** Parts given by URL. */
  readonly links: PartCounts
  /** The requested service tier, where it can change the price. */
  readonly serviceTier?: string
  /** The upstream may summarise the prompt before it answers. */
  readonly compacts?: boolean
}

/** Returns the assumed tokens of parts given by URL: only the upstream learns their number. */
export function linkedTokens(
  { estimate }: Pick<ModelEntry, 'estimate'>,
  { image, file, audio }: EstimatedCall['links'],
): number {
  return image * estimate.image_tokens + file * estimate.file_tokens + audio * estimate.audio_tokens
}

/** The parts of a request that decide what its prompt is taken for where no upstream reported it. */
export interface UnreportedPrompt extends Pick<EstimatedCall, 'promptBytes'> {
  /** Parts given by URL, and those in the request as base64 with their bytes. */
  readonly links: PartCounts & { readonly inline?: (PartCounts & { readonly bytes: number }) | undefined }
}

/**
 * Returns the tokens to charge for a prompt that no upstream reported. The bytes of a picture say nothing of its tokens.
 * @param laterBytes of the request, see `laterBytesIn`
 */
export function unreportedPrompt(
  model: Pick<ModelEntry, 'estimate'>,
  { promptBytes, links }: UnreportedPrompt,
  laterBytes: number,
): number {
  const { inline } = links
  const byBytes = estimatePromptTokens(promptBytes, laterBytes)
  const text =
    inline === undefined
      ? byBytes
      : Math.min(
          byBytes,
          estimatePromptTokens(promptBytes - inline.bytes, laterBytes) + linkedTokens(model, inline),
        )
  return text + linkedTokens(model, links)
}

/**
 * Returns the most calls of tools that the upstream runs itself: both the estimate and the largest charge. The
 * client's own limit lowers it.
 */
export const maxServerToolCalls = (
  { estimate }: Pick<ModelEntry, 'estimate'>,
  { builtInTools, toolCallLimit }: Pick<EstimatedCall, 'builtInTools' | 'toolCallLimit'>,
): number => Math.min(builtInTools.length * estimate.server_tool_calls, toolCallLimit ?? Infinity)

/** Returns the worst case that admission compares with the wallet. A summary reads and writes as much as the answer. */
export function worstCase(model: ModelEntry, call: EstimatedCall): TokenUsage {
  const { promptBytes, outputLimit, choices, links, compacts = false } = call
  const prompt = estimateInputTokens(promptBytes) + linkedTokens(model, links)
  const output = outputAllowance(model, outputLimit)
  const counts = {
    ...NO_USAGE,
    prompt,
    output: output * choices,
    serverToolCalls: maxServerToolCalls(model, call),
  }
  if (!compacts) return counts
  const compaction = { count: 1, largestPrompt: prompt }
  return { ...counts, prompt: 2 * prompt, output: counts.output + output, ...extraOf({ compaction }) }
}

/** Returns the charge of the worst case, by prices at the instant `now` (epoch milliseconds). */
export function estimateCharge(
  price: TokenPrice,
  model: ModelEntry,
  call: EstimatedCall,
  now: number,
): Credits {
  const current = priceAt(price, now)
  const usage = worstCase(model, call)
  const tier = call.serviceTier
  if (current.isPlain && (tier === undefined || factorOf(current, tier) === null))
    return tokenCharge(current, usage, now)
  return dearest(
    dearestKinds(current, model, call, usage).flatMap((kind) => [
      tokenCharge(current, kind, now),
      // The upstream may serve the call in its usual tier all the same.
      ...(tier === undefined ? [] : [tokenCharge(current, kind, now, tier)]),
    ]),
  )
}

function dearest(charges: readonly Credits[]): Credits {
  let most = 0n
  for (const charge of charges) if (charge > most) most = charge
  return most
}

/** Returns the usage once for each kind that its output may have. */
function dearestKinds(
  price: TokenPrice,
  model: ModelEntry,
  call: EstimatedCall,
  usage: TokenUsage,
): readonly TokenUsage[] {
  const { output, serverToolCalls, extra } = usage
  const { links, builtInTools } = call
  const { estimate } = model
  const input = {
    ...extra,
    inputImage: links.image * estimate.image_tokens,
    inputAudio: links.audio * estimate.audio_tokens,
    tools: dearestTools(price, serverToolCalls, builtInTools, estimate.server_tool_calls),
  }
  return [
    { ...usage, ...extraOf(input) },
    { ...usage, reasoning: output, ...extraOf(input) },
    { ...usage, ...extraOf({ ...input, outputAudio: output }) },
    { ...usage, ...extraOf({ ...input, outputImage: output }) },
  ]
}

/** Returns the calls by tool, those of the dearest tools first. */
function dearestTools(
  price: TokenPrice,
  calls: number,
  tools: readonly ServerTool[],
  callsEach: number,
): Partial<Record<ServerTool, number>> {
  const { serverTools, serverToolCall } = price.tiers[0]!.full.terms
  const rateOf = (tool: ServerTool): bigint => serverTools[tool] ?? serverToolCall
  const byPrice = [...tools].sort((a, b) => Number(rateOf(b) - rateOf(a)))
  let left = calls
  const taken: Partial<Record<ServerTool, number>> = {}
  for (const tool of byPrice) {
    const count = Math.min(left, callsEach)
    if (count > 0) taken[tool] = count
    left -= count
  }
  return taken
}
