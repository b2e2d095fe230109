/** The access of channels with `auth` in one process. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { type Access, channelAccess } from '../../access/access.ts'
import type { LogOutput } from '../../telemetry/log.ts'

export const openChannelAccess = (
  log: Pick<LogOutput, 'hideRecent' | 'warn'>,
): ((channel: ChannelEntry) => Access) =>
  channelAccess({
    fetch,
    now: Date.now,
    env: process.env,
    onToken: (secret) => log.hideRecent(secret),
    onFailure: (auth, problem) =>
      log.warn({ auth, problem }, 'Failed to get a token for an upstream: calls of its channels fail'),
  })
