import { deepEqual } from 'node:assert/strict'
import type { Test } from 'tap'
import { UpstreamClient, type UpstreamClientOptions } from '../../../src/upstream/client.ts'
import { type RawServer, readRequests, startRawServer } from './raw-server.ts'

/** A client closed with the test, which must leave nothing behind. */
export function clientFor(t: Test, options?: UpstreamClientOptions): UpstreamClient {
  const client = new UpstreamClient(options)
  t.teardown(() => {
    client.close()
    const { open, idle, inFlight } = client.readStats()
    deepEqual({ open, idle, inFlight }, { open: 0, idle: 0, inFlight: 0 }, 'nothing is left behind')
  })
  return client
}

/** A raw server closed with the test. It closes its side of a connection when the client does. */
export async function serverFor(t: Test, onSocket: Parameters<typeof startRawServer>[0]): Promise<RawServer> {
  const server = await startRawServer((socket) => {
    socket.on('end', () => socket.end())
    onSocket(socket)
  })
  t.teardown(() => server.close())
  return server
}

/** A raw server that writes what `reply` gives for each request, numbered from 0 over all connections. */
export function replyingServer(
  t: Test,
  reply: (request: string, number: number) => string,
): Promise<RawServer> {
  let number = 0
  return serverFor(t, (socket) => {
    readRequests(socket, (request) => socket.write(reply(request, number++), 'latin1'))
  })
}

export function answer(body: string, ...fields: string[]): string {
  const lines = [`HTTP/1.1 200 OK`, `content-length: ${body.length}`, ...fields, '', body]
  return lines.join('\r\n')
}

/** Waits, turn by turn of the event loop, until something holds. The test's own time limit ends a vain wait. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2))
}
