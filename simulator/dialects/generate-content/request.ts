/** Reads a request of the generate-content dialect, and refuses what the vendor would refuse. */

import { MAX_TOP_LOGPROBS } from '../../answers/logprobs.ts'
import type { Prompt } from '../../answers/script.ts'
import { isObject, parseJsonObject } from '../../dialect.ts'
import { findDirectives, readText } from '../../directives/grammar.ts'
import { checkSchema, invalid, knownFields, readList } from './schema.ts'
import { readToolConfig, readTools } from './tools.ts'
import { checkContents, checkSystemInstruction } from './turns.ts'

const MAX_STOP_SEQUENCES = 5
const MAX_CANDIDATES = 8
const MAX_TEMPERATURE = 2
const FIELDS = [
  ...['model', 'contents', 'systemInstruction', 'tools', 'toolConfig', 'safetySettings', 'generationConfig'],
  ...['cachedContent', 'serviceTier', 'store', 'simulate'],
]
const COUNT_FIELDS = ['contents', 'generateContentRequest']
const CONFIG_FIELDS = [
  ...['stopSequences', 'responseMimeType', 'responseSchema', 'responseJsonSchema', 'responseModalities'],
  ...['candidateCount', 'maxOutputTokens', 'temperature', 'topP', 'topK', 'seed', 'presencePenalty'],
  ...['frequencyPenalty', 'responseLogprobs', 'logprobs', 'enableEnhancedCivicAnswers', 'speechConfig'],
  ...['thinkingConfig', 'imageConfig', 'mediaResolution', 'routingConfig', 'audioTimestamp'],
]

export type GenerateContentRequest = {
  readonly prompt: Omit<Prompt, 'model'>
  readonly messageDirectives: string | null
  readonly bodyDirectives: unknown
}

/** `model` is the name in the path, without directives. @throws {SimulatedFailure} 400 */
export const readGenerateContent = (bytes: Buffer, model: string): GenerateContentRequest =>
  readFields(knownFields(parseJsonObject(bytes), '', FIELDS), model)

/**
 * What to count: only contents, or a whole request that names the model of the path, `name`, once more.
 * @throws {SimulatedFailure} 400
 */
export function readCounted(bytes: Buffer, name: string, model: string): GenerateContentRequest {
  const { contents, generateContentRequest: whole } = knownFields(parseJsonObject(bytes), '', COUNT_FIELDS)
  if ((contents === undefined) === (whole === undefined))
    throw invalid('Exactly one of contents and generate_content_request must be set.')
  if (whole === undefined) return readFields({ contents }, model)
  const body = knownFields(whole, 'generate_content_request', FIELDS)
  if (body.model !== `models/${name}`)
    throw invalid('generate_content_request.model is not the model counted with.')
  return readFields(body, model)
}

function readFields(body: Record<string, unknown>, model: string): GenerateContentRequest {
  checkContents(body.contents, model)
  checkSystemInstruction(body.systemInstruction)
  const tools = readTools(body.tools)
  const { toolChoice, callable } = readToolConfig(body.toolConfig, tools)
  const config = knownFields(body.generationConfig ?? {}, 'generation_config', CONFIG_FIELDS)
  const draws = readList(config.responseModalities, 'generation_config.response_modalities').includes('IMAGE')
  const last = (body.contents as unknown[]).at(-1)
  checkSampling(config)
  return {
    prompt: {
      asked: readText(isObject(last) ? last.parts : null),
      json: readJson(body),
      seed: typeof config.seed === 'number' ? config.seed : null,
      maxTokens: wholeNumber(config, 'maxOutputTokens', Number.MAX_SAFE_INTEGER),
      choices: wholeNumber(config, 'candidateCount', MAX_CANDIDATES) ?? 1,
      tools: callable,
      toolChoice,
      format: readFormat(config),
      logprobs: readLogprobs(config),
      stop: (config.stopSequences ?? []) as readonly string[],
      builtIns: [
        ...(tools.searches ? (['web_search'] as const) : []),
        ...(draws ? (['image_generation'] as const) : []),
      ],
      thinking: readThinking(config.thinkingConfig),
    },
    messageDirectives: findDirectives(
      body.contents as unknown[],
      (turn) => isObject(turn) && turn.role === 'model',
    ),
    bodyDirectives: body.simulate,
  }
}

function readJson({ contents, systemInstruction }: Record<string, unknown>): string {
  const system = systemInstruction === undefined ? '' : JSON.stringify(systemInstruction)
  return JSON.stringify(contents) + system
}

function wholeNumber(config: Record<string, unknown>, field: string, max: number, min = 1): number | null {
  const value = config[field]
  if (value === undefined || value === null) return null
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  throw invalid(
    `* GenerateContentRequest.generation_config.${field}: must be in the range [${min}, ${max}].\n`,
  )
}

function readLogprobs(config: Record<string, unknown>): number | null {
  const top = wholeNumber(config, 'logprobs', MAX_TOP_LOGPROBS, 0) ?? 0
  return config.responseLogprobs === true ? top : null
}

function checkSampling(config: Record<string, unknown>): void {
  const { temperature, topP } = config
  if (typeof temperature === 'number' && (temperature < 0 || temperature > MAX_TEMPERATURE))
    throw invalid(
      `* GenerateContentRequest.generation_config.temperature: must be in the range [0.0, 2.0].\n`,
    )
  if (typeof topP === 'number' && (topP < 0 || topP > 1))
    throw invalid(`* GenerateContentRequest.generation_config.top_p: must be in the range [0.0, 1.0].\n`)
  const stops = readList(config.stopSequences, 'generation_config.stop_sequences')
  if (stops.length > MAX_STOP_SEQUENCES)
    throw invalid(`The number of stop sequences must not exceed ${MAX_STOP_SEQUENCES}.`)
  for (const [index, stop] of stops.entries()) {
    if (typeof stop !== 'string' || stop === '')
      throw invalid(
        `* GenerateContentRequest.generation_config.stop_sequences[${index}]: must not be empty.\n`,
      )
  }
}

function readFormat(config: Record<string, unknown>): Prompt['format'] {
  const { responseMimeType, responseSchema, responseJsonSchema } = config
  const isJson = responseMimeType === 'application/json'
  if (responseSchema !== undefined && responseJsonSchema !== undefined)
    throw invalid('response_schema and response_json_schema are mutually exclusive.')
  if (responseSchema !== undefined) checkSchema(responseSchema, 'generation_config.response_schema')
  const schema = responseSchema ?? responseJsonSchema
  if (schema !== undefined && !isJson)
    throw invalid('A response schema is only supported with response_mime_type application/json.')
  if (schema !== undefined) return { schema }
  return isJson ? 'json' : 'text'
}

function readThinking(value: unknown): Prompt['thinking'] {
  if (value === undefined) return 'off'
  const { includeThoughts, thinkingBudget, thinkingLevel } = knownFields(
    value,
    'generation_config.thinking_config',
    ['includeThoughts', 'thinkingBudget', 'thinkingLevel'],
  )
  if (thinkingBudget !== undefined && thinkingLevel !== undefined)
    throw invalid('You can only set only one of thinking budget and thinking level.')
  if (thinkingBudget === 0) return 'off'
  return includeThoughts === true ? 'shown' : 'hidden'
}
