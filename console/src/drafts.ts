/** What a user has typed and not sent. The tab keeps it, so that it survives navigation and reload. */

const PREFIX = 'draft '
const OWNER = 'tollgate-user'

/** Returns the draft of this name; null without one. */
export function readDraft<Draft>(name: string): Draft | null {
  const text = sessionStorage.getItem(PREFIX + name)
  return text === null ? null : (JSON.parse(text) as Draft)
}

/** Keeps a draft; null removes it. */
export function storeDraft(name: string, draft: unknown): void {
  if (draft === null) sessionStorage.removeItem(PREFIX + name)
  else
    try {
      sessionStorage.setItem(PREFIX + name, JSON.stringify(draft))
    } catch {
      // A draft that the browser has no room for lives as long as its page.
    }
}

/** Begins the names of what the browser keeps of a user besides drafts. */
export const KEPT = 'tollgate-kept '

/** Removes everything that the browser keeps of the user who signs out. */
export function forgetUser(): void {
  sessionStorage.clear()
  for (const name of Object.keys(localStorage)) if (name.startsWith(KEPT)) localStorage.removeItem(name)
}

/** Removes what the tab keeps of any user but this one. */
export function forgetOtherUsers(userId: string): void {
  const owner = sessionStorage.getItem(OWNER)
  if (owner === userId) return
  if (owner !== null) sessionStorage.clear()
  sessionStorage.setItem(OWNER, userId)
}
