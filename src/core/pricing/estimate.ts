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
import { NO_USAGE, type TokenUsage } from './pricing.ts'

/** A token is taken for four bytes of the prompt's JSON. */
const BYTES_PER_TOKEN = 4
/** Also the weight of four ASCII characters of output. */
const CHARACTERS_PER_TOKEN = 4

export const estimateInputTokens = (jsonBytes: number): number => Math.ceil(jsonBytes / BYTES_PER_TOKEN)

/** A later byte of a UTF-8 character adds an eighth of a token: three bytes of Chinese are about one token. */
const LATER_BYTES_PER_TOKEN = 8

/**
 * Estimates the prompt of a call whose upstream did not report it. The admission's estimate counts bytes alone; the
 * charge counts by script too: four ASCII characters are a token, a Cyrillic or Arabic one five eighths, a Chinese one
 * a whole token.
 * @param laterBytes see `laterBytesIn`
 */
export const estimatePromptTokens = (jsonBytes: number, laterBytes: number): number =>
  Math.ceil(jsonBytes / BYTES_PER_TOKEN + laterBytes / LATER_BYTES_PER_TOKEN)

/** Counts the bytes of UTF-8 characters behind the first of each: none in ASCII, two in each Chinese character. */
export function laterBytesIn(text: Buffer): number {
  if (isAscii(text)) return 0
  let count = 0
  for (let i = 0; i < text.length; i++) if ((text[i]! & 0xc0) === 0x80) count++
  return count
}

/**
 * Weight that each later byte of a UTF-8 character adds, so that output counts by script as a prompt does: four ASCII
 * characters are a token, and a Cyrillic character counts as 2.5 of them, a Chinese one as 4, an emoji as 5.5.
 */
export const LATER_BYTE_CHARACTERS = CHARACTERS_PER_TOKEN * (1 / BYTES_PER_TOKEN + 1 / LATER_BYTES_PER_TOKEN)

const weightOfBytes = (bytes: number): number => 1 + (bytes - 1) * LATER_BYTE_CHARACTERS
const [TWO_BYTES, THREE_BYTES, FOUR_BYTES] = [weightOfBytes(2), weightOfBytes(3), weightOfBytes(4)]

/** Returns the weight of a UTF-16 code unit in characters. The first half of a surrogate pair counts for both. */
export function weightOfCodeUnit(unit: number): number {
  if (unit < 0x80) return 1
  if (unit < 0x800) return TWO_BYTES
  if ((unit & 0xfc00) === 0xd800) return FOUR_BYTES
  return (unit & 0xfc00) === 0xdc00 ? 0 : THREE_BYTES
}

/** @param characters weighed by script, see `LATER_BYTE_CHARACTERS` */
export const estimateOutputTokens = (characters: number): number =>
  Math.ceil(characters / CHARACTERS_PER_TOKEN)

/** Returns the largest output: the explicit limit in full, else min(the model's default, 32768). */
export function outputAllowance(model: ModelEntry, explicitLimit: number | null): number {
  if (explicitLimit !== null) return explicitLimit
  const usual = model.default_max_tokens ?? model.max_output_tokens ?? ESTIMATE_OUTPUT_CAP_TOKENS
  return Math.min(usual, ESTIMATE_OUTPUT_CAP_TOKENS)
}

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
  readonly links: Readonly<Record<'image' | 'file' | 'audio', number>>
}

/** Returns the assumed tokens of parts given by URL: only the upstream learns their number. */
export function linkedTokens(
  { estimate }: ModelEntry,
  { image, file, audio }: EstimatedCall['links'],
): number {
  return image * estimate.image_tokens + file * estimate.file_tokens + audio * estimate.audio_tokens
}

/**
 * Returns the most calls of tools that the upstream runs itself: both the estimate and the largest charge. The
 * client's own limit lowers it.
 */
export const maxServerToolCalls = (
  { estimate }: ModelEntry,
  { builtInTools, toolCallLimit }: Pick<EstimatedCall, 'builtInTools' | 'toolCallLimit'>,
): number => Math.min(builtInTools.length * estimate.server_tool_calls, toolCallLimit ?? Infinity)

/** Returns the worst case that admission compares with the wallet. */
export function worstCase(model: ModelEntry, call: EstimatedCall): TokenUsage {
  const { promptBytes, outputLimit, choices, links } = call
  return {
    ...NO_USAGE,
    prompt: estimateInputTokens(promptBytes) + linkedTokens(model, links),
    output: outputAllowance(model, outputLimit) * choices,
    serverToolCalls: maxServerToolCalls(model, call),
  }
}
