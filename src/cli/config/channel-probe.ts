import { connect } from 'node:net'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { hasAccess, maskedTail } from '../../core/routing/channel-access.ts'
import type { ChannelHealth } from '../wiring.ts'

const CONNECT_BOUND_MS = 3_000
const PORTS: Record<string, number> = { 'http:': 80, 'https:': 443 }

/** Checks whether each channel's host takes connections now. Sends nothing: a call might cost money. */
export const probeChannels = (channels: readonly ChannelEntry[]): Promise<ChannelHealth[]> =>
  Promise.all(channels.map(probe))

async function probe(channel: ChannelEntry): Promise<ChannelHealth> {
  const isOff = !hasAccess(channel)
  const reason = isOff ? null : await reach(new URL(channel.base_url))
  return {
    id: channel.id,
    provider: channel.provider ?? null,
    protocol: channel.protocol,
    base_url: channel.base_url,
    models: Object.keys(channel.models),
    priority: channel.priority,
    weight: channel.weight,
    keys: channel.api_keys.map(maskedTail),
    health: isOff ? 'off' : reason === null ? 'reachable' : 'unreachable',
    reason,
  }
}

/** Connects; returns null, or the reason of the failure. */
function reach({ protocol, hostname, port }: URL): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || PORTS[protocol]),
      timeout: CONNECT_BOUND_MS,
    })
    const end = (reason: string | null) => {
      socket.destroy()
      resolve(reason)
    }
    socket.once('connect', () => end(null))
    socket.once('timeout', () => end(`no connection within ${CONNECT_BOUND_MS} ms`))
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
  })
}
