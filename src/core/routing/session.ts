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

/** Returns the session as the call log has it: at most 128 printable characters. Any other text counts as none: null. */
export function readSessionId(header: (name: string) => string): string | null {
  const session = readSession(header)
  return SESSION_ID.test(session) ? session : null
}

/** Returns the session from the first header that has one; the empty string without any. */
export function readSession(header: (name: string) => string): string {
  for (const name of SESSION_HEADERS) {
    const session = header(name)
    if (session !== '') return session
  }
  return ''
}
