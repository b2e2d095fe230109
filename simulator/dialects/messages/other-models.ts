/** Other models of the vendor's that take part in an answer: advisors, and fallbacks that answer where a model declines. */

import type { Script } from '../../answers/script.ts'
import { drawTokens, makeSeededRandom } from '../../answers/words.ts'
import { isObject } from '../../dialect.ts'
import { type Directives, splitModelName } from '../../directives/grammar.ts'
import type { ContentBlock } from './content.ts'
import { invalid, requireString } from './fields.ts'

const ADVISOR = /^advisor_\d{8}$/
const ADVICE_TOKENS = 100

/** Names of models, without directives. */
export type OtherModels = {
  readonly fallbacks: readonly string[]
  readonly advisor: string | null
}

export const isAdvisor = (tool: unknown): boolean => isObject(tool) && ADVISOR.test(String(tool.type))

/** @throws {SimulatedFailure} 400 */
export function readOtherModels(body: Record<string, unknown>): OtherModels {
  const { fallbacks = [], tools = [] } = body
  if (!Array.isArray(fallbacks)) throw invalid('fallbacks: Input should be a valid list')
  const advisor = (tools as unknown[]).find(isAdvisor)
  const readName = (value: unknown, path: string): string => {
    if (!isObject(value)) throw invalid(`${path}: Input should be an object`)
    return splitModelName(requireString(value, 'model', path)).model
  }
  return {
    fallbacks: fallbacks.map((fallback, index) => readName(fallback, `fallbacks.${index}`)),
    advisor: advisor === undefined ? null : readName(advisor, 'tools.advisor'),
  }
}

export type OtherRuns = {
  /** The model that answers. */
  readonly model: string
  /** What stands before the answer's own blocks. */
  readonly blocks: readonly ContentBlock[]
  /** Undefined where only the model of the request runs. */
  readonly iterations: readonly Record<string, unknown>[] | undefined
}

/** Returns what other models add to an answer, by the directives `advice`, `declined`, `code` and `other_model`. */
export function runOtherModels(
  asked: OtherModels,
  model: string,
  { usage, seed, id }: Script,
  { advice = 0, declined, code, other_model: renamed }: Directives,
): OtherRuns {
  const [fallback] = declined === undefined ? [] : asked.fallbacks
  const advices = asked.advisor === null ? 0 : advice
  if (fallback === undefined && advices === 0) return { model, blocks: [], iterations: undefined }
  const { prompt, cached, cacheWrite, completion } = usage
  const read = {
    input_tokens: prompt - cached - cacheWrite,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: cacheWrite,
  }
  const serving = fallback === undefined ? model : (renamed ?? fallback)
  const first = Math.floor(completion / (advices + 1))
  const turns = Array.from({ length: advices }, () => [
    { type: 'message', model: serving, ...read, output_tokens: first },
    {
      type: 'advisor_message',
      model: renamed ?? asked.advisor,
      input_tokens: prompt,
      output_tokens: ADVICE_TOKENS,
    },
  ])
  const last = {
    type: fallback === undefined ? 'message' : 'fallback_message',
    ...{ model: serving, ...read, output_tokens: completion - advices * first },
  }
  const before = { type: 'message', model, ...read, output_tokens: declined }
  const advising = Array.from({ length: advices }, (_, index) => adviceBlocks(`${id}${index}`)).flat()
  return {
    model: serving,
    blocks: [
      ...(fallback === undefined ? [] : makeDeclinedBlocks(model, serving, declined!, { seed, code })),
      ...advising,
    ],
    iterations: [...(fallback === undefined ? [] : [before]), ...turns.flat(), last],
  }
}

const plainBlock = (whole: Record<string, unknown>): ContentBlock => ({
  whole,
  opening: whole,
  openingTokens: 0,
  deltas: [],
})

/** Returns the category of a refusal. */
export const toCategory = (code = 'cyber'): string | null => (code === 'none' ? null : code)

function makeDeclinedBlocks(
  from: string,
  to: string,
  tokens: number,
  { seed, code }: { seed: number; code: string | undefined },
): ContentBlock[] {
  const said = drawTokens(makeSeededRandom(seed), tokens)
  const text: ContentBlock = {
    whole: { type: 'text', text: said.join('') },
    opening: { type: 'text', text: '' },
    openingTokens: 0,
    deltas: said.map((token) => ({ json: JSON.stringify({ type: 'text_delta', text: token }), tokens: 1 })),
  }
  const trigger = { type: 'refusal', category: toCategory(code) }
  const handover = plainBlock({ type: 'fallback', from: { model: from }, to: { model: to }, trigger })
  return tokens === 0 ? [handover] : [text, handover]
}

function adviceBlocks(id: string): ContentBlock[] {
  const result = { type: 'advisor_result', text: 'Go on as planned.', stop_reason: 'end_turn' }
  return [
    plainBlock({ type: 'server_tool_use', id: `srvtoolu_${id}`, name: 'advisor', input: {} }),
    plainBlock({ type: 'advisor_tool_result', tool_use_id: `srvtoolu_${id}`, content: result }),
  ]
}
