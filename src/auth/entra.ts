/** Tokens of Microsoft Entra by the client credentials of an application. */
import { z } from 'zod'
import type { AuthOf } from '../../schemas/config/channel-auth.ts'
import type { AuthorizerDeps, FetchToken } from './interface.ts'

const MS_PER_SECOND = 1000
const answered = z.object({ access_token: z.string().min(1), expires_in: z.coerce.number().positive() })
const refused = z.object({ error: z.string().optional(), error_description: z.string().optional() })

/** Returns the server's own words about a refusal. */
function readErrorWords(body: unknown): string {
  const { data } = refused.safeParse(body)
  return data?.error_description ?? data?.error ?? 'no reason is given'
}

export const entraTokens = (
  auth: AuthOf<'azure-entra'>,
  { fetch: send }: Pick<AuthorizerDeps, 'fetch'>,
): FetchToken => {
  const url = `${auth.authority}/${encodeURIComponent(auth.tenant_id)}/oauth2/v2.0/token`
  return async () => {
    const answer = await send(url, {
      method: 'POST',
      redirect: 'error',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: auth.client_id,
        client_secret: auth.client_secret,
        scope: auth.scope,
      }),
    })
    const body: unknown = await answer.json().catch(() => null)
    if (!answer.ok)
      throw new Error(`the token endpoint answered with status ${answer.status}: ${readErrorWords(body)}`)
    const { success, data } = answered.safeParse(body)
    if (!success) throw new Error('the token endpoint answered without a token')
    return { text: data.access_token, lifeMs: data.expires_in * MS_PER_SECOND }
  }
}
