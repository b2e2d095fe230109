/** Links that clients give. Each is refused unless every reader of URLs finds the same host in it. */

/** Why a text is no link that is taken. */
export type LinkFault = 'invalid' | 'not_web' | 'credentials' | 'ambiguous'

/** Some readers take a backslash for a slash, and some leave control characters out. */
const AMBIGUOUS = /[\\\p{Cc}]/u
const WEB = /^https?:$/
/** The beginning up to the path. Some readers look for the `@` of credentials behind `?` and `#` as well. */
const BEGINNING = /^https?:\/\/([^/]+)/i
const HOST = /^(\[[^\]]*\]|[^:?#]*)/
const IPV4 = /^\d+\.\d+\.\d+\.\d+$/

/** Returns the link of a text, or why it is not taken. */
export function readWebLink(text: string): URL | LinkFault {
  const url = URL.parse(text)
  if (url === null) return 'invalid'
  if (!WEB.test(url.protocol)) return 'not_web'
  if (AMBIGUOUS.test(text)) return 'ambiguous'
  const beginning = BEGINNING.exec(text)?.[1]
  if (url.username !== '' || url.password !== '' || beginning?.includes('@')) return 'credentials'
  const host = beginning && HOST.exec(beginning)?.[1]
  // `010.8.8.8` is 8.8.8.8 or 10.8.8.8, and `%31` a digit or not.
  const isAmbiguous = !host || host.includes('%') || (IPV4.test(url.hostname) && host !== url.hostname)
  return isAmbiguous ? 'ambiguous' : url
}
