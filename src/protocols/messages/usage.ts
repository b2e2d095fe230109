/**
 * Usage as the messages protocol reports it: in parts, over the length of a stream. Figures are cumulative: a later
 * one replaces an earlier one and is never added to it; an absent one leaves the earlier one unchanged. See
 * docs/translation.md, "The answer"; docs/failure-modes.md, "Money", rows 7, 8, 12 and 13.
 */
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import {
  type ExtraUsage,
  keepExtra,
  type ModelUsage,
  NO_USAGE,
  sumUsage,
  type TokenUsage,
} from '../../core/pricing/usage.ts'
import type { UsageReport } from '../answer/reported-usage.ts'
import { type LooseObject, toFields, toText } from '../loose.ts'
import { readCacheWrites } from '../usage/cache-writes.ts'
import { findFault, partAbove } from '../usage/faults.ts'
import { readToolCalls, type ToolCalls } from '../usage/server-tools.ts'
import { count, isBilledRefusal, NO_RUNS, type Runs, readModelUsage, sumCompactions } from './iterations.ts'

/** Returns the server tool calls by tool; null without a report. */
const toolCalls = (value: unknown): ToolCalls | null =>
  typeof value === 'object' && value !== null ? readToolCalls(toFields(value)) : null

/** What counts of a content block. */
export interface BegunBlock {
  readonly type: string
  readonly name: string
  /** The type of its content, where that is one object. */
  readonly contentType: string
  /** Why the model before it declined, of a block behind which another one goes on; empty without a reason. */
  readonly category: string
}

/** Where one model declined, and another one goes on. */
const HANDOVER = 'fallback'
/** Types of blocks that are text or thought. */
export const SPOKEN_TYPES: readonly string[] = ['text', 'thinking']
export const REFUSAL = 'refusal'

const SERVER_TOOL = 'server_tool_use'
const RESULT = /_tool_result$/
const ERROR = /_error$/
/** The tools whose calls are reported: code is billed by its time, which no answer has. */
const COUNTED_TOOLS: Readonly<Record<string, ServerTool>> = {
  web_search: 'web_search',
  web_fetch: 'url_context',
}
const ADVISOR = 'advisor'

/** The field of the last event with the counts that Bedrock adds. */
export const METRICS_FIELD = 'amazon-bedrock-invocationMetrics'

/** Counts the tools and advisors that have run so far, for a stream that ends before its report. */
class ToolBlocks {
  #begun = ''
  advice = 0
  readonly tools: Partial<Record<ServerTool, number>> = {}

  /** Takes a block that begins. A call that failed is not billed. */
  begin({ type, name, contentType }: BegunBlock): void {
    this.#begun = type === SERVER_TOOL ? name : ''
    if (RESULT.test(type) && ERROR.test(contentType)) this.#add(type.replace(RESULT, ''), -1)
  }

  /** Counts the tool of the block that ends: it runs when its input is whole. */
  end(): void {
    this.#add(this.#begun, 1)
    this.#begun = ''
  }

  #add(name: string, calls: number): void {
    if (name === ADVISOR) this.advice = Math.max(0, this.advice + calls)
    if (!Object.hasOwn(COUNTED_TOOLS, name)) return
    const tool = COUNTED_TOOLS[name]!
    this.tools[tool] = Math.max(0, (this.tools[tool] ?? 0) + calls)
  }
}

export const readCategory = (given: unknown): string => toText(toFields(given).category)

/** Returns what counts of a whole block, or of one that begins. */
export const readBlock = ({ type, name, content, trigger }: LooseObject): BegunBlock => ({
  type: toText(type),
  name: toText(name),
  contentType: toText(toFields(content).type),
  category: readCategory(trigger),
})

const FAST = 'fast'
/** Some upstreams report this for an answer without output. */
const PLACEHOLDER_OUTPUT_TOKENS = 1
const FREE_REPORT: UsageReport = { ...NO_USAGE, replacesEarlier: true }

export class MessagesUsage {
  #input: number | null = null
  #cacheRead = 0
  #cacheWrite = 0
  #cacheWrite5m = 0
  #cacheWrite1h = 0
  #output: number | null = null
  #thinking = 0
  #tools: ToolCalls = { calls: 0, tools: {} }
  #iterations: readonly unknown[] = []
  #compactions = NO_RUNS
  #fault = ''
  #blocks: ToolBlocks | null = null
  #handovers: readonly string[] = []
  /** Why the last model declined to answer, empty without a reason; null where it did not. */
  #refusal: string | null = null
  #hasContent = false
  /** The output has been reported, and the calls of tools with it. */
  #isReported = false
  /** The service tier in which the upstream served the call; empty without one. */
  serviceTier = ''

  /** Reads usage of `message_start`: its output count is a placeholder. */
  begin(value: unknown): UsageReport {
    const usage = toFields(value)
    this.#fault ||= findFault(value)
    this.#readPrompt(usage)
    this.#tools = toolCalls(usage.server_tool_use) ?? this.#tools
    if (Array.isArray(usage.iterations)) {
      this.#iterations = usage.iterations
      this.#compactions = sumCompactions(usage.iterations)
    }
    // In both reports: the speed has its price whatever the tier is.
    if (this.serviceTier !== FAST)
      this.serviceTier = usage.speed === FAST ? FAST : toText(usage.service_tier) || this.serviceTier
    return this.#report(null)
  }

  /**
   * Reads the counts of the prompt. Some upstreams report 0 for what they reported before, and leave out the cache; 0 beside
   * summaries is a count.
   */
  #readPrompt(usage: LooseObject): void {
    const input = count(usage.input_tokens)
    const read = count(usage.cache_read_input_tokens)
    const write = count(usage.cache_creation_input_tokens)
    const { short, long } = readCacheWrites(toFields(usage.cache_creation), count)
    const isNothing = !input && !read && !write && !short && !long
    if (isNothing && this.#input !== null && !Array.isArray(usage.iterations)) return
    this.#input = input ?? this.#input
    this.#cacheRead = read ?? this.#cacheRead
    this.#cacheWrite = write ?? this.#cacheWrite
    this.#cacheWrite5m = short ?? this.#cacheWrite5m
    this.#cacheWrite1h = long ?? this.#cacheWrite1h
  }

  /** Reads usage of `message_delta`, or of a whole message. */
  report(value: unknown): UsageReport {
    this.begin(value)
    const usage = toFields(value)
    const output = count(usage.output_tokens)
    this.#thinking = count(toFields(usage.output_tokens_details).thinking_tokens) ?? this.#thinking
    this.#output = output ?? this.#output
    this.#isReported ||= output !== null
    return this.#report(output)
  }

  /** Notes a block that begins. */
  blockBegins(block: BegunBlock): void {
    if (block.type === HANDOVER) this.#handovers = [...this.#handovers, block.category]
    else this.#hasContent = true
    if (SPOKEN_TYPES.includes(block.type)) return
    this.#blocks ??= new ToolBlocks()
    this.#blocks.begin(block)
  }

  /** Notes that the answer is a refusal. */
  refuse(category: string): void {
    this.#refusal = category
  }

  /** Whether the answer is a refusal that costs nothing: it came before any output. */
  get #isFreeRefusal(): boolean {
    const isBeforeOutput = !this.#hasContent && (this.#output ?? 0) <= PLACEHOLDER_OUTPUT_TOKENS
    return this.#refusal !== null && isBeforeOutput && !isBilledRefusal(this.#refusal)
  }

  /** Notes that the current block ends. */
  blockEnds(): void {
    this.#blocks?.end()
  }

  /** How often an advisor was asked of which nothing is reported yet. */
  get unreportedAdvice(): number {
    return this.#isReported ? 0 : (this.#blocks?.advice ?? 0)
  }

  /** Adds the tools that have run to what is reported so far: the last report replaces their count. */
  withTools(usage: TokenUsage | null): TokenUsage | null {
    if (this.#isReported || this.#blocks === null) return usage
    const { tools } = this.#blocks
    const serverToolCalls = Object.values(tools).reduce((sum, calls) => sum + calls, 0)
    if (serverToolCalls === 0) return usage
    const counts = usage ?? NO_USAGE
    return { ...counts, serverToolCalls, ...keepExtra({ ...counts.extra, tools }) }
  }

  /**
   * Reads the counts that Bedrock adds to the last event, which have other names. It is not known whether they have
   * those of summaries: then the event before it has said all.
   */
  metrics(value: unknown): UsageReport {
    if (this.#compactions.count > 0) return this.#report(this.#output)
    const metrics = toFields(value)
    return this.report({
      input_tokens: metrics.inputTokenCount,
      output_tokens: metrics.outputTokenCount,
      cache_read_input_tokens: metrics.cacheReadInputTokenCount,
      cache_creation_input_tokens: metrics.cacheWriteInputTokenCount,
    })
  }

  #report(output: number | null): UsageReport {
    const cached = this.#cacheRead
    // Some upstreams report only the parts.
    const cacheWrite = Math.max(this.#cacheWrite, this.#cacheWrite5m + this.#cacheWrite1h)
    const { calls, tools } = this.#tools
    const contradiction =
      this.#fault || partAbove('reasoning', this.#thinking, 'output', this.#output ?? this.#thinking)
    const report = {
      prompt: this.#input === null ? null : this.#input + cached + cacheWrite,
      cached,
      cacheWrite,
      output,
      reasoning: Math.min(this.#output ?? 0, this.#thinking),
      serverToolCalls: calls,
      ...(contradiction !== undefined && { contradiction }),
    }
    const extra = { cacheWrite1h: this.#cacheWrite1h, tools }
    const byModel = output === null ? null : this.#readModels(report.prompt ?? 0, output)
    if (byModel !== null) return withModels(report, byModel, tools)
    if (this.#isFreeRefusal) return FREE_REPORT
    if (this.#compactions.count === 0) return { ...report, ...keepExtra(extra) }
    return withCompactions(report, this.#compactions, extra)
  }

  #readModels(prompt: number, output: number): readonly ModelUsage[] | null {
    if (this.#iterations.length === 0) return null
    const answer = { prompt, output, reasoning: this.#thinking }
    return readModelUsage(this.#iterations, answer, { handovers: this.#handovers, last: this.#refusal })
  }
}

/** Returns the counts of all models. Those of the answer may be in one of them. */
const withModels = (
  report: UsageReport,
  byModel: readonly ModelUsage[],
  tools: ExtraUsage['tools'],
): UsageReport => {
  const sum = sumUsage(byModel.map(({ usage }) => usage))
  const { serverToolCalls, contradiction } = report
  return {
    ...sum,
    ...keepExtra({ ...sum.extra, tools }),
    ...(contradiction !== undefined && { contradiction }),
    serverToolCalls,
    ...(byModel.length > 0 && { byModel }),
    replacesEarlier: true,
  }
}

/** Adds what the summaries took. What an earlier report had of the prompt may be in one of them. */
function withCompactions(
  report: UsageReport,
  { count, largestPrompt, usage: sums }: Runs,
  { cacheWrite1h, tools }: Pick<ExtraUsage, 'cacheWrite1h' | 'tools'>,
): UsageReport {
  const { prompt, output } = report
  return {
    ...report,
    prompt: prompt === null ? null : prompt + sums.prompt,
    cached: report.cached + sums.cached,
    cacheWrite: report.cacheWrite + sums.cacheWrite,
    output: output === null ? null : output + sums.output,
    ...keepExtra({
      cacheWrite1h: cacheWrite1h + (sums.extra?.cacheWrite1h ?? 0),
      tools,
      compaction: { count, largestPrompt: Math.max(prompt ?? 0, largestPrompt) },
    }),
    ...(prompt !== null && output !== null && { replacesEarlier: true }),
  }
}
