/** Which port the gateways share. */
import { createServer } from 'node:net'

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

/**
 * The port asked for, or any free one for 0. The usual port gives way to a free one when it is taken; one that the
 * operator named does not.
 * @throws Error that says which port is taken and what to do
 */
export async function choosePort(host: string, port: number, isNamed: boolean): Promise<number> {
  const result = await tryPort(host, port)
  if (typeof result === 'number') return result
  if (!isNamed && result.code === 'EADDRINUSE') return choosePort(host, 0, true)
  const why = result.code === 'EADDRINUSE' ? 'the port is taken' : result.message
  throw new Error(
    `Cannot listen on ${host} port ${port}: ${why}. Choose another with TOLLGATE_HOST and TOLLGATE_PORT (0 picks a free one).`,
  )
}
