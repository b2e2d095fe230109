/**
 * Usage as the messages protocol reports it: in parts, over the length of a stream. Figures are cumulative: a later
 * one replaces an earlier one and is never added to it; an absent one leaves the earlier one unchanged. See
 * docs/translation.md, "The answer"; docs/failure-modes.md, "Money", rows 7, 8, 12 and 13.
 */
import { MAX_REPORTED_TOKENS } from '../../core/pricing/pricing.ts'
import type { UsageReport } from '../answer/reported-usage.ts'
import { fieldsOf } from '../loose.ts'

/** Returns the count; null for an absent or invalid one. */
function count(value: unknown): number | null {
  if (typeof value !== 'number' || !(value >= 0) || value > MAX_REPORTED_TOKENS) return null
  return Math.floor(value)
}

/** Returns the upstream's calls of its own tools, of all kinds; null without a report. */
function serverToolCalls(value: unknown): number | null {
  if (typeof value !== 'object' || value === null) return null
  return Object.values(value).reduce<number>((sum, calls) => sum + (count(calls) ?? 0), 0)
}

export class MessagesUsage {
  #input: number | null = null
  #cacheRead = 0
  #cacheWrite = 0
  #output: number | null = null
  #thinking = 0
  #serverToolCalls = 0

  /** Reads usage of `message_start`: its output count is a placeholder. */
  begin(value: unknown): UsageReport {
    const usage = fieldsOf(value)
    this.#input = count(usage.input_tokens) ?? this.#input
    this.#cacheRead = count(usage.cache_read_input_tokens) ?? this.#cacheRead
    this.#cacheWrite = count(usage.cache_creation_input_tokens) ?? this.#cacheWrite
    this.#serverToolCalls = serverToolCalls(usage.server_tool_use) ?? this.#serverToolCalls
    return this.#report(null)
  }

  /** Reads usage of `message_delta`, or of a whole message. */
  report(value: unknown): UsageReport {
    this.begin(value)
    const usage = fieldsOf(value)
    const output = count(usage.output_tokens)
    this.#thinking = count(fieldsOf(usage.output_tokens_details).thinking_tokens) ?? this.#thinking
    this.#output = output ?? this.#output
    return this.#report(output)
  }

  #report(output: number | null): UsageReport {
    const cached = this.#cacheRead
    const cacheWrite = this.#cacheWrite
    return {
      prompt: this.#input === null ? null : this.#input + cached + cacheWrite,
      cached,
      cacheWrite,
      output,
      reasoning: Math.min(this.#output ?? 0, this.#thinking),
      serverToolCalls: this.#serverToolCalls,
    }
  }
}
