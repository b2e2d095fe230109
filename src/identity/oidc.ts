/** Sign-in by an OpenID Connect provider: authorization code with PKCE, state and nonce. */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  type CustomFetch,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client'
import type { OidcProvider } from '../../schemas/config/file.ts'

const TIMEOUT_SECONDS = 10
const DEFAULT_SCOPES = ['openid', 'email', 'profile']
/** A provider replaces its keys and addresses rarely; its signing keys are fetched when one is unknown. */
const DISCOVERED_MS = 60 * 60 * 1000

/** The provider does not answer, or says that it cannot work: nothing was checked. */
class ProviderAway extends Error {
  override readonly name = 'ProviderAway'
}

const FIRST_SERVER_ERROR = 500

/** Fetches the whole answer, so that one that is cut off is seen here. @throws ProviderAway */
const fetchWhole: CustomFetch = async (url, options) => {
  let response: Response
  try {
    response = await fetch(url, options)
    await response.clone().arrayBuffer()
  } catch (error) {
    const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
    throw new ProviderAway(`No answer: ${code ?? message}`)
  }
  if (response.status >= FIRST_SERVER_ERROR) throw new ProviderAway(`Status ${response.status}`)
  return response
}

/** The secrets of one way to the provider and back. */
export interface OidcCheck {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly redirectUri: string
}

/** A person, as the provider knows them. */
export interface OidcPerson {
  readonly subject: string
  /** Null where the provider does not say that it is theirs. */
  readonly verifiedEmail: string | null
  readonly name: string | null
}

export function openOidc() {
  const known = new Map<string, { readonly at: number; readonly found: Promise<Configuration> }>()
  /** Reads the provider's metadata, and again after an hour or a failure. */
  const discover = (provider: OidcProvider): Promise<Configuration> => {
    const key = JSON.stringify(provider)
    const former = known.get(key)
    const now = performance.now()
    if (former !== undefined && former.at > now - DISCOVERED_MS) return former.found
    const issuer = new URL(provider.issuer)
    const found = discovery(issuer, provider.client_id, provider.client_secret, undefined, {
      timeout: TIMEOUT_SECONDS,
      [customFetch]: fetchWhole,
      // The configuration accepts an issuer without TLS only on this machine.
      ...(issuer.protocol === 'http:' && { execute: [allowInsecureRequests] }),
    })
    known.set(key, { at: now, found })
    found.catch(() => known.delete(key))
    return found
  }
  return {
    /** Returns the address at the provider to send the browser to. Rejects where the provider does not answer. */
    async begin(provider: OidcProvider, redirectUri: string): Promise<{ url: string; check: OidcCheck }> {
      const configuration = await discover(provider)
      const check = {
        state: randomState(),
        nonce: randomNonce(),
        verifier: randomPKCECodeVerifier(),
        redirectUri,
      }
      const url = buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: [...new Set(['openid', ...(provider.scopes ?? DEFAULT_SCOPES)])].join(' '),
        state: check.state,
        nonce: check.nonce,
        code_challenge: await calculatePKCECodeChallenge(check.verifier),
        code_challenge_method: 'S256',
      })
      return { url: url.href, check }
    },

    /**
     * Exchanges the code that the provider sent the browser back with.
     * @param query of the address to which the browser came back
     * Rejects where state, nonce, signature or code is wrong, or the provider refused or is down.
     */
    async finish(provider: OidcProvider, check: OidcCheck, query: string): Promise<OidcPerson> {
      const back = new URL(check.redirectUri)
      back.search = query
      const configuration = await discover(provider)
      const tokens = await authorizationCodeGrant(configuration, back, {
        pkceCodeVerifier: check.verifier,
        expectedState: check.state,
        expectedNonce: check.nonce,
        idTokenExpected: true,
      })
      const claims = tokens.claims()!
      const { sub } = claims
      // Many providers put only the subject into the token.
      const person =
        claims.email === undefined ? await fetchUserInfo(configuration, tokens.access_token, sub) : claims
      const { email, email_verified: isVerified, name } = person
      return {
        subject: sub,
        verifiedEmail: isVerified === true && typeof email === 'string' ? email : null,
        name: typeof name === 'string' ? name : null,
      }
    },

    /** Explains an error that means the provider is down; null for every other error. */
    explainAway(error: unknown): string | null {
      // The client wraps it into another error.
      for (let one = error; one instanceof Error; one = one.cause)
        if (one instanceof ProviderAway) return one.message
      return null
    },
  }
}
