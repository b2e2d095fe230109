/**
 * Why a call to an upstream did not complete.
 *
 * | kind | meaning |
 * |---|---|
 * | `dns` | the name could not be resolved |
 * | `connect` | no TCP connection: refused or unreachable |
 * | `exhausted` | no room for one more connection on this side: open files, local ports, the client's own bound |
 * | `tls` | handshake or certificate |
 * | `connect_timeout` | lookup and handshakes took too long |
 * | `head_timeout` | the request was sent, no response head came |
 * | `idle_timeout` | the body stopped coming |
 * | `deadline` | the whole call took too long |
 * | `reset` | the connection broke |
 * | `truncated` | orderly close before the end of the body |
 * | `malformed` | what came is not HTTP/1.1 as this client accepts it |
 * | `too_large` | a bound was passed: head, trailers, chunk extensions or body |
 * | `authorization` | no token or signature is available, or the upstream refused it because of a wrong clock |
 * | `closed` | orderly close before a response head, this client was closed, or a handler threw |
 */
export type UpstreamFailureKind =
  | 'connect'
  | 'exhausted'
  | 'tls'
  | 'dns'
  | 'connect_timeout'
  | 'head_timeout'
  | 'idle_timeout'
  | 'deadline'
  | 'reset'
  | 'truncated'
  | 'malformed'
  | 'too_large'
  | 'authorization'
  | 'closed'

interface UpstreamFailureFacts {
  /** Any byte of the request was handed to the kernel: the upstream may have acted on it. */
  readonly sent: boolean
  /** `onHead` was called. */
  readonly headReceived: boolean
  /** The call used a kept-alive connection, so `reset` or `closed` before a head may only mean it was stale. */
  readonly reused: boolean
  readonly cause?: unknown
}

/** Carries no stack: failures are frequent, and their place in the code does not matter. */
export class UpstreamFailure extends Error implements UpstreamFailureFacts {
  readonly kind: UpstreamFailureKind
  readonly sent: boolean
  readonly headReceived: boolean
  readonly reused: boolean

  constructor(kind: UpstreamFailureKind, detail: string, facts: UpstreamFailureFacts) {
    const limit = Error.stackTraceLimit
    Error.stackTraceLimit = 0
    super(`upstream ${kind}: ${detail}`, facts.cause === undefined ? undefined : { cause: facts.cause })
    Error.stackTraceLimit = limit
    this.name = 'UpstreamFailure'
    this.kind = kind
    this.sent = facts.sent
    this.headReceived = facts.headReceived
    this.reused = facts.reused
  }

  /** The server may have closed the kept connection before this call went out on it. */
  get mayBeStale(): boolean {
    return this.reused && !this.headReceived && (this.kind === 'reset' || this.kind === 'closed')
  }
}
