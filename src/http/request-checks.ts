/** Checks of a request before its handler gets it. */
import { Buffer } from 'node:buffer'
import { throwError } from 'rxjs'
import { Failure } from '../../schemas/failure.ts'
import { type Coding, findCoding } from './body/coding.ts'
import type { GatewayRequest, Handler, Reply } from './handler.ts'
import type { CopiedHead } from './request-reader.ts'
import type { FoundRoute, Route } from './router.ts'
import type { HttpResponse } from './uws.ts'

/** Returns the address of the connection; readable until the reply is over. */
export const readPeer = (response: HttpResponse): string =>
  Buffer.from(response.getRemoteAddressAsText()).toString('latin1')

/** Returns whether a request counts as one without a valid key before it is answered. */
export const isWithoutKey = (found: FoundRoute | Reply | Failure): boolean =>
  'route' in found
    ? found.route.handler.admit === undefined && found.route.addressLimit === undefined
    : found instanceof Failure

/** Returns whether the key of a request is valid, as far as that is known without a look-up. */
export function hasKnownKey({ handler }: Route, head: CopiedHead, now: number): boolean {
  try {
    return handler.admit?.(head, now, false) === null
  } catch {
    return false
  }
}

/** Returns the handler's decision on the head; undefined when the request has been refused here. */
export function readAdmission(
  { handler }: Route,
  head: CopiedHead,
  now: number,
  refuse: (error: unknown) => void,
): Promise<void> | null | undefined {
  try {
    return handler.admit?.(head, now) ?? null
  } catch (error) {
    refuse(error)
    return undefined
  }
}

/** Returns the compression of the body, null without any; undefined when the request has been refused here. */
export function readCoding(head: CopiedHead, refuse: (error: unknown) => void): Coding | null | undefined {
  try {
    return findCoding(head.header('content-encoding'))
  } catch (error) {
    refuse(error)
    return undefined
  }
}
/** Turns a handler's throw into an error of its reply. */
export function run(handler: Handler, request: GatewayRequest): ReturnType<Handler> {
  try {
    return handler(request)
  } catch (error) {
    return throwError(() => error)
  }
}
