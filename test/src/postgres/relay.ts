/** A way to PostgreSQL on which a test can lose connections. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/**
 * Answers with the address of the way, which is gone with the test. `join` passes on what either side sends, as it
 * likes; where one side ends the other does.
 */
export async function relayTo(
  t: Test,
  databaseUrl: string,
  join: (client: Socket, server: Socket) => void,
): Promise<string> {
  const url = new URL(databaseUrl)
  const { port, hostname } = url
  const open = new Set<Socket>()
  const relay = createServer((client) => {
    const server = connect(Number(port), hostname)
    for (const [one, other] of [[client, server] as const, [server, client] as const]) {
      open.add(one)
      one
        .on('error', () => {})
        .on('close', () => {
          open.delete(one)
          other.destroy()
        })
    }
    join(client, server)
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  t.teardown(() => {
    relay.close()
    for (const socket of open) socket.destroy()
  })
  url.host = `127.0.0.1:${(relay.address() as AddressInfo).port}`
  return url.href
}
