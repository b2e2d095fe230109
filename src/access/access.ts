/**
 * Access of channels with `auth`: what their requests carry in place of a key. Channels with the same `auth` share one
 * access, and so one token.
 */
import type { ChannelEntry } from '../../schemas/config/catalog.ts'
import type { ChannelAuth } from '../../schemas/config/channel-auth.ts'
import { maskSecrets } from '../core/call-log/redact.ts'
import { authSecrets, noteToken } from '../core/routing/channel-access.ts'
import { awsSignatures } from './aws.ts'
import { clockProblem } from './clock.ts'
import { entraTokens } from './entra.ts'
import { googleTokens } from './google.ts'
import { hs256Tokens } from './hs256.ts'
import {
  type Access,
  type AccessDeps,
  AccessFailure,
  type FetchToken,
  type Pass,
  type Token,
} from './interface.ts'
import { TokenCache } from './token-cache.ts'

export type { Access, AccessDeps, Pass, SignedRequest } from './interface.ts'
export { AccessFailure } from './interface.ts'

const UNAUTHORIZED = 401

function bearer(fetchToken: FetchToken, now: () => number): Access {
  const cache = new TokenCache(fetchToken, now)
  const passOf = (token: Token): Pass => ({
    headers: [['authorization', `Bearer ${token.text}`]],
    source: token,
    secret: token.text,
  })
  return {
    pass() {
      const token = cache.get()
      return token instanceof Promise ? token.then(passOf) : passOf(token)
    },
    refused: ({ source }, status) => status === UNAUTHORIZED && cache.refused(source as Token),
  }
}

/** Returns `fetch` that keeps the date of the last answer: it tells whether the clock is wrong. */
function dated(send: typeof fetch): { fetch: typeof fetch; lastDate: () => string | null } {
  let date: string | null = null
  return {
    fetch: async (...request) => {
      const answer = await send(...request)
      date = answer.headers.get('date')
      return answer
    },
    lastDate: () => date,
  }
}

function open(auth: ChannelAuth, deps: AccessDeps): Access {
  const { fetch: send, lastDate } = dated(deps.fetch)
  const own = { ...deps, fetch: send }
  const secrets = authSecrets(auth)
  /** Words the failure of a token's server, with the clock where that is the likely cause. */
  const named =
    <T>(work: () => Promise<T>) =>
    async (): Promise<T> => {
      try {
        return await work()
      } catch (error) {
        const cause = error instanceof Error ? error.message : String(error)
        const clock = clockProblem(lastDate(), deps.now())
        const problem = maskSecrets(
          `${auth.type}: ${clock === null ? cause : `${clock} (${cause})`}`,
          secrets,
        )
        deps.onFailure(auth.type, problem)
        throw new AccessFailure(`No access to the upstream by ${problem}`)
      }
    }
  switch (auth.type) {
    case 'aws-sigv4':
      return awsSignatures(auth, own, named)
    case 'google':
      return bearer(named(googleTokens(auth, own)), deps.now)
    case 'azure-entra':
      return bearer(named(entraTokens(auth, own)), deps.now)
    case 'jwt-hs256':
      return bearer(named(hs256Tokens(auth, own)), deps.now)
  }
}

/** Returns what gives the access of a channel that has `auth`. */
export function channelAccess(deps: AccessDeps): (channel: ChannelEntry) => Access {
  const byChannel = new WeakMap<ChannelEntry, Access>()
  // A changed configuration has new objects of channels, and mostly the same `auth`: its token goes on.
  const byAuth = new Map<string, Access>()
  return (channel) => {
    const known = byChannel.get(channel)
    if (known !== undefined) return known
    const text = JSON.stringify(channel.auth)
    const shared = byAuth.get(text) ?? open(channel.auth!, deps)
    byAuth.set(text, shared)
    const access = noting(shared, channel, deps.onToken)
    byChannel.set(channel, access)
    return access
  }
}

/** Returns the access, noting each token as a secret of the channel: an upstream may quote it. */
function noting(access: Access, channel: ChannelEntry, onToken: AccessDeps['onToken']): Access {
  let last = ''
  const noted = (pass: Pass): Pass => {
    if (pass.secret !== last) {
      last = pass.secret
      noteToken(channel, last)
      onToken(last)
    }
    return pass
  }
  return {
    pass(request) {
      const pass = access.pass(request)
      return pass instanceof Promise ? pass.then(noted) : noted(pass)
    },
    refused: (pass, status) => access.refused(pass, status),
  }
}
