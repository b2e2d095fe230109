/** The script of a chat answer: its text and its counts, in no dialect. */

import type { Directives } from '../directives/grammar.ts'
import {
  type BuiltInTool,
  type Picture,
  type Search,
  writePictures,
  writeSearches,
} from './built-in-tools.ts'
import { LOGPROB_SEED, type TokenLogprob, writeLogprobs } from './logprobs.ts'
import {
  drawTokens,
  makeHexadecimalId,
  makeId,
  makeSeededRandom,
  type Random,
  sampleJson,
  tokensOfJson,
  tokensOfLiteral,
  toSeed,
} from './words.ts'

const DEFAULT_TOKENS = 64
const DEFAULT_REASONING_TOKENS = 16
const CUSTOM_INPUT_TOKENS = 5
const BYTES_PER_PROMPT_TOKEN = 4
/** Answers whose time follows from their seed are of this year. */
const SEEDED_FROM_SECONDS = 1_735_689_600
const YEAR_SECONDS = 31_536_000
const MS_PER_SECOND = 1000
const MAX_QUOTED_CHARACTERS = 300
/** Separates the random numbers of built-in tools from those of the text, so that a tool does not change the words. */
const BUILT_IN_SEED = 0x5eed

/** A chat request, in no dialect. */
export type Prompt = {
  /** The model, without directives. */
  readonly model: string
  /** The text of the last message. */
  readonly asked: string
  /** The prompt as JSON, which gives the seed and the number of prompt tokens. */
  readonly json: string
  readonly seed: number | null
  readonly maxTokens: number | null
  readonly choices: number
  readonly tools: readonly FunctionTool[]
  /** A named tool is called once, `required` calls the first one; with `auto` the directive decides. */
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string }
  readonly format: 'text' | 'json' | { readonly schema: unknown }
  /** Stop sequences. */
  readonly stop: readonly string[]
  /** The number of tokens per place that the request wants log probabilities for; null for none. */
  readonly logprobs: number | null
  /** Tools that the provider runs itself: each once, unless a directive says otherwise. */
  readonly builtIns: readonly BuiltInTool[]
  /** Whether the request wants reasoning, and wants to see it. Directives take precedence. */
  readonly thinking: 'off' | 'hidden' | 'shown'
}

export type FunctionTool = {
  readonly name: string
  readonly schema: unknown
  /** Its input is plain text. */
  readonly isCustom?: true
  /** The group of tools that has it. */
  readonly namespace?: string
}

export type Script = {
  readonly seed: number
  /** 24 hexadecimal characters, unique to request and answer. Dialects add a prefix. */
  readonly id: string
  /** Epoch seconds. */
  readonly created: number
  readonly choices: readonly Choice[]
  readonly usage: Usage
}

export type Choice = {
  /** Reasoning text, if it is shown; `reasoningTokens` counts it in any case. */
  readonly reasoning: readonly string[]
  readonly reasoningTokens: number
  readonly text: readonly string[]
  /** Log probabilities of the text's tokens; null if the request wants none. */
  readonly logprobs: readonly TokenLogprob[] | null
  readonly toolCalls: readonly ToolCall[]
  /** Results of built-in tools, which come before the text and count no tokens. */
  readonly searches: readonly Search[]
  readonly pictures: readonly Picture[]
  readonly finish: 'stop' | 'length' | 'tool_calls'
  /** The stop sequence that ended the text; null if none did. */
  readonly stopSequence: string | null
  /** Tokens of reasoning, text and tool calls together. */
  readonly tokens: number
}

/** A tool call: one token for its name and one for each piece of its arguments. */
export type ToolCall = {
  /** 24 hexadecimal characters, unique inside the script; dialects put their own prefix before it. */
  readonly id: string
  readonly tool: FunctionTool
  readonly name: string
  readonly pieces: readonly string[]
}

export type Usage = {
  readonly prompt: number
  /** The part of `prompt` read from a cache. */
  readonly cached: number
  /** The part of `prompt` written to a cache. */
  readonly cacheWrite: number
  /** The part of `cacheWrite` that is kept for an hour. */
  readonly cacheWrite1h: number
  /** Parts of `prompt`. */
  readonly inputAudio: number
  readonly inputImage: number
  /** Parts of `completion`. */
  readonly outputAudio: number
  readonly outputImage: number
  /** All tokens of all choices, including reasoning. */
  readonly completion: number
  readonly reasoning: number
  readonly searches: number
  readonly pictures: number
}

export const NO_USAGE: Usage = {
  ...{ prompt: 0, cached: 0, cacheWrite: 0, completion: 0, reasoning: 0, searches: 0, pictures: 0 },
  ...{ cacheWrite1h: 0, inputAudio: 0, inputImage: 0, outputAudio: 0, outputImage: 0 },
}

/** Writes the script. Without `talk`, the same prompt and directives always give the same one. */
export function writeScript(prompt: Prompt, directives: Directives): Script {
  const seed = directives.seed ?? toSeed(`${prompt.model}\n${prompt.seed ?? ''}\n${prompt.json}`)
  const choices = Array.from({ length: prompt.choices }, (_, index) =>
    writeChoice(prompt, directives, seed + index),
  )
  const promptTokens = directives.prompt_tokens ?? countPromptTokens(prompt.json)
  const cached = Math.min(directives.cached ?? 0, promptTokens)
  const cacheWrite = Math.min(directives.cache_write ?? 0, promptTokens - cached)
  const fresh = promptTokens - cached - cacheWrite
  const inputAudio = Math.min(directives.input_audio ?? 0, fresh)
  const completion = sum(choices.map((choice) => choice.tokens))
  const reasoning = sum(choices.map((choice) => choice.reasoningTokens))
  const outputAudio = Math.min(directives.output_audio ?? 0, completion - reasoning)
  const usage = {
    prompt: promptTokens,
    cached,
    cacheWrite,
    cacheWrite1h: Math.min(directives.cache_write_1h ?? 0, cacheWrite),
    inputAudio,
    inputImage: Math.min(directives.input_image ?? 0, fresh - inputAudio),
    outputAudio,
    outputImage: Math.min(directives.output_image ?? 0, completion - reasoning - outputAudio),
    completion,
    reasoning,
    searches: sum(choices.map((choice) => choice.searches.length)),
    pictures: sum(choices.map((choice) => choice.pictures.length)),
  }
  const talks = directives.talk === true
  const created = talks ? Math.floor(Date.now() / MS_PER_SECOND) : SEEDED_FROM_SECONDS + (seed % YEAR_SECONDS)
  const id = scriptId(prompt, choices, talks ? performance.now() : undefined)
  return { seed, id, created, choices, usage }
}

/** @param at makes the id of every answer another */
function scriptId(prompt: Prompt, choices: readonly Choice[], at?: number): string {
  const { model, json, seed, maxTokens, tools, toolChoice, format, stop } = prompt
  const { logprobs, builtIns, thinking } = prompt
  const asked = {
    model,
    json,
    seed,
    maxTokens,
    tools,
    toolChoice,
    format,
    stop,
    logprobs,
    builtIns,
    thinking,
  }
  return makeId(JSON.stringify({ asked, choices, at }))
}

/** A quarter of the bytes of the JSON, rounded up. */
export function countPromptTokens(json: string): number {
  return Math.ceil(Buffer.byteLength(json) / BYTES_PER_PROMPT_TOKEN)
}

function writeChoice(prompt: Prompt, directives: Directives, seed: number): Choice {
  const random = makeSeededRandom(seed)
  let budget = prompt.maxTokens ?? Number.POSITIVE_INFINITY
  const wantedReasoning = directives.reasoning ?? (prompt.thinking === 'off' ? 0 : DEFAULT_REASONING_TOKENS)
  const reasoningTokens = Math.min(wantedReasoning, budget)
  const isShown = directives.reasoning_text ?? prompt.thinking === 'shown'
  const reasoning = isShown ? drawTokens(random, reasoningTokens) : []
  budget -= reasoningTokens

  const wantedCalls = writeToolCalls(prompt, directives, random)
  const { text: wantedText, stopSequence } = untilStop(
    wantedCalls.length > 0 ? [] : writeText(prompt, directives, random),
    prompt.stop,
  )
  const wanted = wantedText.length + sum(wantedCalls.map(tokensOfCall))
  const complete = wanted <= budget && reasoningTokens === wantedReasoning

  const text = complete ? wantedText : wantedText.slice(0, budget)
  const toolCalls = complete ? wantedCalls : firstTokensOfCalls(wantedCalls, budget)
  return {
    reasoning,
    reasoningTokens,
    text,
    logprobs:
      prompt.logprobs === null
        ? null
        : writeLogprobs(text, prompt.logprobs, makeSeededRandom(seed ^ LOGPROB_SEED)),
    toolCalls,
    ...writeBuiltIns(prompt, directives, makeSeededRandom(seed ^ BUILT_IN_SEED)),
    stopSequence: complete ? stopSequence : null,
    finish: complete ? (toolCalls.length > 0 ? 'tool_calls' : 'stop') : 'length',
    tokens: reasoningTokens + text.length + sum(toolCalls.map(tokensOfCall)),
  }
}

function writeBuiltIns(prompt: Prompt, directives: Directives, random: Random) {
  const times = (tool: BuiltInTool, directed: number | undefined) =>
    prompt.builtIns.includes(tool) ? (directed ?? (isBuiltInCalled(prompt, tool) ? 1 : 0)) : 0
  return {
    searches: writeSearches(times('web_search', directives.searches), random),
    pictures: writePictures(times('image_generation', directives.images), random),
  }
}

/** Decides if no directive says how often. */
function isBuiltInCalled({ toolChoice, tools }: Prompt, tool: BuiltInTool): boolean {
  if (typeof toolChoice === 'object') return toolChoice.name === tool
  return toolChoice === 'auto' || (toolChoice === 'required' && tools.length === 0)
}

function writeText(prompt: Prompt, directives: Directives, random: Random): string[] {
  if (directives.text !== undefined) return tokensOfLiteral(directives.text)
  if (directives.talk === true && directives.tokens === undefined && prompt.format === 'text')
    return tokensOfLiteral(introduce(prompt.asked))
  const count = directives.tokens ?? DEFAULT_TOKENS
  if (prompt.format === 'text') return drawTokens(random, count)
  if (prompt.format !== 'json') return tokensOfJson(JSON.stringify(sampleJson(prompt.format.schema, random)))
  return count < 2 ? ['{}'] : ['{"answer":"', ...drawTokens(random, count - 2), '"}']
}

/** Says what answers, and repeats what it was asked. */
function introduce(asked: string): string {
  const isLong = asked.length > MAX_QUOTED_CHARACTERS
  const quoted = isLong ? `${asked.slice(0, MAX_QUOTED_CHARACTERS).trimEnd()} …` : asked
  const question = asked === '' ? 'You sent no text.' : `You asked: “${quoted}”`
  return `Hello! I am a simulated model of Tollgate's demonstration. ${question} A real model would answer here: connect a provider in tollgate.yaml.`
}

function writeToolCalls(prompt: Prompt, directives: Directives, random: Random): ToolCall[] {
  const tools = callableTools(prompt)
  const named = directives.calls?.flatMap(([name, input]) => {
    const tool = tools.find((one) => one.name === name)
    return tool === undefined ? [] : [{ tool, pieces: tokensOfJson(JSON.stringify(input)) }]
  })
  if (named !== undefined)
    return named.map((call) => ({ ...call, id: makeHexadecimalId(random), name: call.tool.name }))
  const forced = prompt.toolChoice === 'auto' || prompt.toolChoice === 'none' ? 0 : 1
  const count = tools.length === 0 ? 0 : (directives.tool_calls ?? forced)
  return Array.from({ length: count }, (_, index) => {
    const tool = tools[index % tools.length] as FunctionTool
    const pieces =
      tool.isCustom === true
        ? drawTokens(random, CUSTOM_INPUT_TOKENS)
        : tokensOfJson(JSON.stringify(sampleJson(tool.schema ?? {}, random)))
    return { id: makeHexadecimalId(random), tool, name: tool.name, pieces }
  })
}

function callableTools(prompt: Prompt): readonly FunctionTool[] {
  const choice = prompt.toolChoice
  if (choice === 'none') return []
  return typeof choice === 'object' ? prompt.tools.filter((tool) => tool.name === choice.name) : prompt.tools
}

function tokensOfCall(call: ToolCall): number {
  return 1 + call.pieces.length
}

function firstTokensOfCalls(calls: readonly ToolCall[], tokens: number): ToolCall[] {
  let left = tokens
  const kept: ToolCall[] = []
  for (const call of calls) {
    if (left < 1) break
    kept.push({ ...call, pieces: call.pieces.slice(0, left - 1) })
    left -= tokensOfCall(call)
  }
  return kept
}

/** Returns the reasoning tokens that are counted but not shown. */
export const countHiddenTokens = ({ choices }: Script): number =>
  sum(choices.map(({ reasoning, reasoningTokens }) => reasoningTokens - reasoning.length))

/** Yields one piece of each choice in turn, until there are no more. */
export function* inTurn<Piece>(
  choices: readonly Iterable<Piece>[],
): Iterable<readonly [index: number, piece: Piece]> {
  let speaking = choices.map((pieces, index) => ({ index, pieces: pieces[Symbol.iterator]() }))
  while (speaking.length > 0) {
    const stillSpeaking: typeof speaking = []
    for (const speaker of speaking) {
      const next = speaker.pieces.next()
      if (next.done === true) continue
      stillSpeaking.push(speaker)
      yield [speaker.index, next.value]
    }
    speaking = stillSpeaking
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

type StoppedText = {
  /** The last token may be cut. */
  readonly text: readonly string[]
  /** The sequence that ended it; null if the text has none. */
  readonly stopSequence: string | null
}

/** Cuts a text before the stop sequence that is complete first; of two that end together, the longer. */
function untilStop(tokens: readonly string[], stop: readonly string[]): StoppedText {
  const whole = stop.length === 0 ? '' : tokens.join('')
  const [first] = stop
    .filter((sequence) => sequence !== '' && whole.includes(sequence))
    .map((sequence) => ({ sequence, start: whole.indexOf(sequence) }))
    .toSorted((a, b) => a.start + a.sequence.length - b.start - b.sequence.length || a.start - b.start)
  if (first === undefined) return { text: tokens, stopSequence: null }
  return { text: firstCharacters(tokens, first.start), stopSequence: first.sequence }
}

function firstCharacters(tokens: readonly string[], count: number): string[] {
  const kept: string[] = []
  let left = count
  for (const token of tokens) {
    if (left <= 0) break
    kept.push(token.slice(0, left))
    left -= token.length
  }
  return kept
}
