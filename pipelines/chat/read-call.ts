/** Reads the client's request in its protocol. */
import { from, map } from 'rxjs'
import type { Agent } from '../../schemas/accounts/agent.ts'
import type { ChatProtocol } from '../../schemas/config/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import { CLIENT_HEADERS } from '../../src/channels/chat/messages.ts'
import type { GatewayRequest } from '../../src/http/handler.ts'
import type { ReadableBase } from '../../src/postgres/knowledge/types.ts'
import { type LongBodyWork, workOnBody } from '../../src/protocols/body-work.ts'
import type { ChatCall, Dialect } from '../../src/protocols/dialect.ts'
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

/** Returns the call as its agent makes it. */
export function toAgentCall(read: ChatCall, { agent }: AppliedAgent, detail = agent?.detail): ChatCall {
  if (agent === undefined) return read
  return { ...read, settings: read.settings + detail, ...(agent.isAssembled && { isAssembled: true }) }
}

export interface ReadCall extends AuthenticatedCall {
  readonly protocol: ChatProtocol
  readonly call: ChatCall
}

const PRINTABLE = /^[\t\x20-\x7e]*$/

/** @throws Failure `invalid_request` for a header that no upstream can be sent */
function assertHeaders({ header }: GatewayRequest): void {
  for (const name of CLIENT_HEADERS)
    if (!PRINTABLE.test(header(name)))
      throw new Failure('invalid_request', `The header ${name} is not printable ASCII.`)
}

/**
 * Adds the request that was read.
 * @throws Failure that names the invalid field or header
 */
export const readCall =
  <C extends AuthenticatedCall & AppliedAgent>(
    bodies: LongBodyWork,
    dialect: Dialect,
    reader: ReaderName = dialect.protocol,
  ): Stage<C, C & ReadCall> =>
  (call: C) => {
    assertHeaders(call.request)
    const add = (read: ChatCall) => ({
      ...call,
      protocol: dialect.protocol,
      call: toAgentCall(read, call),
    })
    const { params, query, body } = call.request
    const { model } = params
    const read = workOnBody(bodies, call.known.account.id, 'read', { reader, model, query }, body)
    return read instanceof Promise ? from(read).pipe(map(add)) : add(read)
  }
