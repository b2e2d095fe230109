import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { type Origin, parseOrigin } from '../../../src/upstream/client.ts'

/** A TCP server whose every byte the test decides. Closed, with all its sockets, by `close`. */
export interface RawServer {
  readonly origin: Origin
  readonly port: number
  readonly sockets: Set<Socket>
  /** Connections accepted so far. */
  accepted(): number
  close(): Promise<void>
}

export async function listen(
  server: Server,
  scheme: 'http' | 'https',
  host = '127.0.0.1',
): Promise<RawServer> {
  const sockets = new Set<Socket>()
  let accepted = 0
  server.on('connection', (socket: Socket) => {
    accepted++
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    origin: parseOrigin(`${scheme}://${host}:${port}`).origin,
    port,
    sockets,
    accepted: () => accepted,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Serves plain connections. */
export function startRawServer(onSocket: (socket: Socket) => void): Promise<RawServer> {
  return listen(createServer({ allowHalfOpen: true }, onSocket), 'http')
}

/** Calls back with each complete request, head and body as one latin1 text. Bodies by content-length only. */
export function readRequests(socket: Socket, onRequest: (text: string) => void): void {
  let held = ''
  socket.on('data', (bytes: Buffer) => {
    held += bytes.toString('latin1')
    for (;;) {
      const headEnd = held.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(held.slice(0, headEnd + 2))?.[1] ?? 0)
      const end = headEnd + 4 + length
      if (held.length < end) return
      const request = held.slice(0, end)
      held = held.slice(end)
      onRequest(request)
    }
  })
}
