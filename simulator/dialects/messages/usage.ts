/** Usage of the messages dialect, and its places in a stream. */

import { NO_USAGE, type Usage } from '../../answers/script.ts'
import type { Directives } from '../../directives/grammar.ts'

/** The vendor's output count before there is any output. */
const PLACEHOLDER_OUTPUT_TOKENS = 1

export type StreamedUsage = {
  /** Usage of `message_start`. */
  readonly start: unknown
  /** Returns the usage of a `message_delta` after a block; undefined if there is none. */
  readonly afterBlock: (outputTokens: number) => unknown
  /** Usage of the last `message_delta`. */
  readonly end: unknown
}

/** Returns the usage of a whole answer. */
export function wholeUsage(usage: Usage, { usage: mode, service_tier: tier }: UsageDirectives): unknown {
  if (mode === 'none') return undefined
  return fullUsage(mode === 'zero' ? NO_USAGE : usage, tier)
}

type UsageDirectives = Pick<Directives, 'usage' | 'service_tier'>

export function toStreamedUsage(
  usage: Usage,
  { usage: mode, service_tier: tier }: UsageDirectives,
): StreamedUsage {
  const never = () => undefined
  const promptAlone = { ...usage, completion: PLACEHOLDER_OUTPUT_TOKENS, reasoning: 0, searches: 0 }
  const start = fullUsage(promptAlone, tier)
  const end = cumulativeUsage(usage)
  switch (mode) {
    case 'none':
      return { start: undefined, afterBlock: never, end: undefined }
    case 'zero':
      return { start: fullUsage(NO_USAGE, tier), afterBlock: never, end: cumulativeUsage(NO_USAGE) }
    case 'early':
      return {
        start,
        afterBlock: (outputTokens) => ({ output_tokens: outputTokens }),
        end: { output_tokens: usage.completion, ...serverTools(usage) },
      }
    case 'with_finish':
      return { start: fullUsage(NO_USAGE, tier), afterBlock: never, end }
    default:
      return { start, afterBlock: never, end }
  }
}

/** The input counts tokens that are neither read from a cache nor written to one. */
function cumulativeUsage(usage: Usage) {
  return {
    input_tokens: usage.prompt - usage.cached - usage.cacheWrite,
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cached,
    output_tokens: usage.completion,
    ...(usage.reasoning > 0 ? { output_tokens_details: { thinking_tokens: usage.reasoning } } : {}),
    ...serverTools(usage),
  }
}

function fullUsage(usage: Usage, serviceTier = 'standard') {
  return {
    ...cumulativeUsage(usage),
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cacheWrite - usage.cacheWrite1h,
      ephemeral_1h_input_tokens: usage.cacheWrite1h,
    },
    service_tier: serviceTier,
  }
}

function serverTools({ searches }: Usage) {
  return searches > 0 ? { server_tool_use: { web_search_requests: searches } } : {}
}
