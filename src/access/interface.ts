/** The interface of access to upstreams: what a request carries in place of a key, and what is needed for it. */
import type { ChannelAuth } from '../../schemas/config/channel-auth.ts'

export type HeaderFields = ReadonlyArray<readonly [name: string, value: string]>

/** The parts of a request that a signature covers. */
export interface SignedRequest {
  readonly method: string
  readonly url: URL
  readonly contentType: string
  readonly body: Uint8Array
}

/** The headers that let a request in. */
export interface Pass {
  readonly headers: HeaderFields
  /** The token or the credentials that the headers were made of. */
  readonly source: unknown
  /** The token itself, to be masked. */
  readonly secret: string
}

/** The means of one kind of `auth`. */
export interface Access {
  /** Returns at once where a token is at hand. Rejects with an `AccessFailure`. */
  pass(request: SignedRequest): Pass | Promise<Pass>
  /** Notes that the upstream refused a pass with this status. Returns whether another attempt would carry a newer one. */
  refused(pass: Pass, status: number): boolean
}

export interface AccessDeps {
  readonly fetch: typeof fetch
  /** Returns epoch milliseconds. */
  readonly now: () => number
  readonly env: Readonly<Record<string, string | undefined>>
  /** Called with each new token. */
  readonly onToken: (secret: string) => void
  /** Called when no token could be had. The text holds no secret. */
  readonly onFailure: (auth: ChannelAuth['type'], problem: string) => void
}

/** No token could be had. The message is for operators, and holds no secret. */
export class AccessFailure extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AccessFailure'
  }
}

/** A bearer token, and the instant at which it ends in epoch milliseconds. */
export interface Token {
  readonly text: string
  readonly expiresAt: number
}

export type FetchToken = () => Promise<Token>
