/** The interface of authorizers: they add a token or a signature to requests of channels without an API key. */
import type { ChannelAuth } from '../../schemas/config/channel-auth.ts'
import type { Expiring } from './token-cache.ts'

type HeaderFields = ReadonlyArray<readonly [name: string, value: string]>

/** The parts of a request that a signature covers. */
export interface SignedRequest {
  readonly method: string
  readonly url: URL
  readonly contentType: string
  readonly body: Uint8Array
}

/** The headers that authorize a request. */
export interface Authorization {
  readonly headers: HeaderFields
  /** The token or the credentials that the headers were made of. */
  readonly source: unknown
  /** The token itself, to be masked. */
  readonly secret: string
}

/** Authorizes requests by one kind of `auth`. */
export interface Authorizer {
  /** Returns at once where a token is at hand. Rejects with an `AuthorizationFailure`. */
  authorize(request: SignedRequest): Authorization | Promise<Authorization>
  /** Notes that the upstream refused an authorization with this status. Returns whether another attempt would carry a newer one. */
  dropRefused(authorization: Authorization, status: number): boolean
}

export interface AuthorizerDeps {
  readonly fetch: typeof fetch
  /** Returns epoch milliseconds, for signatures. */
  readonly now: () => number
  /** Returns milliseconds by a clock that is never set, for the life of tokens. */
  readonly elapsed: () => number
  readonly env: Readonly<Record<string, string | undefined>>
  /** Called with each new token. */
  readonly onToken: (secret: string) => void
  /** Called when fetching a token failed. The text holds no secret. */
  readonly onFailure: (auth: ChannelAuth['type'], problem: string) => void
}

/** Fetching a token or signing failed. The message is for operators, and holds no secret. */
export class AuthorizationFailure extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AuthorizationFailure'
  }
}

/** A bearer token. */
export interface Token extends Expiring {
  readonly text: string
}

export type FetchToken = () => Promise<Token>
