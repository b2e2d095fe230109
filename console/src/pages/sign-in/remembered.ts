/** What this browser tab remembers while the person is at a provider, or signs in to accept an invitation. */

interface Way {
  readonly ticket: string
  /** The page to go to afterwards. */
  readonly next: string
  /** The user connects the provider, and is signed in already. */
  readonly isConnecting: boolean
}

const WAY = 'tollgate-way'
const INVITATION = 'tollgate-invitation'

export const rememberWay = (way: Way): void => sessionStorage.setItem(WAY, JSON.stringify(way))

/** Returns the way once. */
export function takeWay(): Way | null {
  const text = sessionStorage.getItem(WAY)
  sessionStorage.removeItem(WAY)
  return text === null ? null : (JSON.parse(text) as Way)
}

const INVITATION_HASH = /^#invitation=([\w-]+)$/

/** Returns the token of the invitation whose link was opened in this tab, and takes it out of the address. */
export function takeOpenedInvitation(): string | null {
  const [, token] = INVITATION_HASH.exec(location.hash) ?? []
  if (token !== undefined) {
    sessionStorage.setItem(INVITATION, token)
    history.replaceState(null, '', location.pathname + location.search)
  }
  return sessionStorage.getItem(INVITATION)
}

export const forgetInvitation = (): void => sessionStorage.removeItem(INVITATION)
