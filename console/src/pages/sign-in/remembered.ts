/** What the tab remembers while the user is at a provider, or signs in to accept an invitation. */

interface Way {
  readonly ticket: string
  /** The page to go to afterwards; null in a window that a page opened, which closes. */
  readonly next: string | null
  /** True if a signed-in user connects the provider. */
  readonly isConnecting: boolean
}

const WAY = 'tollgate-way'
const INVITATION = 'tollgate-invitation'

/** @param storage of the window that goes to the provider */
export const rememberWay = (way: Way, storage = sessionStorage): void =>
  storage.setItem(WAY, JSON.stringify(way))

/** Returns the way and forgets it. */
export function takeWay(): Way | null {
  const text = sessionStorage.getItem(WAY)
  sessionStorage.removeItem(WAY)
  return text === null ? null : (JSON.parse(text) as Way)
}

const INVITATION_HASH = /^#invitation=([\w-]+)$/

/** Returns the token of the invitation that was opened in this tab, and removes it from the address. */
export function takeOpenedInvitation(): string | null {
  const [, token] = INVITATION_HASH.exec(location.hash) ?? []
  if (token !== undefined) {
    sessionStorage.setItem(INVITATION, token)
    history.replaceState(null, '', location.pathname + location.search)
  }
  return sessionStorage.getItem(INVITATION)
}

export const forgetInvitation = (): void => sessionStorage.removeItem(INVITATION)
