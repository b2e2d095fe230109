/**
 * The generate-content dialect: reading a client's request, and the one change a native upstream sees.
 * See docs/api-rules.md, "Chat protocols" and "Protocols and translation".
 */

import {
  type GenerateContentRequest,
  generateContentRequest,
  SNAKE_CASE_NAMES,
} from '../../../schemas/chat/generate-content.ts'
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { type ScannedFields, scanFields } from '../../core/json/scanner/tape.ts'
import { applySplices, type FieldSpan, type Splice } from '../../core/json/splice.ts'
import { withoutCollection } from '../../core/routing/generate-model-name.ts'
import { answerFields } from '../answer/content.ts'
import type { ChatCall, ClientRequest, Dialect, ProtocolAdapter } from '../dialect.ts'
import { invalidField } from '../request/client-json.ts'
import { RequestReader } from '../request/fast-path-lists.ts'
import { readServiceTier } from '../request/foreign-fields.ts'
import { GENERATE_CONTENT_NAMES } from '../request/known-names.ts'
import { findFileParts } from '../request/linked-parts.ts'
import { bytesOfField, promptFieldBytes } from '../request/prompt-fields.ts'
import { readThinking } from '../request/thinking-tokens.ts'
import { listServerTools } from '../request/tools.ts'
import { fastPathContents } from './fast-path-items.ts'
import { type Framing, GenerateContentMeter, readWholeAnswer } from './meter.ts'
import { generateContentSettings } from './settings.ts'

/** The client's body, byte for byte, and the place for an output limit. */
interface GenerateContentSource {
  readonly body: Buffer
  readonly framing: Framing
  /** Index of the request's opening brace. */
  readonly open: number
  readonly config: FieldSpan | null
  /** Within the config, a limit that is null. */
  readonly nullLimit: FieldSpan | null
  readonly isConfigEmpty: boolean
}

/** Returns the fields of the config, by their places in the body. */
function configFields(body: Buffer, { start, end }: FieldSpan): ReadonlyMap<string, FieldSpan> {
  const { fields } = scanFields(body.subarray(start, end))
  const moved = [...fields].map(
    ([name, span]) =>
      [
        name,
        { nameStart: span.nameStart + start, start: span.start + start, end: span.end + start },
      ] as const,
  )
  return new Map(moved)
}

/**
 * Returns the one field with either of its names; refuses both, because two readers could each use another of them.
 */
function eitherName(
  fields: ReadonlyMap<string, FieldSpan>,
  name: keyof typeof SNAKE_CASE_NAMES,
  path: string,
): FieldSpan | null {
  const snake = SNAKE_CASE_NAMES[name]
  if (fields.has(name) && fields.has(snake))
    throw invalidField(`${path}${snake}`, `it is given together with '${name}', which is the same field`)
  return fields.get(name) ?? fields.get(snake) ?? null
}

const CONFIG_PATH = 'generationConfig.'
const OPEN_BRACE = 0x7b

/** Fields of the config that hold the schema of the answer, which is part of the prompt. */
const SCHEMAS = ['responseSchema', 'response_schema', 'responseJsonSchema', 'response_json_schema'] as const

const NO_FIELDS: ReadonlyMap<string, FieldSpan> = new Map()

function readSource(
  body: Buffer,
  { open, fields }: ScannedFields,
  framing: Framing,
): { source: GenerateContentSource } & Pick<ChatCall, 'conversationBytes' | 'promptBytes'> {
  const contents = fields.get('contents')!
  const instruction = eitherName(fields, 'systemInstruction', '')
  const config = eitherName(fields, 'generationConfig', '')
  const isObject = config !== null && body[config.start] === OPEN_BRACE
  const settings = isObject ? configFields(body, config) : NO_FIELDS
  eitherName(settings, 'candidateCount', CONFIG_PATH)
  const conversationBytes = contents.end - contents.start + bytesOfField(body, instruction)
  return {
    conversationBytes,
    source: {
      body,
      framing,
      open,
      config,
      nullLimit: eitherName(settings, 'maxOutputTokens', CONFIG_PATH),
      isConfigEmpty: settings.size === 0,
    },
    promptBytes: SCHEMAS.reduce(
      (bytes, name) => bytes + bytesOfField(body, settings.get(name)),
      conversationBytes + promptFieldBytes('generate-content', body, fields, {}),
    ),
  }
}

/** Returns the built-in tools. A tool's name is the name of the field with its settings. */
function builtInTools({ tools }: GenerateContentRequest): readonly ServerTool[] {
  const offered = (tools ?? []).flatMap((tool) => Object.entries(tool))
  return listServerTools(
    'generate-content',
    offered.filter(([, settings]) => settings != null).map(([name]) => name),
  )
}

const reader = new RequestReader('generate-content', generateContentRequest, GENERATE_CONTENT_NAMES, {
  contents: fastPathContents,
})

const readFraming = (query: string): Framing =>
  new URLSearchParams(query).get('alt') === 'sse' ? 'sse' : 'array'

/** Returns the model that the path names. @throws Failure `not_found` for a collection without a name */
export function readModel({ model = '' }: ClientRequest): string {
  const name = withoutCollection(model)
  if (name === '') throw new Failure('not_found', 'There is nothing at this path.')
  return name
}

function readCall(asked: ClientRequest, isStream: boolean): ChatCall {
  const { query, body } = asked
  const model = readModel(asked)
  const read = reader.read(body)
  const { request } = read
  const named = request.model ?? model
  if (named !== model && named !== `models/${model}`)
    throw invalidField('model', 'the path names another model; leave it out')
  const { source, conversationBytes, promptBytes } = readSource(body, read, readFraming(query))
  const config = request.generationConfig ?? request.generation_config
  return {
    model,
    stream: isStream,
    outputLimit: config?.maxOutputTokens ?? config?.max_output_tokens ?? null,
    choices: config?.candidateCount ?? config?.candidate_count ?? 1,
    conversationBytes,
    promptBytes,
    ...readThinking(config ?? {}),
    links: findFileParts([...request.contents, request.systemInstruction, request.system_instruction]),
    builtInTools: builtInTools(request),
    toolCallLimit: null,
    ...readServiceTier('generate-content', request),
    settings: generateContentSettings(request, read.counts.contents),
    source,
  }
}

export const generateContentDialect: Dialect = {
  protocol: 'generate-content',
  read: (request) => readCall(request, false),
}
export const generateContentStream: Dialect = {
  protocol: 'generate-content',
  read: (request) => readCall(request, true),
}

/** Returns the raised limit as a splice of the client's config, or as a new one. */
function raiseLimit(source: GenerateContentSource, limit: number): Splice {
  const { config, nullLimit, isConfigEmpty, open, body } = source
  if (nullLimit !== null) return { start: nullLimit.start, end: nullLimit.end, text: String(limit) }
  const field = `"maxOutputTokens":${limit}`
  if (config === null) return { start: open + 1, end: open + 1, text: `"generationConfig":{${field}},` }
  if (body[config.start] !== OPEN_BRACE) return { start: config.start, end: config.end, text: `{${field}}` }
  const inside = config.start + 1
  return { start: inside, end: inside, text: isConfigEmpty ? field : `${field},` }
}

/** Returns the source of a call that this dialect has read. */
export const getSource = (call: ChatCall): GenerateContentSource => call.source as GenerateContentSource

/** The upstream's path has the model, its query the framing, and usage comes unrequested. */
export const generateContentNative: ProtocolAdapter = {
  from: 'generate-content',
  to: 'generate-content',
  urlsToFetch: () => [],
  encodeRequest(call, { outputCeiling }) {
    const source = getSource(call)
    const isRaised = call.outputLimit === null && outputCeiling !== null
    return {
      body: isRaised ? applySplices(source.body, [raiseLimit(source, outputCeiling)]) : source.body,
      dropped: [],
    }
  },
  // Without `alt=sse` a stream is one JSON array that comes in pieces.
  streamTypes: (call) => (getSource(call).framing === 'array' ? ['application/json'] : []),
  streamContentType: () => null,
  keepAlive: () => null,
  openStream: (call) => new GenerateContentMeter(getSource(call).framing, call.choices),
  readWhole: (_call, body) => readWholeAnswer(body),
  wholeAsStream: (_call, body) => Buffer.from(`data: ${JSON.stringify(answerFields(body))}\n\n`),
}
