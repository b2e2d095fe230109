/** Reads the client's request in its protocol. */
import { from, map } from 'rxjs'
import type { ChatProtocol } from '../../schemas/config/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import { CLIENT_HEADERS } from '../../src/channels/chat/messages.ts'
import type { GatewayRequest } from '../../src/http/handler.ts'
import { type BodyDeps, workOnBody } from '../../src/protocols/body-work.ts'
import type { ChatCall, Dialect } from '../../src/protocols/dialect.ts'
import type { ReaderName } from '../../src/protocols/registry.ts'
import type { AuthenticatedCall } from '../calls/authenticate.ts'
import type { Stage } from '../calls/pipeline.ts'
import { type AppliedAgent, calledByAgent } from './agent/agent-part.ts'

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
    deps: BodyDeps,
    dialect: Dialect,
    reader: ReaderName = dialect.protocol,
  ): Stage<C, C & ReadCall> =>
  (call: C) => {
    assertHeaders(call.request)
    const add = (read: ChatCall) => ({
      ...call,
      protocol: dialect.protocol,
      call: calledByAgent(read, call),
    })
    const { path, query, body } = call.request
    const read = workOnBody(deps, call.known.account.id, 'read', { reader, path, query }, body)
    return read instanceof Promise ? from(read).pipe(map(add)) : add(read)
  }
