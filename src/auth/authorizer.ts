/** Opens the authorizers of channels with `auth`. Channels with the same `auth` share one token. */
import type { ChannelEntry } from '../../schemas/config/catalog.ts'
import type { ChannelAuth } from '../../schemas/config/channel-auth.ts'
import { maskSecrets } from '../core/call-log/redact.ts'
import { listAuthSecrets, noteToken } from '../core/routing/channel-access.ts'
import { awsSignatures } from './aws.ts'
import { describeClockProblem } from './clock.ts'
import { entraTokens } from './entra.ts'
import { googleTokens } from './google.ts'
import { hs256Tokens } from './hs256.ts'
import {
  type Authorization,
  AuthorizationFailure,
  type Authorizer,
  type AuthorizerDeps,
  type FetchToken,
  type Token,
} from './interface.ts'
import { TokenCache } from './token-cache.ts'

export type { Authorization, Authorizer, AuthorizerDeps, SignedRequest } from './interface.ts'
export { AuthorizationFailure } from './interface.ts'

const UNAUTHORIZED = 401

function makeBearerAuthorizer(fetchToken: FetchToken, elapsed: () => number): Authorizer {
  const cache = new TokenCache(fetchToken, elapsed)
  const toAuthorization = (token: Token): Authorization => ({
    headers: [['authorization', `Bearer ${token.text}`]],
    source: token,
    secret: token.text,
  })
  return {
    authorize() {
      const token = cache.get()
      return token instanceof Promise ? token.then(toAuthorization) : toAuthorization(token)
    },
    dropRefused: ({ source }, status) => status === UNAUTHORIZED && cache.dropRefused(source as Token),
  }
}

/** Refuses a token that no header can carry, before it is kept. */
const sanitizeForHeader =
  (fetchToken: FetchToken): FetchToken =>
  async () => {
    const token = await fetchToken()
    if (/^[\x21-\x7e]+$/.test(token.text)) return token
    throw new Error('the token is not of visible ASCII characters')
  }

/** Returns `fetch` that keeps the date of its answer: it tells whether the clock is wrong. */
function rememberDate(send: typeof fetch): { fetch: typeof fetch; lastDate: () => string | null } {
  let date: string | null = null
  return {
    fetch: async (...request) => {
      date = null
      const answer = await send(...request)
      date = answer.headers.get('date')
      return answer
    },
    lastDate: () => date,
  }
}

function open(auth: ChannelAuth, deps: AuthorizerDeps): Authorizer {
  const { fetch: send, lastDate } = rememberDate(deps.fetch)
  const own = { ...deps, fetch: send }
  const secrets = listAuthSecrets(auth)
  /** Words the failure of a token's server, with the clock where that is the likely cause. */
  const nameChannel =
    <T>(work: () => Promise<T>) =>
    async (): Promise<T> => {
      try {
        return await work()
      } catch (error) {
        const cause = error instanceof Error ? error.message : String(error)
        const clock = describeClockProblem(lastDate(), deps.now())
        const problem = maskSecrets(
          `${auth.type}: ${clock === null ? cause : `${clock} (${cause})`}`,
          secrets,
        )
        deps.onFailure(auth.type, problem)
        throw new AuthorizationFailure(`No access to the upstream by ${problem}`)
      }
    }
  switch (auth.type) {
    case 'aws-sigv4':
      return awsSignatures(auth, own, nameChannel)
    case 'google':
      return makeBearerAuthorizer(nameChannel(sanitizeForHeader(googleTokens(auth, own))), deps.elapsed)
    case 'azure-entra':
      return makeBearerAuthorizer(nameChannel(sanitizeForHeader(entraTokens(auth, own))), deps.elapsed)
    case 'jwt-hs256':
      return makeBearerAuthorizer(nameChannel(sanitizeForHeader(hs256Tokens(auth, own))), deps.elapsed)
  }
}

/** Returns a function that opens the authorizer of a channel with `auth`, once for each channel. */
export function authorizers(deps: AuthorizerDeps): (channel: ChannelEntry) => Authorizer {
  const byChannel = new WeakMap<ChannelEntry, Authorizer>()
  // A changed configuration has new objects of channels, and mostly the same `auth`: its token goes on.
  const byAuth = new Map<string, Authorizer>()
  return (channel) => {
    const known = byChannel.get(channel)
    if (known !== undefined) return known
    const text = JSON.stringify(channel.auth)
    const shared = byAuth.get(text) ?? open(channel.auth!, deps)
    byAuth.set(text, shared)
    const authorizer = noteAuthorizations(shared, channel, deps.onToken)
    byChannel.set(channel, authorizer)
    return authorizer
  }
}

/** Returns the authorizer, noting each token as a secret of the channel: an upstream may quote it. */
function noteAuthorizations(
  authorizer: Authorizer,
  channel: ChannelEntry,
  onToken: AuthorizerDeps['onToken'],
): Authorizer {
  let last = ''
  const noteAuthorization = (authorization: Authorization): Authorization => {
    if (authorization.secret !== last) {
      last = authorization.secret
      noteToken(channel, last)
      onToken(last)
    }
    return authorization
  }
  return {
    authorize(request) {
      const authorization = authorizer.authorize(request)
      return authorization instanceof Promise
        ? authorization.then(noteAuthorization)
        : noteAuthorization(authorization)
    },
    dropRefused: (authorization, status) => authorizer.dropRefused(authorization, status),
  }
}
