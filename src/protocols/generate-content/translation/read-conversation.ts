/**
 * Reads a request of the generate-content protocol into the canonical conversation. What that cannot hold is named. See
 * docs/translation.md, "The request".
 */
import type {
  Conversation,
  ConversationSettings,
  ConversationTurn,
  FileSource,
  GivenFile,
  OfferedTool,
  ReasoningDepth,
  Seal,
  ToolChoice,
  TurnPart,
} from '../../../../schemas/chat/conversation.ts'
import { toCamelFields } from '../../../core/json/snake-case.ts'
import { isObject, type LooseObject, toFields, toList, toText } from '../../loose.ts'
import { type DroppedFields, nameOthers } from '../../translate/dropped-fields.ts'
import { isLink, readLink } from '../../translate/linked-files.ts'
import { readSeal } from '../../translate/seal.ts'
import { readNumber } from '../../translate/settings.ts'

const HELD: ReadonlySet<string> = new Set([
  ...['model', 'contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'labels'],
])
const HELD_SETTINGS: ReadonlySet<string> = new Set([
  ...['maxOutputTokens', 'candidateCount', 'temperature', 'topP', 'topK', 'stopSequences', 'seed'],
  ...['presencePenalty', 'frequencyPenalty', 'responseMimeType', 'responseSchema', 'responseJsonSchema'],
  ...['thinkingConfig', 'responseLogprobs', 'logprobs', 'responseModalities'],
])

/** Returns the fields of an object by the vendor's names: clients may write them in snake case. */
const readFields = (value: unknown): LooseObject => toCamelFields(toFields(value))
/** The vendor takes one object for a list of one. */
const readItems = (value: unknown): readonly LooseObject[] =>
  (Array.isArray(value) ? value : value == null ? [] : [value]).map(readFields)

/**
 * @param request the client's request, parsed and valid
 * @throws Failure `invalid_request` with a message that names the field
 */
export function readGenerateContentConversation(request: unknown, dropped: DroppedFields): Conversation {
  const given = readFields(request)
  const config = readFields(given.generationConfig)
  nameOthers(given, HELD, dropped)
  nameOthers(config, HELD_SETTINGS, dropped, 'generationConfig.')
  const reader = new ContentReader(dropped)
  const instructions = reader.parts(given.systemInstruction, 'systemInstruction')
  return {
    instructions: instructions.filter((part) => part.type === 'text'),
    turns: readItems(given.contents).map((content, index) => reader.turn(content, `contents[${index}]`)),
    tools: readItems(given.tools).flatMap((tool, index) => readTools(tool, `tools[${index}]`)),
    toolChoice: readChoice(given.toolConfig),
    isParallel: true,
    settings: { ...readSettings(config, dropped), metadata: readLabels(given.labels) },
  }
}

const readLabels = (labels: unknown): ConversationSettings['metadata'] =>
  Object.keys(toFields(labels)).length === 0 ? undefined : { field: 'labels', value: toFields(labels) }

/** The protocol's calls may have no ids: an answer belongs to the oldest open call of its name. */
class ContentReader {
  readonly #dropped: DroppedFields
  /** Ids of calls without an answer, by name. */
  readonly #open = new Map<string, string[]>()
  #calls = 0

  constructor(dropped: DroppedFields) {
    this.#dropped = dropped
  }

  turn(content: LooseObject, path: string): ConversationTurn {
    return { role: content.role === 'model' ? 'assistant' : 'user', parts: this.parts(content, path) }
  }

  parts(content: unknown, path: string): TurnPart[] {
    if (typeof content === 'string') return [{ type: 'text', text: content }]
    return readItems(readFields(content).parts).flatMap((part, index) =>
      this.#part(part, `${path}.parts[${index}]`),
    )
  }

  #part(part: LooseObject, path: string): TurnPart[] {
    const seal = readSeal(toText(part.thoughtSignature), 'generate-content')
    // The proof of another vendor belongs to the reasoning before this part.
    const foreign = seal !== null && seal.protocol !== 'generate-content' ? seal : null
    const own = foreign === null ? seal : null
    const proof: TurnPart[] =
      foreign === null ? [] : [{ type: 'reasoning', text: foreign.text ?? '', seal: foreign }]
    return [...proof, ...this.#content(part, own, path)]
  }

  #content(part: LooseObject, seal: Seal | null, path: string): TurnPart[] {
    const text = toText(part.text)
    if (part.thought === true) return text === '' ? [] : [{ type: 'reasoning', text, seal }]
    if (isObject(part.functionCall)) return [this.#call(readFields(part.functionCall), seal, path)]
    if (isObject(part.functionResponse)) return [this.#response(readFields(part.functionResponse), path)]
    const proof: TurnPart[] = seal === null ? [] : [{ type: 'reasoning', text: '', seal }]
    if (isObject(part.inlineData) || isObject(part.fileData)) return [...proof, readFile(part, path)]
    if (typeof part.text === 'string') return text === '' ? proof : [...proof, { type: 'text', text }]
    const kind = Object.keys(part).find((name) => name !== 'thoughtSignature')
    if (kind !== undefined) this.#dropped.add(kind)
    return proof
  }

  #call(call: LooseObject, seal: Seal | null, path: string): TurnPart {
    const name = toText(call.name)
    const id = toText(call.id) || `call_${this.#calls}`
    this.#calls++
    this.#open.set(name, [...(this.#open.get(name) ?? []), id])
    const input = JSON.stringify(call.args ?? {})
    return { type: 'tool_call', id, name, kind: 'function', input, seal, path: `${path}.functionCall.args` }
  }

  #response(answer: LooseObject, path: string): TurnPart {
    const name = toText(answer.name)
    const open = this.#open.get(name) ?? []
    const given = toText(answer.id)
    const at = Math.max(0, open.indexOf(given))
    const [id = given] = open.splice(at, 1)
    const response = toFields(answer.response)
    const isError = Object.keys(response).length === 1 && typeof response.error === 'string'
    const files = readItems(answer.parts).filter(({ inlineData }) => isObject(inlineData))
    return {
      type: 'tool_result',
      callId: id,
      content: [
        { type: 'text', text: responseText(response) },
        ...files.map((part, index) => readFile(part, `${path}.functionResponse.parts[${index}]`)),
      ],
      isPlain: files.length === 0,
      isError,
      path: `${path}.functionResponse.name`,
    }
  }
}

/** Clients put a text into one of these fields. */
const WRAPPERS: ReadonlySet<string> = new Set(['output', 'result', 'content', 'error'])

/** Any other response is sent as JSON. */
function responseText(response: LooseObject): string {
  const [field, ...others] = Object.keys(response)
  const isWrapped = others.length === 0 && field !== undefined && WRAPPERS.has(field)
  const value = isWrapped ? response[field] : response
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function readFile(part: LooseObject, path: string): GivenFile {
  const inline = readFields(part.inlineData)
  const linked = readFields(part.fileData)
  const isInline = isObject(part.inlineData)
  const mediaType = toText(isInline ? inline.mimeType : linked.mimeType)
  const uri = toText(linked.fileUri)
  const at = `${path}.${isInline ? 'inlineData' : 'fileData.fileUri'}`
  const source: FileSource = isInline
    ? { type: 'inline', mediaType, base64: toText(inline.data) }
    : { type: 'link', url: readLink(uri, at) }
  const [kind] = mediaType.split('/')
  const type = kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file'
  return { type: mediaType === '' && isLink(uri) ? 'file' : type, source, path: at }
}

/** Names of the vendor's search. */
const SEARCHES: ReadonlySet<string> = new Set(['googleSearch', 'googleSearchRetrieval'])

function readTools(tool: LooseObject, path: string): OfferedTool[] {
  return Object.entries(tool).flatMap(([name, settings]): OfferedTool[] => {
    if (settings == null) return []
    if (name === 'functionDeclarations')
      return readItems(settings).map((declared, index) =>
        readDeclaration(declared, `${path}.functionDeclarations[${index}]`),
      )
    if (!SEARCHES.has(name)) return [{ type: 'other', name, given: tool, path }]
    return [
      {
        type: 'web_search',
        allowedDomains: [],
        blockedDomains: toList(toFields(settings).excludeDomains).map(toText),
        location: null,
        contextSize: null,
        maxUses: null,
        given: { type: 'web_search' },
        path,
      },
    ]
  })
}

function readDeclaration(declared: LooseObject, path: string): OfferedTool {
  const schema = declared.parametersJsonSchema ?? declared.parameters
  return {
    type: 'function',
    name: toText(declared.name),
    description: toText(declared.description) || null,
    schema: isObject(schema) ? jsonSchema(schema) : null,
    isStrict: false,
    path,
  }
}

/** Numbers that the vendor's schemas have as texts. */
const NUMBERS: ReadonlySet<string> = new Set([
  ...['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'],
])

/** Returns the JSON Schema of a schema in the vendor's form, with types in upper case; JSON Schema stays as it is. */
function jsonSchema(schema: LooseObject): LooseObject {
  const { nullable, propertyOrdering: _, ...rest } = schema
  const written = Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, schemaField(name, value)]),
  )
  if (nullable !== true) return written
  const { type } = written
  return typeof type === 'string' ? { ...written, type: [type, 'null'] } : written
}

function schemaField(name: string, value: unknown): unknown {
  if (name === 'type' && typeof value === 'string') return value.toLowerCase()
  if (NUMBERS.has(name) && typeof value === 'string') return Number(value)
  if (name === 'properties' || name === '$defs')
    return Object.fromEntries(
      Object.entries(toFields(value)).map(([field, inner]) => [
        field,
        isObject(inner) ? jsonSchema(inner) : inner,
      ]),
    )
  if (name === 'items' && isObject(value)) return jsonSchema(value)
  if ((name === 'anyOf' || name === 'prefixItems') && Array.isArray(value))
    return value.map((inner) => (isObject(inner) ? jsonSchema(inner) : inner))
  return value
}

const CHOICES: Readonly<Record<string, ToolChoice>> = {
  AUTO: 'auto',
  VALIDATED: 'auto',
  ANY: 'required',
  NONE: 'none',
}

function readChoice(config: unknown): Conversation['toolChoice'] {
  const { mode, allowedFunctionNames } = readFields(readFields(config).functionCallingConfig)
  const value = CHOICES[toText(mode)]
  if (value === undefined) return null
  const allowed = toList(allowedFunctionNames).map(toText)
  const field = 'toolConfig'
  if (allowed.length === 0) return { field, value }
  const [only = ''] = allowed
  if (value === 'required' && allowed.length === 1) return { field, value: { name: only } }
  return { field, value: { mode: value === 'required' ? 'required' : 'auto', allowed } }
}

function readSettings(config: LooseObject, dropped: DroppedFields): ConversationSettings {
  const read = (name: string) => readNumber(`generationConfig.${name}`, config[name])
  const stop = toList(config.stopSequences).map(toText)
  const choices = read('candidateCount')
  const modalities = toList(config.responseModalities).map((modality) => toText(modality).toLowerCase())
  return {
    temperature: read('temperature'),
    topP: read('topP'),
    topK: read('topK'),
    stop: stop.length === 0 ? undefined : { field: 'generationConfig.stopSequences', value: stop },
    seed: read('seed'),
    choices: choices?.value === 1 ? undefined : choices,
    presencePenalty: config.presencePenalty === 0 ? undefined : read('presencePenalty'),
    frequencyPenalty: config.frequencyPenalty === 0 ? undefined : read('frequencyPenalty'),
    reasoning: readReasoning(config.thinkingConfig),
    format: readFormat(config, dropped),
    logprobs:
      config.responseLogprobs === true
        ? { field: 'generationConfig.responseLogprobs', value: true }
        : undefined,
    topLogprobs: config.responseLogprobs === true ? read('logprobs') : undefined,
    modalities: modalities.every((modality) => modality === 'text')
      ? undefined
      : { field: 'generationConfig.responseModalities', value: modalities },
  }
}

const DYNAMIC_BUDGET = -1

function readReasoning(value: unknown): ConversationSettings['reasoning'] {
  const { thinkingBudget: budget, thinkingLevel: level, includeThoughts } = readFields(value)
  const isHidden = includeThoughts !== true
  // The vendor's models reason unless told otherwise: the client may only want to see it.
  const usual: ReasoningDepth | null = isHidden ? null : { type: 'adaptive' }
  const depth = readDepth(budget, toText(level).toLowerCase()) ?? usual
  if (depth === null) return undefined
  return { field: 'generationConfig.thinkingConfig', value: { depth, isHidden } }
}

function readDepth(budget: unknown, level: string): ReasoningDepth | null {
  if (level !== '' && level !== 'thinking_level_unspecified') return { type: 'effort', effort: level }
  if (typeof budget !== 'number') return null
  if (budget === 0) return { type: 'off' }
  return budget === DYNAMIC_BUDGET ? { type: 'adaptive' } : { type: 'budget', tokens: budget }
}

const JSON_TYPE = 'application/json'

function readFormat(config: LooseObject, dropped: DroppedFields): ConversationSettings['format'] {
  const { responseMimeType: type, responseSchema, responseJsonSchema } = config
  const schema = responseJsonSchema ?? responseSchema
  const field = 'generationConfig.responseMimeType'
  if (isObject(schema)) {
    const path = `generationConfig.${isObject(responseJsonSchema) ? 'responseJsonSchema' : 'responseSchema'}`
    const value = { type: 'schema', name: null, description: null, isStrict: false, path } as const
    return { field: path, value: { ...value, schema: jsonSchema(schema) } }
  }
  if (type === JSON_TYPE) return { field, value: { type: 'json' } }
  if (type != null && type !== 'text/plain') dropped.add(field)
  return undefined
}
