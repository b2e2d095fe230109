/** Answers of the generate-content dialect: parts, candidates, usage; whole and in chunks. */

import type { Likelihood, TokenLogprob } from '../../answers/logprobs.ts'
import {
  type Choice,
  countHiddenTokens,
  inTurn,
  NO_USAGE,
  type Script,
  type ToolCall,
  type Usage,
} from '../../answers/script.ts'
import type { Frame } from '../../answers/sse.ts'
import { isObject } from '../../dialect.ts'
import type { Directives } from '../../directives/grammar.ts'
import { thoughtSignature } from './turns.ts'

const FINISH_REASONS = { stop: 'STOP', length: 'MAX_TOKENS', tool_calls: 'STOP' } as const
const MAX_ID_BYTES = 3

type AnswerOptions = {
  readonly script: Script
  readonly directives: Directives
  readonly modelVersion: string
  readonly responseId: string
  /** True if the model signs its last part even without a call. */
  readonly signs: boolean
}

type PartPiece = {
  readonly part: Record<string, unknown>
  readonly tokens: number
  readonly reasoning: boolean
  readonly logprob?: TokenLogprob
}

/** Returns the body of a whole answer. */
export function wholeAnswer(options: AnswerOptions): unknown {
  const { script, directives } = options
  const usage = usageAtEnd(script.usage, directives)
  const candidates = script.choices.map((choice, index) => ({
    content: { parts: [...joined(splitPieces(choice)), ...lastParts(choice, options)], role: 'model' },
    finishReason: FINISH_REASONS[choice.finish],
    ...makeGrounding(choice),
    ...average(choice),
    ...(choice.logprobs === null ? {} : { logprobsResult: makeLogprobs(choice.logprobs) }),
    index,
  }))
  return { candidates, ...usage, ...makeFoot(options) }
}

/** Yields one chunk per token, then one for each candidate's end. */
export function* splitChunks(options: AnswerOptions): Iterator<Frame, void> {
  const { script, directives } = options
  const foot = makeFoot(options)
  const hidden = countHiddenTokens(script)
  let soFar = { ...script.usage, completion: hidden, reasoning: hidden }
  for (const [index, { part, tokens, reasoning, logprob }] of inTurn(script.choices.map(splitPieces))) {
    soFar = {
      ...soFar,
      completion: soFar.completion + tokens,
      reasoning: soFar.reasoning + (reasoning ? tokens : 0),
    }
    const likely = logprob === undefined ? {} : { logprobsResult: makeLogprobs([logprob]) }
    const candidate = { content: { parts: [part], role: 'model' }, ...likely, index }
    const usage = usageOnTheWay(soFar, directives)
    yield { data: JSON.stringify({ candidates: [candidate], ...usage, ...foot }), tokens }
  }
  for (const [index, choice] of script.choices.entries()) {
    const parts = lastParts(choice, options)
    const candidate = {
      content: parts.length > 0 ? { parts, role: 'model' } : { role: 'model' },
      finishReason: FINISH_REASONS[choice.finish],
      ...makeGrounding(choice),
      ...average(choice),
      index,
    }
    const isLast = index === script.choices.length - 1
    const usage = isLast ? usageAtEnd(script.usage, directives) : usageOnTheWay(soFar, directives)
    yield {
      data: JSON.stringify({ candidates: [candidate], ...usage, ...foot }),
      tokens: 0,
      terminator: isLast,
    }
  }
}

function makeFoot({ modelVersion, responseId }: AnswerOptions) {
  return { modelVersion, responseId }
}

function* splitPieces(choice: Choice): Iterable<PartPiece> {
  for (const text of choice.reasoning) yield { part: { text, thought: true }, tokens: 1, reasoning: true }
  for (const { base64 } of choice.pictures)
    yield { part: { inlineData: { mimeType: 'image/png', data: base64 } }, tokens: 0, reasoning: false }
  for (const [index, text] of choice.text.entries())
    yield { part: { text }, tokens: 1, reasoning: false, logprob: choice.logprobs?.[index] }
  for (const [index, call] of choice.toolCalls.entries()) {
    const part = callPart(call, index)
    const tokens = 1 + call.pieces.length
    if (part !== null) yield { part, tokens, reasoning: false }
  }
}

/** Joins consecutive pieces of the same kind into one part. */
function joined(pieces: Iterable<PartPiece>): Record<string, unknown>[] {
  const parts: Record<string, unknown>[] = []
  for (const { part } of pieces) {
    const before = parts.at(-1)
    const continues =
      typeof before?.text === 'string' && typeof part.text === 'string' && before.thought === part.thought
    if (before !== undefined && continues) before.text = `${before.text}${part.text}`
    else parts.push({ ...part })
  }
  return parts
}

/** Signs only the first of parallel calls. Returns null if the arguments are not an object: there is no call then. */
function callPart({ id, name, pieces }: ToolCall, index: number): Record<string, unknown> | null {
  const args = toObject(pieces.join(''))
  if (args === null) return null
  return { functionCall: { name, args }, ...(index === 0 ? { thoughtSignature: thoughtSignature(id) } : {}) }
}

function toObject(json: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function lastParts({ toolCalls }: Choice, { signs, responseId }: AnswerOptions): Record<string, unknown>[] {
  return signs && toolCalls.length === 0 ? [{ text: '', thoughtSignature: thoughtSignature(responseId) }] : []
}

/** The id of a token is made of its bytes, instead of the vendor's ids. */
const makeCandidate = ({ token, logprob }: Likelihood) => ({
  token,
  tokenId: Buffer.from(token).readUIntBE(0, Math.min(MAX_ID_BYTES, Buffer.byteLength(token))),
  logProbability: logprob,
})

const makeLogprobs = (tokens: readonly TokenLogprob[]) => ({
  topCandidates: tokens.map(({ top }) => ({ candidates: top.map(makeCandidate) })),
  chosenCandidates: tokens.map(makeCandidate),
})

/** Comes with the end of the candidate, once its tokens are known. */
function average({ logprobs }: Choice): Record<string, unknown> {
  if (logprobs === null || logprobs.length === 0) return {}
  return { avgLogprobs: logprobs.reduce((sum, { logprob }) => sum + logprob, 0) / logprobs.length }
}

/** Only after a search. Every source is cited for the whole text; positions are bytes. */
function makeGrounding({ searches, text }: Choice): Record<string, unknown> {
  if (searches.length === 0) return {}
  const said = text.join('')
  const sources = searches.flatMap((search) => search.sources)
  const segment = { startIndex: 0, endIndex: Buffer.byteLength(said), text: said }
  return {
    groundingMetadata: {
      webSearchQueries: searches.map(({ query }) => query),
      searchEntryPoint: { renderedContent: '<div>simulated</div>' },
      groundingChunks: sources.map(({ url, title }) => ({ web: { uri: url, title } })),
      groundingSupports: [{ segment, groundingChunkIndices: sources.map((_, index) => index) }],
    },
  }
}

function usageAtEnd(usage: Usage, directives: Directives) {
  const { usage: mode, service_tier: tier } = directives
  if (mode === 'none') return {}
  const counts = wireUsage(mode === 'zero' ? NO_USAGE : usage)
  return { usageMetadata: { ...counts, ...(tier !== undefined && { serviceTier: tier }) } }
}

function usageOnTheWay(usage: Usage, directives: Directives) {
  return directives.usage === 'with_finish' ? {} : usageAtEnd(usage, directives)
}

/** The prompt includes cached tokens; zeros are left out, as by the vendor. */
function wireUsage(usage: Usage) {
  const { prompt, cached, completion, reasoning, inputAudio, inputImage, outputAudio, outputImage } = usage
  const text = (tokenCount: number) => [{ modality: 'TEXT', tokenCount }]
  const modalities = (all: number, audio: number, image: number) => [
    ...text(Math.max(0, all - audio - image)),
    ...(audio > 0 ? [{ modality: 'AUDIO', tokenCount: audio }] : []),
    ...(image > 0 ? [{ modality: 'IMAGE', tokenCount: image }] : []),
  ]
  const candidates = completion - reasoning
  return {
    promptTokenCount: prompt,
    ...(candidates > 0 ? { candidatesTokenCount: candidates } : {}),
    totalTokenCount: prompt + completion,
    ...(cached > 0 ? { cachedContentTokenCount: cached, cacheTokensDetails: text(cached) } : {}),
    promptTokensDetails: modalities(prompt, inputAudio, inputImage),
    ...(outputAudio + outputImage > 0
      ? { candidatesTokensDetails: modalities(candidates, outputAudio, outputImage) }
      : {}),
    ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {}),
  }
}
