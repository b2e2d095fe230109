/** Checks a link before it is forwarded: an upstream in the operator's network must not fetch from that network. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { checkUrl, readHost, unreachable } from './guarded-fetch.ts'
import { isPublicAddress } from './public-address.ts'

/** A resolver that is slower is taken for one that does not know the name. */
const RESOLVE_TIMEOUT_MS = 2_000
/** Names that no public resolver knows: of this host, of its network, and without a dot (RFC 6761, 6762, 8375, 9476). */
const INNER_NAME = /(?:^|\.)(?:localhost|local|internal|home\.arpa|lan|intranet|corp|private)\.?$|^[^.]+\.?$/i

export type Resolve = (host: string) => Promise<readonly { readonly address: string }[]>

const resolveName: Resolve = (host) => lookup(host, { all: true })

/** Resolves a name. Returns no address when it is unknown or slow to resolve: the upstream resolves it itself. */
async function resolveAddresses(host: string, resolve: Resolve): Promise<readonly string[]> {
  const late = Promise.withResolvers<readonly []>()
  const timer = setTimeout(() => late.resolve([]), RESOLVE_TIMEOUT_MS)
  try {
    const found = await Promise.race([resolve(host), late.promise])
    return found.map(({ address }) => address)
  } catch {
    return []
  } finally {
    clearTimeout(timer)
  }
}

async function isInner(host: string, resolve: Resolve): Promise<boolean> {
  if (isIP(host) !== 0) return !isPublicAddress(host)
  if (INNER_NAME.test(host)) return true
  return (await resolveAddresses(host, resolve)).some((address) => !isPublicAddress(address))
}

/**
 * Checks scheme, credentials and address of a link, without fetching it.
 * @throws Failure `invalid_request`, in the words of a file that cannot be fetched
 */
export async function checkPublicLink(text: string, resolve: Resolve = resolveName): Promise<void> {
  const url = checkUrl(text)
  if (await isInner(readHost(url), resolve)) throw unreachable(url)
}
