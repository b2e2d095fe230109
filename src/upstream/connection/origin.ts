import { isIP } from 'node:net'

/** The server that connections go to. Two origins with the same `key` share connections. */
export interface Origin {
  readonly key: string
  readonly tls: boolean
  /** Name or address to connect to, IPv6 without brackets. */
  readonly host: string
  readonly port: number
  /** Name sent for SNI; absent for addresses and without TLS. */
  readonly servername?: string
  /** Value of the Host header. */
  readonly authority: string
}

const HTTP_PORT = 80
const HTTPS_PORT = 443

/**
 * Reads a channel's base URL.
 *
 * @returns the origin, and the URL's path without a final slash, to be put before every request path
 * @throws TypeError when it is no URL, not http(s), or has credentials, a query or a fragment. The message never
 *   contains credentials.
 */
export function parseOrigin(baseUrl: string): { origin: Origin; pathPrefix: string } {
  if (!URL.canParse(baseUrl)) throw new TypeError('the base URL is not a valid absolute URL')
  const url = new URL(baseUrl)
  if (url.username !== '' || url.password !== '') {
    throw new TypeError('the base URL must not contain credentials')
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new TypeError(`the base URL must begin with http:// or https://, not ${url.protocol}`)
  }
  if (url.search !== '' || url.hash !== '') {
    throw new TypeError('the base URL must have neither a query nor a fragment')
  }
  if (url.port === '0') throw new TypeError('the base URL must not have port 0')
  const tls = url.protocol === 'https:'
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
  const port = url.port === '' ? (tls ? HTTPS_PORT : HTTP_PORT) : Number(url.port)
  const origin: Origin = {
    key: `${url.protocol}//${url.hostname}:${port}`,
    tls,
    host,
    port,
    ...(tls && isIP(host) === 0 ? { servername: host } : {}),
    authority: url.host,
  }
  return { origin, pathPrefix: url.pathname.replace(/\/+$/, '') }
}
