/** The authorizers of the channels with `auth`, shared by the process. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { type Authorizer, authorizers } from '../../auth/authorizer.ts'
import type { LogOutput } from '../../telemetry/log.ts'

export const openAuthorizers = (
  log: Pick<LogOutput, 'hideRecent' | 'warn'>,
): ((channel: ChannelEntry) => Authorizer) =>
  authorizers({
    fetch,
    now: Date.now,
    elapsed: () => performance.now(),
    env: process.env,
    onToken: (secret) => log.hideRecent(secret),
    onFailure: (auth, problem) =>
      log.warn({ auth, problem }, 'Failed to get a token for an upstream: calls of its channels fail'),
  })
