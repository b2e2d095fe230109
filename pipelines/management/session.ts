/** The cookie of a session, and the checks that a request comes from a page of the console. */
import { Failure } from '../../schemas/failure.ts'
import { deriveCsrfToken } from '../../src/core/keys/bearer-token.ts'
import type { HeaderLookup } from '../../src/core/keys/presented.ts'
import type { GatewayRequest, HeaderList } from '../../src/http/handler.ts'

const SECURE_COOKIE = '__Host-tollgate'
/** For plain HTTP on this machine: browsers take no `__Host-` cookie there. */
const LOCAL_COOKIE = 'tollgate-dev'
const LOCAL_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/
const COOKIE_MAX_AGE_SECONDS = 30 * 24 * 60 * 60
const SAFE_METHODS = new Set(['GET', 'HEAD'])

export interface ClientTransport {
  /** Whether clients reach the service by HTTPS. */
  readonly isSecure: boolean
}

const nameCookie = ({ isSecure }: ClientTransport): string => (isSecure ? SECURE_COOKIE : LOCAL_COOKIE)

/** Returns the token of the session; null without a cookie. */
export function readSessionToken(transport: ClientTransport, header: HeaderLookup): string | null {
  const name = `${nameCookie(transport)}=`
  const cookie = header('cookie')
    .split(/; */)
    .find((one) => one.startsWith(name))
  return cookie?.slice(name.length) || null
}

/**
 * Returns the header that sets the cookie; a null token deletes it.
 * @throws Failure `invalid_request` where the token would cross a network in the clear
 */
export function printSessionCookie(
  transport: ClientTransport,
  header: HeaderLookup,
  token: string | null,
): HeaderList[number] {
  if (!transport.isSecure && !LOCAL_HOST.test(header('host')))
    throw new Failure(
      'invalid_request',
      'Sign-in needs HTTPS, or a browser on the machine of the service. Set TOLLGATE_TLS_CERT and TOLLGATE_TLS_KEY, or TOLLGATE_PUBLIC_URL to the https address of the proxy.',
    )
  const age = token === null ? 0 : COOKIE_MAX_AGE_SECONDS
  const secure = transport.isSecure ? '; Secure' : ''
  return [
    'set-cookie',
    `${nameCookie(transport)}=${token ?? ''}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Lax${secure}`,
  ]
}

/** Returns whether the browser says that a page of this host sends the request. */
function isSameOrigin({ header }: GatewayRequest): boolean {
  if (header('sec-fetch-site') === 'same-origin') return true
  const origin = header('origin')
  return URL.canParse(origin) && new URL(origin).host === header('host')
}

/**
 * Checks that a page of the console sends a request that changes something.
 * @param token of the session; null before sign-in, where no token can be required
 * @throws Failure `permission_denied`
 */
export function assertFromConsole(request: GatewayRequest, token: string | null): void {
  if (SAFE_METHODS.has(request.method)) return
  if (!isSameOrigin(request))
    throw new Failure('permission_denied', 'The request comes from a page of another origin.')
  if (token !== null && request.header('x-csrf-token') !== deriveCsrfToken(token))
    throw new Failure(
      'permission_denied',
      'The header X-CSRF-Token is missing or wrong. Load the page again.',
    )
}
