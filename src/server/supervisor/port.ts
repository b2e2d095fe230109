/** Which port the gateways share. */
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** Processes whose supervisor was killed release their port within this time. */
const PREDECESSOR_BOUND_MS = 5_000
const PREDECESSOR_POLL_MS = 50

function tryPort(host: string, port: number): Promise<number | NodeJS.ErrnoException> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', (error) => resolve(error))
    probe.listen({ host, port, exclusive: true }, () => {
      const address = probe.address()
      const taken = typeof address === 'object' && address !== null ? address.port : port
      probe.close(() => resolve(taken))
    })
  })
}

interface PortRequest {
  readonly host: string
  readonly port: number
  /** The operator named it: no other will do. */
  readonly isNamed: boolean
  /** A service that was killed may hold it for a moment longer. */
  readonly mayBeFreed: boolean
  /** The settings that name another one. */
  readonly variables?: string
}

export interface ChosenPort {
  readonly port: number
  /** The usual one was taken. */
  readonly isAnother: boolean
}

/**
 * Returns the requested port, or any free one for 0. Replaces the default port by a free one when it is taken, but not
 * one that the operator named.
 * @throws Error that names the taken port and the remedy
 */
export async function choosePort(wish: PortRequest): Promise<ChosenPort> {
  const { host, port, isNamed, mayBeFreed, variables = 'TOLLGATE_HOST and TOLLGATE_PORT' } = wish
  const deadline = performance.now() + (mayBeFreed ? PREDECESSOR_BOUND_MS : 0)
  let result = await tryPort(host, port)
  while (isTaken(result) && performance.now() < deadline) {
    await sleep(PREDECESSOR_POLL_MS)
    result = await tryPort(host, port)
  }
  if (isTaken(result) && !isNamed) {
    const another = await tryPort(host, 0)
    if (typeof another === 'number') return { port: another, isAnother: true }
  }
  if (typeof result === 'number') return { port: result, isAnother: false }
  const why = isTaken(result) ? 'the port is taken' : result.message
  throw new Error(
    `Cannot listen on ${host} port ${port}: ${why}. Choose another with ${variables} (0 picks a free one).`,
  )
}

const isTaken = (result: number | NodeJS.ErrnoException): boolean =>
  typeof result !== 'number' && result.code === 'EADDRINUSE'
