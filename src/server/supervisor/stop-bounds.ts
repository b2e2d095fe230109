/**
 * The time that each role may take to stop; a service stops its roles one after another. Manifests leave it that time,
 * see docs/operating.md, "Start and stop".
 */
import { DEFAULT_CHAT_SECONDS, MAX_CHAT_SECONDS } from '../../../schemas/config/catalog.ts'
import { loadConfigFile } from '../../config/load.ts'
import { makeConfigEnvironment } from '../configuration.ts'
import type { ChildRole } from '../messages.ts'

const MS_PER_SECOND = 1000

/** Time from the request to end to the deadline. */
export const DRAIN_MS: Readonly<Record<ChildRole, number>> = {
  /** Of a chat stream that is open when the drain begins; `limits.chat_seconds`, where that is longer. */
  gateway: DEFAULT_CHAT_SECONDS * MS_PER_SECOND,
  /** A submit that is cut off is not sent again: its task waits for the state that the upstream reports. */
  tasks: 20_000,
  settler: 10_000,
  'settler+tasks': 20_000,
}

/** Time from the deadline of a process to its kill, for its journal and its connections. */
export const KILL_AFTER_MS = 20_000

/**
 * Returns the time that gateways get, by the file as it is now. If the file is refused it is the longest: each call still
 * ends at its own limit.
 */
export function readDrainMs(configPath: string, simulatorUrl: string | null): number {
  const loaded = loadConfigFile(configPath, makeConfigEnvironment(simulatorUrl))
  const chatSeconds = loaded.ok ? loaded.config.limits.chat_seconds : MAX_CHAT_SECONDS
  return Math.max(DRAIN_MS.gateway, chatSeconds * MS_PER_SECOND)
}
