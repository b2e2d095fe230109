/**
 * The pre-charge estimate and the substitute for usage that an upstream did not report.
 * See docs/api-rules.md, "Pre-charge".
 */
import { isAscii } from 'node:buffer'
import {
  ESTIMATE_OUTPUT_CAP_TOKENS,
  type Estimate,
  type ModelEntry,
  type Pricing,
  type ServerTool,
} from '../../../schemas/config/catalog.ts'
import type { Credits } from '../../../schemas/money.ts'
import { chargeUnits } from '../media/pricing.ts'
import { priceAt, type TokenPrice, tokenCharge } from './pricing.ts'
import { bytesOfTokens, estimateInputTokens, estimatePromptTokens } from './text-tokens.ts'
import { keepExtra, NO_USAGE, type TokenUsage } from './usage.ts'

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

/** The parts of a request that decide its estimate. */
export interface EstimatedCall {
  /** Prompts that the model reads apart; absent: one. */
  readonly prompts?: number
  /** What the call is charged by; absent: tokens. */
  readonly units?: { readonly count: number }
  /** Only of the conversation, which the interface's formula counts. */
  readonly conversationBytes: number
  /** Of the whole prompt. */
  readonly promptBytes: number
  /** Tokens among these that an upstream keeps from before. */
  readonly keptTokens?: number
  /** Tokens of reasoning that the request asks for. */
  readonly thinkingTokens?: number
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
export function countLinkedTokens(
  { estimate }: Pick<ModelEntry, 'estimate'>,
  { image, file, audio }: EstimatedCall['links'],
): number {
  return image * estimate.image_tokens + file * estimate.file_tokens + audio * estimate.audio_tokens
}

/** The parts of a request that decide what its prompt is taken for where no upstream reported it. */
interface UnreportedPrompt extends Pick<EstimatedCall, 'promptBytes'> {
  /** Parts given by URL, and those in the request as base64 with their bytes. */
  readonly links: PartCounts & { readonly inline?: (PartCounts & { readonly bytes: number }) | undefined }
}

/**
 * Returns the tokens to charge for a prompt that no upstream reported. The bytes of a picture say nothing of its tokens.
 * @param laterBytes of the request, see `laterBytesIn`
 */
export function estimateUnreportedPrompt(
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
          estimatePromptTokens(promptBytes - inline.bytes, laterBytes) + countLinkedTokens(model, inline),
        )
  return text + countLinkedTokens(model, links)
}

/** Returns the calls of tools, run by the upstream, that the worst case assumes. The client's own limit lowers it. */
export const assumeToolCalls = (
  { estimate }: Pick<ModelEntry, 'estimate'>,
  { builtInTools, toolCallLimit }: Pick<EstimatedCall, 'builtInTools' | 'toolCallLimit'>,
): number => Math.min(builtInTools.length * estimate.server_tool_calls, toolCallLimit ?? Infinity)

/**
 * Returns the output of one choice, reasoning counted next to the limit: upstreams differ in whether it is a part of it.
 * None is charged beyond the model's `max_output_tokens`.
 */
function addReasoning(model: ModelEntry, { outputLimit, thinkingTokens = 0 }: EstimatedCall): number {
  const said = outputAllowance(model, outputLimit)
  return Math.max(said, Math.min(said + thinkingTokens, model.max_output_tokens ?? Infinity))
}

/** Returns all that the request could make its upstream bill. A summary reads and writes as much as the answer. */
export function worstCase(model: ModelEntry, call: EstimatedCall): TokenUsage {
  const { promptBytes, choices, links, compacts = false } = call
  const prompt = estimateInputTokens(promptBytes) + countLinkedTokens(model, links)
  const output = addReasoning(model, call)
  const counts = {
    ...NO_USAGE,
    prompt,
    output: output * choices,
    serverToolCalls: assumeToolCalls(model, call),
  }
  if (!compacts) return counts
  const compaction = { count: 1, largestPrompt: prompt }
  return { ...counts, prompt: 2 * prompt, output: counts.output + output, ...keepExtra({ compaction }) }
}

/** Returns what the interface's formula counts: the conversation and the output. */
export const specifiedCase = (
  model: ModelEntry,
  { conversationBytes, outputLimit, choices }: EstimatedCall,
): TokenUsage => ({
  ...NO_USAGE,
  prompt: estimateInputTokens(conversationBytes),
  output: outputAllowance(model, outputLimit) * choices,
})

type StoredCall = Pick<EstimatedCall, 'promptBytes' | 'outputLimit' | 'thinkingTokens' | 'links'>
type StoringModel = Pick<ModelEntry, 'estimate' | 'max_output_tokens'>

/**
 * Returns the most that a call which goes on with this one reads of it: its prompt, and all that it may be answered. A
 * request without a limit goes out with the model's own.
 */
export function countStoredTokens(model: StoringModel, call: StoredCall): number {
  const { promptBytes, outputLimit, thinkingTokens = 0, links } = call
  const limit = outputLimit ?? model.max_output_tokens ?? ESTIMATE_OUTPUT_CAP_TOKENS
  return estimateInputTokens(promptBytes) + countLinkedTokens(model, links) + limit + thinkingTokens
}

/** The formula of an estimate, and the instant (epoch milliseconds) whose prices hold. */
interface EstimateOptions {
  readonly mode: Estimate
  readonly now: number
}

/** Returns the estimate that admission compares with the wallet, in the dearer of the requested and the usual tier. */
export function estimateCharge(
  price: TokenPrice,
  model: ModelEntry,
  call: EstimatedCall,
  { mode, now }: EstimateOptions,
): Credits {
  const current = priceAt(price, now)
  const isWorst = mode === 'worst_case'
  const usage = isWorst ? worstCase(model, call) : specifiedCase(model, call)
  const tier = call.serviceTier
  if (current.isPlain && tier === undefined) return tokenCharge(current, usage, now)
  const kinds = isWorst ? dearestKinds(current, model, call, usage) : [usage]
  return dearest(
    kinds.flatMap((kind) => {
      // The upstream may serve the call in its usual tier all the same.
      const usual = tokenCharge(current, kind, now)
      return tier === undefined ? usual : [usual, tokenCharge(current, kind, now, tier)]
    }),
  )
}

/**
 * Returns the estimate by the price of a model, or by what a channel costs: of tokens, or of the call's units where `price`
 * is null.
 */
export const estimateAt = (
  { price, pricing }: { readonly price: TokenPrice | null; readonly pricing: Pricing },
  model: ModelEntry,
  call: EstimatedCall,
  options: EstimateOptions,
): Credits =>
  price === null
    ? chargeUnits(pricing, call.units?.count ?? 0, options.now).cost
    : estimateCharge(price, model, call, options)

/** Returns the call without one of its parts. */
const WITHOUT = {
  prompt: (call) => withoutBytes(call, call.conversationBytes - bytesOfTokens(call.keptTokens ?? 0)),
  kept: (call) => withoutBytes(call, bytesOfTokens(call.keptTokens ?? 0)),
  tools_and_schemas: (call) => ({ ...call, promptBytes: call.conversationBytes }),
  links: (call) => ({ ...call, links: { image: 0, file: 0, audio: 0 } }),
  output: (call) => ({ ...call, outputLimit: 0 }),
  thinking: (call) => ({ ...call, thinkingTokens: 0 }),
  tool_calls: (call) => ({ ...call, toolCallLimit: 0 }),
  summary: (call) => ({ ...call, compacts: false }),
} as const satisfies Readonly<Record<string, (call: EstimatedCall) => EstimatedCall>>

/** A part of an estimate, by which a refusal explains it. */
export type EstimatePart = keyof typeof WITHOUT

const withoutBytes = (call: EstimatedCall, bytes: number): EstimatedCall => ({
  ...call,
  conversationBytes: call.conversationBytes - bytes,
  promptBytes: call.promptBytes - bytes,
})

/** Returns the part without which a call would be estimated lowest, and by how much lower. */
export function largestPart(
  call: EstimatedCall,
  estimateCall: (call: EstimatedCall) => Credits,
): { readonly part: EstimatePart; readonly amount: Credits } {
  const whole = estimateCall(call)
  let largest: { readonly part: EstimatePart; readonly amount: Credits } = { part: 'prompt', amount: 0n }
  for (const [part, without] of Object.entries(WITHOUT) as [EstimatePart, (typeof WITHOUT)[EstimatePart]][]) {
    const amount = whole - estimateCall(without(call))
    if (amount > largest.amount) largest = { part, amount }
  }
  return largest
}

export function dearest(charges: readonly Credits[]): Credits {
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
    { ...usage, ...keepExtra(input) },
    { ...usage, reasoning: output, ...keepExtra(input) },
    { ...usage, ...keepExtra({ ...input, outputAudio: output }) },
    { ...usage, ...keepExtra({ ...input, outputImage: output }) },
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
  const findRate = (tool: ServerTool): bigint => serverTools[tool] ?? serverToolCall
  const byPrice = [...tools].sort((a, b) => Number(findRate(b) - findRate(a)))
  let left = calls
  const taken: Partial<Record<ServerTool, number>> = {}
  for (const tool of byPrice) {
    taken[tool] = Math.min(left, callsEach)
    left -= taken[tool]
  }
  return taken
}
