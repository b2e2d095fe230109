/**
 * The time that each role may take to stop; a service stops its roles one after another. Manifests leave it that time,
 * see docs/operating.md, "Start and stop".
 */
import { DEFAULT_CHAT_SECONDS } from '../../../schemas/config/catalog.ts'
import type { ChildRole } from '../messages.ts'

/** Time from the request to end to the deadline. */
export const DRAIN_MS: Readonly<Record<ChildRole, number>> = {
  /** Of a chat stream that is open when the drain begins; `limits.chat_seconds`, where that is longer. */
  gateway: DEFAULT_CHAT_SECONDS * 1000,
  /** A submit that is cut off is not sent again: its task waits for the state that the upstream reports. */
  tasks: 20_000,
  settler: 10_000,
}

/** Time from the deadline of a process to its kill, for its journal and its connections. */
export const KILL_AFTER_MS = 20_000
