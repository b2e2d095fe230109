/**
 * The responses dialect: reading a client's request, and the two changes a native upstream sees.
 * See docs/api-rules.md, "Responses" and "Protocols and translation".
 */

import { type ResponsesRequest, responsesRequest } from '../../../schemas/chat/responses.ts'
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import { printNumber, printText } from '../../core/call-log/detail-text.ts'
import { type ScannedFields, scanFields } from '../../core/json/scanner/tape.ts'
import { applySplices, assignment, isSet, removal, type Splice } from '../../core/json/splice.ts'
import type {
  CallState,
  ChatCall,
  ClientRequest,
  Dialect,
  EncodeOptions,
  ProtocolAdapter,
} from '../dialect.ts'
import { toFields, toList, toText } from '../loose.ts'
import { readConversationKey } from '../request/conversation-key.ts'
import { type ReadRequest, RequestReader } from '../request/fast-path-lists.ts'
import { isItemReference, PREDICTION, readServiceTier } from '../request/foreign-fields.ts'
import { RESPONSES_NAMES } from '../request/known-names.ts'
import { findLinkedParts, LINK_FIELDS } from '../request/linked-parts.ts'
import { bytesOfField, promptFieldBytes } from '../request/prompt-fields.ts'
import { choicePiece, samplingSettings } from '../request/settings.ts'
import { readThinking } from '../request/thinking-tokens.ts'
import { isCount, listServerTools } from '../request/tools.ts'
import { COMMENT } from '../sse/comment.ts'
import { fastPathInput, fastPathTools } from './fast-path-items.ts'
import { ResponsesMeter } from './meter.ts'
import { readWholeResponse } from './whole.ts'
import { responseAsStream } from './whole-as-stream.ts'

/** The client's body, byte for byte, and the places of its fields. */
export interface ResponsesSource extends ScannedFields {
  readonly body: Buffer
}

/** Returns the source of a call that this dialect has read. */
export const getSource = (call: ChatCall): ResponsesSource => call.source as ResponsesSource

/**
 * Returns the types of tools and of those that they group. A shell that is not the client's runs code at the upstream,
 * and a search for tools may be the client's.
 */
function listTypes(tools: readonly unknown[], found: string[] = []): string[] {
  for (const tool of tools) {
    const { type, environment, execution, tools: inner } = toFields(tool)
    const isRemoteShell = type === 'shell' && (toFields(environment).type ?? LOCAL) !== LOCAL
    if (type !== 'tool_search' || execution !== 'client')
      found.push(isRemoteShell ? CODE_INTERPRETER : toText(type))
    listTypes(toList(inner), found)
  }
  return found
}

/** Returns all offered tools: some are in the input. */
function listOfferedTools({ tools, input }: ResponsesRequest): readonly unknown[] {
  const found = Array.isArray(input) ? input.filter(({ type }) => TOOL_ITEMS.has(type)) : []
  return [...(tools ?? []), ...found.flatMap((item) => (Array.isArray(item.tools) ? item.tools : []))]
}

const builtInTools = (request: ResponsesRequest): readonly ServerTool[] =>
  listServerTools('responses', listTypes(listOfferedTools(request)))

const LOCAL = 'local'
const CODE_INTERPRETER = 'code_interpreter'
/** Items that offer tools: those that a search has found, and those that the client adds on the way. */
const TOOL_ITEMS: ReadonlySet<unknown> = new Set(['tool_search_output', 'additional_tools'])

const LISTS = { input: fastPathInput, tools: fastPathTools }
const reader = new RequestReader('responses', responsesRequest, RESPONSES_NAMES, LISTS, LINK_FIELDS)

function printSettings(
  request: ResponsesRequest,
  counts: ReadRequest<unknown, keyof typeof LISTS>['counts'],
): string {
  const { tool_choice, reasoning, text } = request
  return (
    printNumber('messages', counts.input) +
    samplingSettings(request) +
    (reasoning == null ? '' : printText('reasoning_effort', reasoning.effort)) +
    printNumber('tools', counts.tools) +
    choicePiece(tool_choice) +
    printText('response_format', toFields(toFields(text).format).type)
  )
}

function readState(
  { input, previous_response_id, conversation, store, background, callback_url }: ResponsesRequest,
  isCompaction: boolean,
): CallState {
  return {
    previous: previous_response_id ?? null,
    conversation: typeof conversation === 'string' ? conversation : (conversation?.id ?? null),
    items: Array.isArray(input) ? input.filter(isItemReference).map(({ id }) => id) : [],
    isStored: store !== false && !isCompaction,
    isBackground: background === true,
    ...(isCompaction && { isCompaction }),
    ...(callback_url != null && { callbackUrl: callback_url }),
  }
}

function read({ body }: ClientRequest, isCompaction = false): ChatCall {
  const { request, counts, fields, open } = reader.read(body)
  const measureField = (name: string): number => bytesOfField(body, fields.get(name))
  const conversationBytes = measureField('input') + measureField('instructions')
  const source: ResponsesSource = { body, fields, open }
  return {
    model: request.model,
    stream: request.stream === true,
    outputLimit: request.max_output_tokens ?? null,
    choices: 1,
    conversationBytes,
    promptBytes: conversationBytes + promptFieldBytes('responses', body, fields, request),
    ...readThinking(request),
    links: findLinkedParts(request.input, listOfferedTools(request)),
    builtInTools: builtInTools(request),
    toolCallLimit: isCount(request.max_tool_calls) ? request.max_tool_calls : null,
    ...readServiceTier('responses', request),
    conversationKey: readConversationKey(request),
    state: readState(request, isCompaction),
    settings: printSettings(request, counts),
    source,
  }
}

export const responsesDialect: Dialect = { protocol: 'responses', read: (request) => read(request) }
export const responsesCompaction: Dialect = { protocol: 'responses', read: (request) => read(request, true) }

function withoutPrediction(source: ResponsesSource): ResponsesSource {
  const span = source.fields.get(PREDICTION)
  if (!isSet(source.body, span)) return source
  const body = applySplices(source.body, [removal(source.body, span)])
  return { ...scanFields(body), body }
}

/** Returns the body for a native upstream: the client's bytes, changed only in model id, output limit and prediction. */
function wireBody(
  call: ChatCall,
  { body, fields, open }: ResponsesSource,
  { upstreamModel, outputCeiling }: EncodeOptions,
): Buffer {
  const splices: Splice[] = []
  const put = (name: string, json: string) => splices.push(assignment(name, json, fields.get(name), open))
  if (upstreamModel !== call.model) put('model', JSON.stringify(upstreamModel))
  const mayLimit = call.outputLimit === null && call.state?.isCompaction === undefined
  if (mayLimit && outputCeiling !== null) put('max_output_tokens', String(outputCeiling))
  const previous = call.state?.upstreamPrevious
  if (previous !== undefined) put('previous_response_id', JSON.stringify(previous))
  const callback = fields.get('callback_url')
  if (callback !== undefined) splices.push(removal(body, callback))
  return applySplices(body, splices)
}

export const responsesNative: ProtocolAdapter = {
  from: 'responses',
  to: 'responses',
  urlsToFetch: () => [],
  encodeRequest(call, options) {
    const given = getSource(call)
    const source = withoutPrediction(given)
    return { body: wireBody(call, source, options), dropped: source === given ? [] : [PREDICTION] }
  },
  streamContentType: () => null,
  keepAlive: () => COMMENT,
  openStream: (_call, provider) => new ResponsesMeter(provider),
  readWhole: (_call, body, provider) => readWholeResponse(body, provider),
  wholeAsStream: (_call, body) => responseAsStream(body),
}
