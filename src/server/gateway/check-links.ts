/** Checks the links of a request before an upstream gets them: each leads to a public address, or to this store. */
import { from, lastValueFrom, mergeMap } from 'rxjs'
import { Failure } from '../../../schemas/failure.ts'
import { checkUrl } from '../../fetch/guarded-fetch.ts'
import { checkPublicLink, type Resolve } from '../../fetch/public-link.ts'
import type { ObjectStore } from '../../storage/store.ts'

/** Hosts that the links of one request name: each is resolved. */
export const MAX_LINKED_HOSTS = 32
const MAX_AT_ONCE = 4

/** Any key: a link to it shows where the store's links lead. */
const ANY_KEY = 'inputs/any'

const tooMany = (count: number): Failure =>
  new Failure(
    'invalid_request',
    `The links of the request lead to ${count} hosts; at most ${MAX_LINKED_HOSTS} are allowed. Send fewer, or send the content itself.`,
  )

interface LinkCheckOptions {
  readonly store: Pick<ObjectStore, 'makePermanentLink' | 'makeLink'>
  /** In place of the machine's resolver. */
  readonly resolve?: Resolve
}

/**
 * Returns a check of scheme, credentials and address of links. It resolves each host once, and fetches nothing.
 * It throws `Failure` `invalid_request` that names the link.
 */
export function makeLinkChecker({
  store,
  resolve,
}: LinkCheckOptions): (urls: readonly string[]) => Promise<void> {
  /** Returns the URL prefixes of files that this service stored: requests may name those, wherever the store is. */
  const listOwnPrefixes = async (): Promise<readonly string[]> => {
    const links = [store.makePermanentLink(ANY_KEY), await store.makeLink(ANY_KEY, Date.now())]
    return links.map((link) => link.slice(0, link.indexOf(ANY_KEY)))
  }
  return async (urls) => {
    if (urls.length === 0) return
    const own = await listOwnPrefixes()
    const byHost = new Map<string, string>()
    for (const url of new Set(urls)) {
      const { href, host } = checkUrl(url)
      if (!own.some((prefix) => href.startsWith(prefix))) byHost.set(host, url)
    }
    if (byHost.size > MAX_LINKED_HOSTS) throw tooMany(byHost.size)
    const checks = from(byHost.values()).pipe(mergeMap((url) => checkPublicLink(url, resolve), MAX_AT_ONCE))
    await lastValueFrom(checks, { defaultValue: null })
  }
}
