/** A gateway process's share in the limits that hold across all of them. */

import { LIMITS_SUBJECT } from '../../../schemas/accounts/limits.ts'
import { ulid } from '../../core/keys/ids.ts'
import { Limiter } from '../../limits/limits.ts'
import { openMailbox } from '../../nats/mailbox.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Boot } from '../messages.ts'

export function openGatewayLimiter({ natsUrl, index }: Boot, log: Log): Limiter {
  const self = ulid()
  // The settlement publisher already logs whether NATS is reachable.
  const quiet = { info: log.debug, warn: log.debug, error: log.debug }
  const name = `tollgate gateway ${index} limits`
  return new Limiter({
    self,
    log,
    openMailbox: (handlers) =>
      openMailbox({ url: natsUrl, name, log: quiet, group: LIMITS_SUBJECT, address: self }, handlers),
  })
}
