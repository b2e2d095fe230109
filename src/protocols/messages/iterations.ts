/**
 * `usage.iterations` of the messages protocol: the runs of models that made one answer. Summaries of the prompt are in no
 * other count; neither is what other models used than the one that answered. See docs/pricing.md, "Usage" and "Other models".
 */
import {
  keepExtra,
  MAX_REPORTED_TOKENS,
  type ModelUsage,
  NO_USAGE,
  type TokenUsage,
} from '../../core/pricing/usage.ts'
import { type LooseObject, toFields, toText } from '../loose.ts'
import { readCacheWrites } from '../usage/cache-writes.ts'

const COMPACTION = 'compaction'
const MESSAGE = 'message'
const ADVICE = 'advisor_message'
const FALLBACK = 'fallback_message'

/** Returns the count; null for an absent or invalid one. */
export function count(value: unknown): number | null {
  if (typeof value !== 'number' || !(value >= 0) || value > MAX_REPORTED_TOKENS) return null
  return Math.floor(value)
}

/** Tokens of several runs. */
export interface Runs {
  readonly count: number
  readonly usage: TokenUsage
  readonly largestPrompt: number
}

export const NO_RUNS: Runs = { count: 0, usage: NO_USAGE, largestPrompt: 0 }

function addRun(runs: Runs, given: LooseObject): Runs {
  const written = readCacheWrites(toFields(given.cache_creation), count)
  const cacheWrite1h = written.long ?? 0
  const cacheWrite = Math.max(
    count(given.cache_creation_input_tokens) ?? 0,
    (written.short ?? 0) + cacheWrite1h,
  )
  const cached = count(given.cache_read_input_tokens) ?? 0
  const prompt = (count(given.input_tokens) ?? 0) + cached + cacheWrite
  const { usage } = runs
  return {
    count: runs.count + 1,
    largestPrompt: Math.max(runs.largestPrompt, prompt),
    usage: {
      ...NO_USAGE,
      prompt: usage.prompt + prompt,
      cached: usage.cached + cached,
      cacheWrite: usage.cacheWrite + cacheWrite,
      output: usage.output + (count(given.output_tokens) ?? 0),
      ...keepExtra({ cacheWrite1h: (usage.extra?.cacheWrite1h ?? 0) + cacheWrite1h }),
    },
  }
}

/** Returns the summaries among the iterations. */
export const sumCompactions = (iterations: readonly unknown[]): Runs =>
  iterations
    .map(toFields)
    .filter(({ type }) => type === COMPACTION)
    .reduce(addRun, NO_RUNS)

interface Iteration {
  readonly type: string
  /** Empty where the report names none. */
  readonly model: string
  readonly given: LooseObject
}

/** Returns the iterations, each with its model. A summary is made by the model that reads it. */
function readIterations(iterations: readonly unknown[]): readonly Iteration[] {
  let next = ''
  return iterations
    .toReversed()
    .map(toFields)
    .map((given) => {
      const type = toText(given.type)
      const named = toText(given.model)
      if (type !== COMPACTION && type !== ADVICE) next = named
      return { type, model: named || (type === COMPACTION ? next : ''), given }
    })
    .toReversed()
}

/** Categories of refusals that the vendor bills even if they come before any output. */
const BILLED_REFUSALS: ReadonlySet<string> = new Set(['bio', 'frontier_llm', 'reasoning_extraction'])
export const isBilledRefusal = (category: string): boolean => BILLED_REFUSALS.has(category)

/** Why models declined to answer, each empty without a reason. */
interface Refusals {
  /** Of those behind which another one went on, in their order. */
  readonly handovers: readonly string[]
  /** Of the last one; null where it answered. */
  readonly last: string | null
}

const isSilent = ({ type, given }: Iteration): boolean =>
  (type === MESSAGE || type === FALLBACK) && count(given.output_tokens) === 0

/** Returns the iterations without those of models that declined before any output, where their vendor bills nothing. */
function listBilled(all: readonly Iteration[], { handovers, last }: Refusals): readonly Iteration[] {
  const own = all.filter(({ type }) => type !== ADVICE)
  const starts = own.flatMap(({ model }, at) => (at > 0 && own[at - 1]!.model === model ? [] : [at]))
  const attempts = starts.map((start, at) => own.slice(start, starts[at + 1]))
  const free = attempts.filter((attempt, at) => {
    const category = at < attempts.length - 1 ? (handovers[at] ?? '') : last
    return category !== null && !isBilledRefusal(category) && attempt.every(isSilent)
  })
  const unbilled = new Set(free.flat())
  return all.filter((iteration) => !unbilled.has(iteration))
}

/**
 * Returns what each model used, in the order of their first runs; null where only the model of the answer has run.
 * @param answer the counts of the answer. Nothing of them is missing: what the iterations do not have counts to the last run.
 */
export function readModelUsage(
  iterations: readonly unknown[],
  answer: Pick<TokenUsage, 'prompt' | 'output' | 'reasoning'>,
  refusals: Refusals,
): readonly ModelUsage[] | null {
  const all = readIterations(iterations)
  const names = new Set(all.map(({ model }) => model).filter((name) => name !== ''))
  if (names.size < 2 && !all.some(({ type }) => type === ADVICE || type === FALLBACK)) return null
  const billed = listBilled(all, refusals)
  const byModel = new Map<string, Runs>()
  const answered = { prompt: 0, output: 0 }
  for (const { type, model, given } of billed) {
    const before = byModel.get(model) ?? NO_RUNS
    const after = addRun(before, given)
    byModel.set(model, after)
    if (type === ADVICE) continue
    answered.prompt += after.usage.prompt - before.usage.prompt
    answered.output += after.usage.output - before.usage.output
  }
  const answering = all.findLast(({ type }) => type !== ADVICE)
  const isFree = answering !== undefined && !billed.includes(answering)
  const last = answering?.model ?? ''
  const rest = {
    input_tokens: Math.max(0, answer.prompt - answered.prompt),
    output_tokens: Math.max(0, answer.output - answered.output),
  }
  if (!isFree && rest.input_tokens + rest.output_tokens > 0)
    byModel.set(last, addRun(byModel.get(last) ?? NO_RUNS, rest))
  return [...byModel].map(([model, { count: runs, usage, largestPrompt }]) => ({
    model,
    runs,
    usage: {
      ...usage,
      reasoning: model === last ? Math.min(usage.output, answer.reasoning) : 0,
      ...keepExtra({ ...usage.extra, compaction: { count: 0, largestPrompt } }),
    },
  }))
}
