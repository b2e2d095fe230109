/** What the client asks for, in its protocol's own words. */
import { map, type OperatorFunction } from 'rxjs'
import type { ChatProtocol } from '../../schemas/catalog.ts'
import type { ChatCall, Dialect } from '../../src/protocols/dialect.ts'
import type { Caller } from './authenticate.ts'

/** A caller, and the protocol in which it called. */
export interface ProtocolCaller extends Caller {
  readonly protocol: ChatProtocol
}

export interface ReadCall extends ProtocolCaller {
  readonly call: ChatCall
}

export function readCall(dialect: Dialect): OperatorFunction<ProtocolCaller, ReadCall> {
  return map((caller) => ({ ...caller, call: dialect.read(caller.exchange) }))
}
