/** What the tab remembers while the user is at a provider, or signs in to accept an invitation. */

interface Way {
  readonly ticket: string
  /** The page to go to afterwards. */
  readonly next: string
  /** True if a signed-in user connects the provider. */
  readonly isConnecting: boolean
}

const WAY = 'tollgate-way'
const INVITATION = 'tollgate-invitation'

export const rememberWay = (way: Way): void => sessionStorage.setItem(WAY, JSON.stringify(way))

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
