import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

export const LOOPBACK = '127.0.0.1'

/**
 * Ports are taken from below Linux's range for outgoing connections (32768 up). Inside it a client that
 * tries again and again while its engine restarts can be given the engine's own port and connect to itself.
 */
const FIRST_PORT = 20_000
const LAST_PORT = 32_767
const PORT_ATTEMPTS = 200

/** Returns whether this TCP port of the loopback address is free now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ host: LOOPBACK, port, exclusive: true }, () => probe.close(() => resolve(true)))
  })
}

/**
 * Returns a TCP port of the loopback address that is free now.
 * @throws Error when the tried ones are in use
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
    const port = randomInt(FIRST_PORT, LAST_PORT + 1)
    if (await isPortFree(port)) return port
  }
  throw new Error(`no free port on ${LOOPBACK} between ${FIRST_PORT} and ${LAST_PORT}`)
}
