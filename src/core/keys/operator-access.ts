/** Controls access to metrics and to the details of readiness on the public listener. */
import { createHash, timingSafeEqual } from 'node:crypto'

/** All requests, none, or those with the token. */
export type OperatorAccess = 'open' | 'closed' | { readonly token: string }

interface OperatorAccessRules {
  /** Null: none is configured. */
  readonly token: string | null
  readonly hasAdminListener: boolean
  /** The public listener can be reached only from this machine. */
  readonly isLoopback: boolean
  /** The configuration has `profile: public`: a proxy may lead strangers to a loopback listener. */
  readonly isPublicProfile: boolean
}

export function operatorAccess(rules: OperatorAccessRules): OperatorAccess {
  if (rules.token !== null) return { token: rules.token }
  return rules.hasAdminListener || rules.isPublicProfile || !rules.isLoopback ? 'closed' : 'open'
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Takes the same time wherever the two differ. */
export const sameToken = (expected: string, presented: string): boolean =>
  timingSafeEqual(digest(expected), digest(presented))
