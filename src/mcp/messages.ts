/** Refuses malformed messages with the error codes of JSON-RPC: the package answers -32700 and -32603 to them. */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  InitializeRequestSchema,
  isJSONRPCRequest,
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  ListToolsRequestSchema,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js'
import type { z } from 'zod'
import { PLAIN_ISSUES } from '../core/plain-issues.ts'

/** As the package has it: each message is checked before it sees them. */
const BATCH_MAX_MESSAGES = 100

const REQUESTS = new Map<string, z.ZodType>([
  ['initialize', InitializeRequestSchema],
  ['tools/list', ListToolsRequestSchema],
  ['tools/call', CallToolRequestSchema],
])

interface Refusal extends Omit<JSONRPCErrorResponse, 'id'> {
  /** Null where the message has no id that can be read. */
  readonly id: RequestId | null
}

const makeRefusal = <Id>(id: Id, code: ErrorCode, message: string) =>
  ({ jsonrpc: '2.0', id, error: { code, message } }) as const

/** Returns the answer to a body that is not a message, or a batch with something else in it; null for others. */
export function findRefusal(body: unknown): Refusal | null {
  const messages = Array.isArray(body) ? body : [body]
  if (messages.length === 0 || messages.length > BATCH_MAX_MESSAGES)
    return makeRefusal(null, ErrorCode.InvalidRequest, `A batch has 1 to ${BATCH_MAX_MESSAGES} messages.`)
  const bad = messages.findIndex((message) => !JSONRPCMessageSchema.safeParse(message).success)
  if (bad === -1) return null
  const { params, ...rest } = Object(messages[bad]) as Record<string, unknown>
  if (params !== undefined && isJSONRPCRequest(rest))
    return makeRefusal(
      rest.id,
      ErrorCode.InvalidParams,
      `The params of ${rest.method} must be an object, and so must the _meta in them.`,
    )
  const which = Array.isArray(body) ? `Message ${bad + 1} of the batch` : 'The body'
  return makeRefusal(
    null,
    ErrorCode.InvalidRequest,
    `${which} is not a JSON-RPC message: it needs "jsonrpc": "2.0", a "method", and for an answer an "id" ` +
      'that is a string or a whole number.',
  )
}

/** Names the wrong params of a request. */
function describeWrongParams(message: JSONRPCMessage): string | null {
  if (!isJSONRPCRequest(message)) return null
  const read = REQUESTS.get(message.method)?.safeParse(message, PLAIN_ISSUES)
  if (read === undefined || read.success) return null
  const problems = read.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
  return `These params do not fit ${message.method}. ${problems.join('; ')}.`
}

/**
 * Answers requests with wrong params itself, before the server of a connected transport sees them. A server without
 * the capability for tasks has to ignore that a call asks for one; the package refuses it.
 */
export function refuseWrongParams(transport: Transport): void {
  const serve = transport.onmessage!
  transport.onmessage = (message, extra) => {
    const problem = describeWrongParams(message)
    if (isJSONRPCRequest(message) && problem !== null)
      return void transport.send(makeRefusal(message.id, ErrorCode.InvalidParams, problem))
    if ('params' in message) delete message.params?.task
    serve(message, extra)
  }
}
