/** The session that a client names for a conversation. Some proxies drop header names with underscores. */
export const SESSION_HEADERS = [
  'session_id',
  'session-id',
  'conversation_id',
  'conversation-id',
  'x-session-id',
  'x-claude-code-session-id',
  'x-opencode-session',
] as const

const SESSION_ID = /^[\x20-\x7e]{1,128}$/

/** Returns a session as the call log has it: at most 128 printable characters. Any other text counts as none: null. */
export const toSessionId = (session: string): string | null => (SESSION_ID.test(session) ? session : null)

/** Returns the session of a request as the call log has it. */
export const readSessionId = (header: (name: string) => string): string | null =>
  toSessionId(readSession(header))

/** Returns the session from the first header that has one; the empty string without any. */
export function readSession(header: (name: string) => string): string {
  for (const name of SESSION_HEADERS) {
    const session = header(name)
    if (session !== '') return session
  }
  return ''
}
