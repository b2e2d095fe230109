/** Reads the client's request in its protocol. */
import { from, map } from 'rxjs'
import type { Agent } from '../../schemas/accounts/agent.ts'
import type { CallProtocol } from '../../schemas/config/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import { CLIENT_HEADERS } from '../../src/channels/chat/messages.ts'
import { printText } from '../../src/core/call-log/detail-text.ts'
import type { GatewayRequest } from '../../src/http/handler.ts'
import type { ReadableBase } from '../../src/postgres/knowledge/types.ts'
import { type LongBodyWork, type RewritingEndpoint, workOnBody } from '../../src/protocols/body-work.ts'
import type { ChatCall, Dialect, RewrittenBody } from '../../src/protocols/dialect.ts'
import type { ReaderName } from '../../src/protocols/registry.ts'
import type { AuthenticatedCall } from '../calls/authenticate.ts'
import type { Stage } from '../calls/pipeline.ts'

/** The part of a call that only the key of an agent adds. */
export interface FoundAgent {
  readonly agent?: {
    readonly agent: Agent
    /** The knowledge bases that the agent may read. */
    readonly bases: readonly ReadableBase[]
  }
}

export interface AppliedAgent {
  readonly agent?: NonNullable<FoundAgent['agent']> & {
    /** The client's request to the agent. */
    readonly given: Buffer
    /** The text of its latest message of role user; empty where that has none. */
    readonly question: string
    readonly hasImages: boolean
    /** The client gets a whole answer, which is put together from a stream. */
    readonly isAssembled: boolean
    /** The agent's entry in the call log. */
    readonly detail: string
  }
}

/** What a rewritten body adds to a call. */
export interface RewrittenCall {
  readonly rewritten?: {
    /** Names of the client's fields that have no place in the new body. */
    readonly leftOut: readonly string[]
    readonly isTextCompletion: boolean
  }
}

/** Returns the call as its agent makes it, and as its client expects the answer. */
export function completeCall(
  read: ChatCall,
  { agent, rewritten, request }: AppliedAgent & RewrittenCall & Pick<AuthenticatedCall, 'request'>,
  detail = agent?.detail,
): ChatCall {
  const asAgent =
    agent === undefined
      ? read
      : { ...read, settings: read.settings + detail, ...(agent.isAssembled && { isAssembled: true }) }
  if (rewritten === undefined) return asAgent
  const { leftOut, isTextCompletion } = rewritten
  return {
    ...asAgent,
    ...(leftOut.length > 0 && { leftOut }),
    ...(isTextCompletion && {
      isTextCompletion,
      settings: asAgent.settings + printText('endpoint', request.path),
    }),
  }
}

export interface ReadCall extends AuthenticatedCall {
  readonly protocol: CallProtocol
  readonly call: ChatCall
}

const PRINTABLE = /^[\t\x20-\x7e]*$/

/** @throws Failure `invalid_request` for a header that no upstream can be sent */
function assertHeaders({ header }: GatewayRequest): void {
  for (const name of CLIENT_HEADERS)
    if (!PRINTABLE.test(header(name)))
      throw new Failure('invalid_request', `The header ${name} is not printable ASCII.`)
}

/** Endpoints of chats: by the reader of each, and an older one of chat-completions. */
export type ChatEndpoint = ReaderName | 'completions'

/** Only plain values stand before the messages: a body of chat-completions, as nearly all are. */
const HAS_MESSAGES = /^\s*\{\s*(?:"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[\w.+-]+)\s*,\s*)*"messages"\s*:/
const HEAD_BYTES = 512
/** To search a body of this size costs less than to read its head. */
const SEARCHED_BYTES = 4096
const INPUT = '"input"'

function findRewriter(endpoint: ChatEndpoint, body: Buffer): RewritingEndpoint | null {
  if (endpoint === 'completions') return endpoint
  if (endpoint !== 'chat-completions') return null
  // A long body is searched only where its head does not tell.
  const isHeadRead = body.length > SEARCHED_BYTES && HAS_MESSAGES.test(body.toString('latin1', 0, HEAD_BYTES))
  return isHeadRead || !body.includes(INPUT) ? null : endpoint
}

/**
 * Rewrites a text completion, or a body of the responses protocol, as a chat completion. Other bodies pass unchanged.
 * @throws Failure `invalid_request` that names the wrong field
 */
export const rewriteBody =
  <C extends AuthenticatedCall>(bodies: LongBodyWork, endpoint: ChatEndpoint): Stage<C, C & RewrittenCall> =>
  (call: C) => {
    const { path, body: given } = call.request
    const rewriter = findRewriter(endpoint, given)
    if (rewriter === null) return call
    const add = (written: RewrittenBody | null): C & RewrittenCall => {
      if (written === null) return call
      const { body, leftOut } = written
      const rewritten = { leftOut, isTextCompletion: rewriter === 'completions' }
      return { ...call, request: { ...call.request, body }, intent: { path, body: given }, rewritten }
    }
    const written = workOnBody(bodies, call.known.account.id, 'rewrite', { endpoint: rewriter }, given)
    return written instanceof Promise ? from(written).pipe(map(add)) : add(written)
  }

/**
 * Adds the request that was read.
 * @throws Failure that names the invalid field or header
 */
export const readCall =
  <C extends AuthenticatedCall & AppliedAgent & RewrittenCall>(
    bodies: LongBodyWork,
    dialect: Dialect<ReaderName & CallProtocol>,
    reader: ReaderName = dialect.protocol,
  ): Stage<C, C & ReadCall> =>
  (call: C) => {
    assertHeaders(call.request)
    const add = (read: ChatCall) => ({
      ...call,
      protocol: dialect.protocol,
      call: completeCall(read, call),
    })
    const { params, query, body } = call.request
    const { model } = params
    const read = workOnBody(bodies, call.known.account.id, 'read', { reader, model, query }, body)
    return read instanceof Promise ? from(read).pipe(map(add)) : add(read)
  }
