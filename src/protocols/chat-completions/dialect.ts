/**
 * The chat-completions dialect: reading a client's request, and the three changes a native upstream sees.
 * See docs/api-rules.md, "Chat protocols" and "Protocols and translation".
 */
import {
  type ChatCompletionsRequest,
  chatCompletionsRequest,
} from '../../../schemas/chat/chat-completions.ts'
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import { printNumber, printText } from '../../core/call-log/detail-text.ts'
import { scanFields } from '../../core/json/scanner/tape.ts'
import {
  applySplices,
  assignment,
  type FieldSpan,
  isSet,
  removal,
  type Splice,
} from '../../core/json/splice.ts'
import type { ChatCall, Dialect, EncodeOptions, ProtocolAdapter } from '../dialect.ts'
import { readJsonFields } from '../request/client-json.ts'
import { readConversationKey } from '../request/conversation-key.ts'
import { PREDICTION, readServiceTier, withoutForeignFields } from '../request/foreign-fields.ts'
import { CHAT_COMPLETIONS_NAMES } from '../request/known-names.ts'
import { findLinkedParts } from '../request/linked-parts.ts'
import { promptFieldBytes } from '../request/prompt-fields.ts'
import { choicePiece, samplingSettings, stopPiece } from '../request/settings.ts'
import { readThinking } from '../request/thinking-tokens.ts'
import { listServerTools } from '../request/tools.ts'
import { COMMENT } from '../sse/comment.ts'
import { AssembledCompletion } from './assembled.ts'
import {
  type ChangedFields,
  type ChatSettings,
  type ReadChatRequest,
  readFastPathRequest,
} from './fast-path-request.ts'
import { isLegacy } from './legacy-functions.ts'
import { ChatCompletionsMeter } from './meter.ts'
import { completionAsStream, WholeResponse } from './whole.ts'

/** The client's body, byte for byte, and the places of its fields. Needed until an upstream has answered. */
export interface RequestSource {
  readonly body: Buffer
  readonly fields: ChangedFields
  /** Index of the object's opening brace. */
  readonly open: number
  readonly request: Pick<ChatSettings, 'stream_options'>
  /** It offers only legacy functions. */
  readonly isLegacy: boolean
}

/** Returns the source of a call that this dialect has read. */
export const getSource = (call: ChatCall): RequestSource => call.source as RequestSource

/** A chat-completions request as the pipeline knows it. */
export interface ChatCompletionsCall extends ChatCall {
  /** True when the client requested the usage chunk itself. */
  readonly wantsUsage: boolean
  readonly source: RequestSource
}

/**
 * Returns the larger of two limits. The limit has two names: where both are given, upstreams differ in the one that
 * they obey.
 */
const takeLarger = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.max(a, b)

/** Throws `invalid_request` with a message that names the field. */
export function readChatCall(body: Buffer): ChatCompletionsCall {
  return toCall(body, readFastPathRequest(body) ?? readByContract(body))
}

const contract = withoutForeignFields('chat-completions', chatCompletionsRequest)

/** @throws Failure `invalid_request` with a message that names the field, `tool_not_supported` */
export function readByContract(body: Buffer): ReadChatRequest {
  const { request, fields, open } = readJsonFields(contract, body, CHAT_COMPLETIONS_NAMES)
  const { start, end } = fields.get('messages')!
  return {
    settings: request,
    messages: request.messages.length,
    tools: request.tools?.length ?? null,
    builtInTools: builtInTools(request),
    conversationBytes: end - start,
    promptBytes: end - start + promptFieldBytes('chat-completions', body, fields, request),
    ...readThinking(request),
    links: findLinkedParts(request.messages, request.tools ?? []),
    ...readServiceTier('chat-completions', request),
    isLegacy: isLegacy(request.functions, request.tools),
    fields: findChangedFields(fields),
    open,
  }
}

const findChangedFields = (fields: ReadonlyMap<string, FieldSpan>): ChangedFields => ({
  model: fields.get('model'),
  max_tokens: fields.get('max_tokens'),
  max_completion_tokens: fields.get('max_completion_tokens'),
  stream_options: fields.get('stream_options'),
  usage: fields.get('usage'),
  prediction: fields.get(PREDICTION),
})

/** Returns the built-in tools. Options of a search request one too. */
function builtInTools({ tools, web_search_options }: ChatCompletionsRequest): readonly ServerTool[] {
  const types = (tools ?? []).map(({ type }) => type)
  return listServerTools('chat-completions', web_search_options == null ? types : [...types, 'web_search'])
}

export function toCall(body: Buffer, read: ReadChatRequest): ChatCompletionsCall {
  const { settings, fields, open } = read
  const wantsCost = settings.usage?.include === true
  return {
    model: settings.model,
    stream: settings.stream === true,
    wantsUsage: wantsCost || settings.stream_options?.include_usage === true,
    wantsCost,
    outputLimit: takeLarger(settings.max_completion_tokens ?? null, settings.max_tokens ?? null),
    choices: settings.n ?? 1,
    conversationBytes: read.conversationBytes,
    promptBytes: read.promptBytes,
    thinkingTokens: read.thinkingTokens,
    links: read.links,
    builtInTools: read.builtInTools,
    toolCallLimit: null,
    serviceTier: read.serviceTier,
    conversationKey: readConversationKey(settings),
    settings: printSettings(read),
    // No other part of the parsed request is kept.
    source: {
      body,
      fields,
      open,
      isLegacy: read.isLegacy,
      request: { stream_options: settings.stream_options },
    },
  }
}

function printSettings({ settings, messages, tools }: ReadChatRequest): string {
  const { tool_choice, response_format, reasoning_effort } = settings
  return (
    printNumber('messages', messages) +
    samplingSettings(settings) +
    printNumber('choices', settings.n) +
    printNumber('seed', settings.seed) +
    stopPiece(settings.stop) +
    printText('reasoning_effort', reasoning_effort) +
    printNumber('tools', tools) +
    choicePiece(tool_choice) +
    (response_format == null ? '' : printText('response_format', response_format.type))
  )
}

export type NativeOptions = Omit<EncodeOptions, 'fetched'>

const ASK_USAGE = '{"include_usage":true}'

/** Adds the request for usage to the client's stream options; all others stay unchanged. */
function withUsageRequested(body: Buffer, { start, end }: FieldSpan): string {
  const options = body.subarray(start, end)
  const { fields, open } = scanFields(options)
  if (fields.size === 0) return ASK_USAGE
  const asking = assignment('include_usage', 'true', fields.get('include_usage'), open)
  return applySplices(options, [asking]).toString('utf8')
}

/**
 * Returns the request with its output limit only in `field`, where it has both: upstreams differ in the one that they
 * obey.
 */
function withOneLimit({ source, outputLimit }: ChatCompletionsCall, field: LimitField): RequestSource {
  const { body, fields } = source
  const here = fields[field]
  const there = fields[OTHER_FIELD[field]]
  if (here === undefined || !isSet(body, there)) return source
  const limit = { start: here.start, end: here.end, text: String(outputLimit) }
  const changed = applySplices(body, [limit, removal(body, there)])
  const { fields: found, open } = scanFields(changed)
  return { ...source, body: changed, open, fields: findChangedFields(found) }
}

/** Returns the request without a field. */
function withoutField(source: RequestSource, name: keyof ChangedFields): RequestSource {
  const span = source.fields[name]
  if (!isSet(source.body, span)) return source
  const body = applySplices(source.body, [removal(source.body, span)])
  const { fields, open } = scanFields(body)
  return { ...source, body, open, fields: findChangedFields(fields) }
}

type LimitField = NonNullable<NativeOptions['outputLimitField']>
/** Field for a limit that the client left out, on a channel without a configured field. */
const USUAL_LIMIT_FIELD: LimitField = 'max_tokens'
const OTHER_FIELD: Readonly<Record<LimitField, LimitField>> = {
  max_tokens: 'max_completion_tokens',
  max_completion_tokens: 'max_tokens',
}

/**
 * Returns the body for a native upstream: the client's bytes, in which only model id, output limit, usage options and
 * prediction change. The limit goes in the field that the upstream obeys, where its channel names one: it would ignore
 * the other one, and generate more than was admitted.
 */
export function wireBody(call: ChatCompletionsCall, options: NativeOptions): Buffer {
  const { outputLimitField } = options
  const limited = outputLimitField === null ? call.source : withOneLimit(call, outputLimitField)
  // The gateway itself answers the client that asks for the charge.
  const withoutUsage = call.wantsCost === true ? withoutField(limited, 'usage') : limited
  const source = withoutField(withoutUsage, PREDICTION)
  const splices: Splice[] = []
  const put = (name: keyof ChangedFields, json: string) =>
    splices.push(assignment(name, json, source.fields[name], source.open))
  if (options.upstreamModel !== call.model) put('model', JSON.stringify(options.upstreamModel))
  if (call.outputLimit === null && options.outputCeiling !== null)
    put(outputLimitField ?? USUAL_LIMIT_FIELD, String(options.outputCeiling))
  const limitElsewhere = outputLimitField === null ? undefined : source.fields[OTHER_FIELD[outputLimitField]]
  if (isSet(source.body, limitElsewhere)) {
    const { nameStart, start } = limitElsewhere
    splices.push({ start: nameStart, end: start, text: `"${outputLimitField}":` })
  }
  const streamOptions = source.fields.stream_options
  if (call.stream && options.askUsage && source.request.stream_options?.include_usage !== true)
    put('stream_options', streamOptions ? withUsageRequested(source.body, streamOptions) : ASK_USAGE)
  if (streamOptions && !options.askUsage) splices.push(removal(source.body, streamOptions))
  return applySplices(source.body, splices)
}

export const chatCompletions: Dialect = {
  protocol: 'chat-completions',
  read: ({ body }) => readChatCall(body),
}

export const chatCompletionsNative: ProtocolAdapter = {
  from: 'chat-completions',
  to: 'chat-completions',
  streamContentType: () => null,
  keepAlive: () => COMMENT,
  urlsToFetch: () => [],
  encodeRequest(call, options) {
    const { body, fields } = getSource(call)
    const leftOut = isSet(body, fields.prediction) ? [PREDICTION] : []
    return {
      body: wireBody(call as ChatCompletionsCall, options),
      dropped: [...(call.leftOut ?? []), ...leftOut],
    }
  },
  openStream: (call, provider) => {
    const { wantsUsage, choices } = call as ChatCompletionsCall
    return new ChatCompletionsMeter({ withholdUsage: !wantsUsage, provider, choices })
  },
  readWhole: (_call, body, provider) => {
    const metered = new WholeResponse(body, provider)
    return { body, metered, isAnswer: metered.isAnswer }
  },
  wholeAsStream: (call, body) => completionAsStream(body, (call as ChatCompletionsCall).wantsUsage),
  assembleStream: () => new AssembledCompletion(),
}
