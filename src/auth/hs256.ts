/** Tokens that are signed here, with the access and secret key of an upstream. */
import type { AuthOf } from '../../schemas/config/channel-auth.ts'
import type { AuthorizerDeps, FetchToken } from './interface.ts'

const LIFE_SECONDS = 30 * 60
/** Valid a moment ago: clocks differ. */
const EARLY_SECONDS = 5
const MS_PER_SECOND = 1000

export const hs256Tokens =
  (auth: AuthOf<'jwt-hs256'>, { now }: Pick<AuthorizerDeps, 'now'>): FetchToken =>
  async () => {
    const { SignJWT } = await import('jose')
    const second = Math.floor(now() / MS_PER_SECOND)
    const text = await new SignJWT({
      iss: auth.access_key,
      exp: second + LIFE_SECONDS,
      nbf: second - EARLY_SECONDS,
    })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .sign(new TextEncoder().encode(auth.secret_key))
    return { text, lifeMs: LIFE_SECONDS * MS_PER_SECOND }
  }
