/** The authorizers of channels with `auth`, as the service has them, without a log. */
import { openAuthorizers } from '../../src/server/channels/authorizers.ts'

export const authorizerOf = openAuthorizers({ hideRecent() {}, warn() {} })
