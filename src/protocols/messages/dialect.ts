/**
 * The messages dialect: reading a client's request, and the few changes that a native upstream sees.
 * See docs/api-rules.md, "Chat protocols" and "Protocols and translation".
 */

import {
  type CountTokensRequest,
  countTokensRequest,
  messagesRequest,
} from '../../../schemas/chat/messages.ts'
import type { ServerTool } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { printNumber, printText } from '../../core/call-log/detail-text.ts'
import { applySplices, type FieldSpan } from '../../core/json/splice.ts'
import type { ChatCall, ClientRequest, Dialect, ProtocolAdapter } from '../dialect.ts'
import { isObject, type LooseObject, toFields, toList, toText } from '../loose.ts'
import { readConversationKey } from '../request/conversation-key.ts'
import { type ReadRequest, RequestReader } from '../request/fast-path-lists.ts'
import { readServiceTier } from '../request/foreign-fields.ts'
import { MESSAGES_NAMES } from '../request/known-names.ts'
import { findLinkedParts } from '../request/linked-parts.ts'
import { bytesOfField, promptFieldBytes } from '../request/prompt-fields.ts'
import { choicePiece, samplingSettings, stopPiece } from '../request/settings.ts'
import { readMostThinking } from '../request/thinking-tokens.ts'
import { findServerTool, isCount, listServerTools } from '../request/tools.ts'
import { COMMENT } from '../sse/comment.ts'
import { fastPathMessages, fastPathTools } from './fast-path-items.ts'
import { MessagesMeter, readWholeMessage } from './meter.ts'
import { isAdvisor, readOtherModels, writeOtherModels } from './other-models.ts'
import { messageAsStream } from './whole-as-stream.ts'

/** The client's body, byte for byte, and the places of its fields. */
interface MessagesSource {
  readonly body: Buffer
  readonly fields: ReadonlyMap<string, FieldSpan>
}

/** The type of a tool without one. */
const CUSTOM = 'custom'
const MCP = 'mcp'
const TOOL_ADDITION = 'tool_addition'
const COMPACTION = 'compaction'

const LISTS = { messages: fastPathMessages, tools: fastPathTools }
const callReader = new RequestReader('messages', messagesRequest, MESSAGES_NAMES, LISTS)
/** The endpoint that counts tokens generates none: no limit has to be given. */
const countReader = new RequestReader<CountTokensRequest, keyof typeof LISTS>(
  'messages',
  countTokensRequest,
  MESSAGES_NAMES,
  LISTS,
)

/**
 * A thread is a conversation that the vendor stores. Its SDK goes on without one where the refusal has these details, as
 * the vendor's own has. See docs/errors.md, "Fields that are refused".
 */
const threadRefusal = (): Failure =>
  new Failure(
    'invalid_request',
    "Field 'thread' is not valid: no conversation is stored for you; send all its messages without it",
    { details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] } },
  )

function read(
  reader: Pick<RequestReader<CountTokensRequest, keyof typeof LISTS>, 'read'>,
  { body }: ClientRequest,
): ChatCall {
  const { request, counts, fields } = reader.read(body)
  if (request.thread != null) throw threadRefusal()
  const tools = listOfferedTools(request)
  const measureField = (name: string): number => bytesOfField(body, fields.get(name))
  const conversationBytes = measureField('messages') + measureField('system')
  const source: MessagesSource = { body, fields }
  return {
    model: request.model,
    stream: request.stream === true,
    outputLimit: request.max_tokens ?? null,
    choices: 1,
    conversationBytes,
    promptBytes: conversationBytes + promptFieldBytes('messages', body, fields, request),
    ...readMostThinking(request, request.messages),
    links: findLinkedParts(request.messages, [...toList(request.mcp_servers), ...tools]),
    builtInTools: builtInTools(tools, request),
    toolCallLimit: toolCallLimit(tools, request),
    ...readServiceTier('messages', request),
    conversationKey: readConversationKey(request),
    ...(compacts(request) && { compacts: true }),
    ...readOtherModels(request),
    settings: printSettings(request, counts),
    source,
  }
}

/** Adds the tools that blocks of messages define, and those of a summary of earlier messages. */
function addTools(offered: LooseObject[], blocks: readonly unknown[]): void {
  for (const block of blocks) {
    const { type, tool, tool_changes: changes } = toFields(block)
    const { definition } = toFields(tool)
    if (type === TOOL_ADDITION && isObject(definition)) offered.push(definition)
    if (type === COMPACTION) addTools(offered, toList(changes))
  }
}

/** Returns the offered tools. An advisor is a model. */
function listOfferedTools({ tools, messages }: CountTokensRequest): readonly LooseObject[] {
  const offered: LooseObject[] = (tools ?? []).filter((tool) => !isAdvisor(tool))
  for (const { content } of messages) addTools(offered, toList(content))
  return offered
}

/** Returns the built-in tools. A separate field has the MCP servers to call. */
function builtInTools(
  tools: readonly LooseObject[],
  { mcp_servers: servers }: CountTokensRequest,
): readonly ServerTool[] {
  const types = tools.map(({ type }) => (type == null ? CUSTOM : toText(type)))
  const callsServers = servers != null && !(Array.isArray(servers) && servers.length === 0)
  return listServerTools('messages', callsServers ? [...types, MCP] : types)
}

/** Types such as `compact_20260112`. */
const COMPACTS = /^compact/
const compacts = ({ context_management: context }: CountTokensRequest): boolean =>
  toList(toFields(context).edits).some((edit) => COMPACTS.test(toText(toFields(edit).type)))

/** Returns the sum of `max_uses` where each server tool has one. A server of `mcp_servers` has none. */
function toolCallLimit(
  tools: readonly LooseObject[],
  { mcp_servers: servers }: CountTokensRequest,
): number | null {
  if (toList(servers).length > 0) return null
  let sum = 0
  for (const { type, max_uses: uses } of tools) {
    if (findServerTool(toText(type)) === undefined) continue
    if (!isCount(uses)) return null
    sum += uses
  }
  return sum
}

function printSettings(
  request: CountTokensRequest,
  counts: ReadRequest<unknown, keyof typeof LISTS>['counts'],
): string {
  const { tool_choice, thinking, output_config: output } = request
  return (
    printNumber('messages', counts.messages) +
    samplingSettings(request) +
    printNumber('top_k', request.top_k) +
    stopPiece(request.stop_sequences) +
    printText('reasoning_effort', toFields(output).effort) +
    printNumber('thinking_budget_tokens', toFields(thinking).budget_tokens) +
    printNumber('tools', counts.tools) +
    choicePiece(tool_choice)
  )
}

const NOTHING: readonly string[] = []

export const messagesDialect: Dialect = {
  protocol: 'messages',
  read: (request) => read(callReader, request),
}
export const messagesCount: Dialect = { protocol: 'messages', read: (request) => read(countReader, request) }

/** Returns the source of a call that this dialect has read. */
export const getSource = (call: ChatCall): MessagesSource => call.source as MessagesSource

export const messagesNative: ProtocolAdapter = {
  from: 'messages',
  to: 'messages',
  urlsToFetch: () => [],
  encodeRequest(call, { upstreamModel, otherModels }) {
    const { body, fields } = getSource(call)
    const { start, end } = fields.get('model')!
    const isSame = upstreamModel === call.model
    const splices = isSame ? [] : [{ start, end, text: JSON.stringify(upstreamModel) }]
    if (call.otherModels === undefined) return { body: applySplices(body, splices), dropped: NOTHING }
    const others = writeOtherModels(body, fields, otherModels)
    return { body: applySplices(body, [...splices, ...others.splices]), dropped: others.dropped }
  },
  streamContentType: () => null,
  keepAlive: () => COMMENT,
  openStream: () => new MessagesMeter(),
  readWhole: (_call, body) => readWholeMessage(body),
  wholeAsStream: (_call, body) => messageAsStream(body),
}
