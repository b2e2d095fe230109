import { connect as connectPlain, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type SecureContext } from 'node:tls'
import type { UpstreamFailureKind } from '../failure.ts'
import type { Origin } from './origin.ts'

const TCP_KEEP_ALIVE_DELAY_MS = 30_000

export interface SocketSettings {
  /** Used instead of a look-up of the origin's name. */
  readonly address: string | undefined
  readonly secureContext: SecureContext | undefined
  /** Read buffer shared by all sockets. */
  readonly buffer: Buffer
  /** Session of an earlier connection to the same origin. */
  readonly session: Buffer | undefined
  /**
   * Called with the number of bytes that lie at the beginning of `buffer`, valid during the call. Says that reading goes
   * on; the socket calls it itself, with nothing in between.
   */
  readonly onRead: (bytes: number) => true
}

/**
 * Opens a socket that reads into the shared buffer: no stream machinery and no allocation for a read. TLS sockets do
 * the same, one call for a record. Certificates are verified; only HTTP/1.1 is offered.
 */
export function openSocket(origin: Origin, settings: SocketSettings): Socket {
  const target = {
    host: settings.address ?? origin.host,
    port: origin.port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY_MS,
    onread: { buffer: settings.buffer, callback: settings.onRead },
  }
  if (!origin.tls) return connectPlain(target)
  const options: ConnectionOptions = {
    ...target,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: true,
  }
  if (origin.servername !== undefined) options.servername = origin.servername
  if (settings.secureContext !== undefined) options.secureContext = settings.secureContext
  if (settings.session !== undefined) options.session = settings.session
  return connectTls(options)
}

/** This machine, not the other one, lacks file descriptors, memory for sockets or local ports. */
const EXHAUSTED_CODES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'EADDRNOTAVAIL'])
const DESCRIPTOR_LIMIT_CODES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE'])

/** Returns whether an error, or each attempt in it, has one of the codes. */
function hasCode(error: Error, codes: ReadonlySet<unknown>): boolean {
  if (error instanceof AggregateError)
    return error.errors.length > 0 && error.errors.every((attempt) => hasCode(attempt, codes))
  return 'code' in error && codes.has(error.code)
}

/** Returns whether no file descriptor was left, for a socket or for the look-up of a name. */
export const isDescriptorLimit = (error: Error): boolean => hasCode(error, DESCRIPTOR_LIMIT_CODES)

/** Names the failure of a socket that never became usable. */
export function classifyConnectError(error: Error, tcpEstablished: boolean): UpstreamFailureKind {
  if (hasCode(error, EXHAUSTED_CODES)) return 'exhausted'
  if ('syscall' in error && error.syscall === 'getaddrinfo') return 'dns'
  return tcpEstablished ? 'tls' : 'connect'
}

/** An error of several attempts (a name with several addresses) has no text. */
export function describeConnectError(error: Error): string {
  if (!(error instanceof AggregateError)) return error.message
  return error.errors
    .map((attempt) => (attempt instanceof Error ? attempt.message : String(attempt)))
    .join('; ')
}
