/** The access of channels with `auth`, as the service has it, without a log. */
import { openChannelAccess } from '../../src/server/channels/access.ts'

export const accessOf = openChannelAccess({ hideRecent() {}, warn() {} })
