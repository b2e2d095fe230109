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

/** Removes what the tab keeps for another user than this one. */
export function keepDraftsOf(userId: string): void {
  const owner = sessionStorage.getItem(OWNER)
  if (owner === userId) return
  if (owner !== null) sessionStorage.clear()
  sessionStorage.setItem(OWNER, userId)
}
