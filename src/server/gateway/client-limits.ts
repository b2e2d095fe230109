/** Limits of what clients may hold, from the configuration in force. */
import { totalmem } from 'node:os'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { addressPrefix } from '../../core/keys/address-prefix.ts'
import { stillHolds } from '../../core/still-holds.ts'
import { type AddressLimits, ClientLimits, type ClientRefusal } from '../../http/client-limits.ts'
import { TrustedProxies } from '../../http/trusted-proxies.ts'

const BYTES_PER_MIB = 1024 * 1024
/** Of the memory, for the bodies of all gateway processes. */
const BUFFERED_SHARE = 0.25
/** At most one line of the log in this time. */
const LOG_INTERVAL_MS = 10_000

/** Returns the memory of the machine, or of the container that the process runs in, in bytes. */
function readMemoryBytes(): number {
  const constrained = process.constrainedMemory()
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
}

interface ClientLimitDeps {
  readonly config: () => ConfigFile
  readonly gatewayCount: number
  readonly count: (reason: ClientRefusal) => void
  readonly log: { warn(details: object, message: string): void }
}

const toBytes = (mib: number | null): number | null => (mib === null ? null : mib * BYTES_PER_MIB)

const readLimits = ({
  connections,
  unauthenticated_per_minute,
  buffered_mib,
}: ConfigFile['server']['per_address']): AddressLimits => ({
  connections,
  unauthenticatedPerMinute: unauthenticated_per_minute,
  bufferedBytes: toBytes(buffered_mib),
})

export function openClientLimits({ config, gatewayCount, count, log }: ClientLimitDeps): ClientLimits {
  const ownShare = (readMemoryBytes() * BUFFERED_SHARE) / gatewayCount
  let quietUntil = 0
  let configured = config().server.per_address
  let perAddress = readLimits(configured)
  let networks: readonly string[] = []
  let proxies = new TrustedProxies(networks)
  return new ClientLimits({
    maxBufferedBytes: () => toBytes(config().server.max_buffered_mib) ?? ownShare,
    // Read for each body: the object is made once for each configuration.
    perAddress: () => {
      const { per_address } = config().server
      if (per_address !== configured) {
        configured = per_address
        perAddress = readLimits(per_address)
      }
      return perAddress
    },
    proxies: () => {
      const { trusted_proxies } = config().server
      if (trusted_proxies !== networks) {
        networks = trusted_proxies
        proxies = new TrustedProxies(networks)
      }
      return proxies
    },
    onRefused: (reason, address) => {
      count(reason)
      if (stillHolds(quietUntil, Date.now(), LOG_INTERVAL_MS)) return
      quietUntil = Date.now() + LOG_INTERVAL_MS
      log.warn({ reason, address_prefix: addressPrefix(address) }, 'Refused a client that is over a limit')
    },
  })
}
