/** What the client asks for, in its protocol's own words. */
import type { ChatProtocol } from '../../schemas/config/catalog.ts'
import type { ChatCall, Dialect } from '../../src/protocols/dialect.ts'
import type { Caller } from './authenticate.ts'

/** A caller, and the protocol in which it called. */
export interface ProtocolCaller extends Caller {
  readonly protocol: ChatProtocol
}

export interface ReadCall extends ProtocolCaller {
  readonly call: ChatCall
}

/** @throws Failure that says which field is wrong */
export function readCall(dialect: Dialect, { request, known }: Caller): ReadCall {
  return { request, known, protocol: dialect.protocol, call: dialect.read(request) }
}
