/** Reads what the client asks for, in its protocol. */
import type { ChatProtocol } from '../../schemas/config/catalog.ts'
import type { ChatCall, Dialect } from '../../src/protocols/dialect.ts'
import type { AppliedAgent } from '../chat/agent/agent-part.ts'
import type { AuthenticatedCall } from './authenticate.ts'
import { type Stage, stage } from './stage.ts'

export interface ReadCall extends AuthenticatedCall {
  readonly protocol: ChatProtocol
  readonly call: ChatCall
}

/** Adds the request as it was read. @throws Failure that says which field is wrong */
export const readCall = <C extends AuthenticatedCall & AppliedAgent>(
  dialect: Dialect,
): Stage<C, C & ReadCall> =>
  stage((call: C) => {
    const read = dialect.read(call.request)
    const detail = call.agent?.detail
    const settled = detail === undefined ? read : { ...read, settings: read.settings + detail }
    return { ...call, protocol: dialect.protocol, call: settled }
  })
