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

/** Returns the session from the first header that has one; the empty string without any. */
export function readSession(header: (name: string) => string): string {
  for (const name of SESSION_HEADERS) {
    const session = header(name)
    if (session !== '') return session
  }
  return ''
}
