/**
 * Usage as the messages protocol reports it: in parts, over the length of a stream. Figures are cumulative: a later
 * one replaces an earlier one and is never added to it; an absent one leaves the earlier one unchanged. See
 * docs/translation.md, "The answer"; docs/failure-modes.md, "Money", rows 7, 8, 12 and 13.
 */
import { extraOf, MAX_REPORTED_TOKENS } from '../../core/pricing/usage.ts'
import type { UsageReport } from '../answer/reported-usage.ts'
import { fieldsOf, textOf } from '../loose.ts'
import { faultIn, partAbove } from '../usage/faults.ts'
import { type ToolCalls, toolCallsIn } from '../usage/server-tools.ts'

/** Returns the count; null for an absent or invalid one. */
function count(value: unknown): number | null {
  if (typeof value !== 'number' || !(value >= 0) || value > MAX_REPORTED_TOKENS) return null
  return Math.floor(value)
}

/** Returns the server tool calls by tool; null without a report. */
const toolCalls = (value: unknown): ToolCalls | null =>
  typeof value === 'object' && value !== null ? toolCallsIn(fieldsOf(value)) : null

export class MessagesUsage {
  #input: number | null = null
  #cacheRead = 0
  #cacheWrite = 0
  #cacheWrite5m = 0
  #cacheWrite1h = 0
  #output: number | null = null
  #thinking = 0
  #tools: ToolCalls = { calls: 0, tools: {} }
  #fault = ''
  /** The service tier in which the upstream served the call; empty without one. */
  serviceTier = ''

  /** Reads usage of `message_start`: its output count is a placeholder. */
  begin(value: unknown): UsageReport {
    const usage = fieldsOf(value)
    this.#fault ||= faultIn(value)
    this.#input = count(usage.input_tokens) ?? this.#input
    this.#cacheRead = count(usage.cache_read_input_tokens) ?? this.#cacheRead
    this.#cacheWrite = count(usage.cache_creation_input_tokens) ?? this.#cacheWrite
    const written = fieldsOf(usage.cache_creation)
    this.#cacheWrite5m = count(written.ephemeral_5m_input_tokens) ?? this.#cacheWrite5m
    this.#cacheWrite1h = count(written.ephemeral_1h_input_tokens) ?? this.#cacheWrite1h
    this.#tools = toolCalls(usage.server_tool_use) ?? this.#tools
    this.serviceTier = textOf(usage.service_tier) || this.serviceTier
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

  /** Reads the counts that Bedrock adds to the last event, which have other names. */
  metrics(value: unknown): UsageReport {
    const metrics = fieldsOf(value)
    return this.report({
      input_tokens: metrics.inputTokenCount,
      output_tokens: metrics.outputTokenCount,
      cache_read_input_tokens: metrics.cacheReadInputTokenCount,
      cache_creation_input_tokens: metrics.cacheWriteInputTokenCount,
    })
  }

  #report(output: number | null): UsageReport {
    const cached = this.#cacheRead
    // Some upstreams report the parts alone.
    const cacheWrite = Math.max(this.#cacheWrite, this.#cacheWrite5m + this.#cacheWrite1h)
    const { calls, tools } = this.#tools
    const contradiction =
      this.#fault || partAbove('reasoning', this.#thinking, 'output', this.#output ?? this.#thinking)
    return {
      prompt: this.#input === null ? null : this.#input + cached + cacheWrite,
      cached,
      cacheWrite,
      output,
      reasoning: Math.min(this.#output ?? 0, this.#thinking),
      serverToolCalls: calls,
      ...extraOf({ cacheWrite1h: this.#cacheWrite1h, tools }),
      ...(contradiction !== undefined && { contradiction }),
    }
  }
}
