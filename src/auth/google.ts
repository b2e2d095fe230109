/** Tokens of Google Cloud: of a service account, of other credentials in a file, or of the metadata server. */
import type { AuthOf } from '../../schemas/config/channel-auth.ts'
import type { AuthorizerDeps, FetchToken } from './interface.ts'

/** The life of a token whose server names none. */
const USUAL_LIFE_MS = 60 * 60_000

function parseCredentials(credentials: string): object {
  try {
    const value: unknown = JSON.parse(credentials)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Its text is a secret, and a parser's message quotes it.
  }
  throw new Error('`credentials` is not the JSON text of a file of credentials')
}

export const googleTokens =
  (auth: AuthOf<'google'>, { fetch: send }: Pick<AuthorizerDeps, 'fetch'>): FetchToken =>
  async () => {
    const { GoogleAuth } = await import('google-auth-library')
    // Made for each token: the library would answer one that it kept.
    const client = await new GoogleAuth({
      scopes: auth.scopes,
      // No token depends on the project. Without a name the library starts the command line of Google Cloud to ask for one.
      projectId: 'none',
      ...(auth.credentials_file !== undefined && { keyFile: auth.credentials_file }),
      ...(auth.credentials !== undefined && { credentials: parseCredentials(auth.credentials) }),
      clientOptions: { transporterOptions: { fetchImplementation: send } },
    }).getClient()
    const { token } = await client.getAccessToken()
    if (!token) throw new Error('the token endpoint answered without a token')
    const { expiry_date: endsAt } = client.credentials
    // The library reads the same clock.
    return { text: token, lifeMs: endsAt ? endsAt - Date.now() : USUAL_LIFE_MS }
  }
