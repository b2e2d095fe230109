/** Small HTTP servers of tests, on free ports of loopback. */
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import type { Teardown } from './engines.ts'

const LOOPBACK = '127.0.0.1'

/** Serves at `address` until the test ends, and returns the base URL. */
export async function serveHttp(t: Teardown, answer: RequestListener, address = LOOPBACK): Promise<string> {
  const server = createServer(answer).listen(0, address)
  await once(server, 'listening')
  t.teardown(() => server.close().closeAllConnections())
  return `http://${address}:${(server.address() as AddressInfo).port}`
}

/** Answers with JSON. */
export const sendJson = (
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: OutgoingHttpHeaders = {},
): unknown =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))

/** Reads the body of a request to its end. */
export async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

/** Reads the body of a request as text. */
export const textOf = async (request: IncomingMessage): Promise<string> => (await bytesOf(request)).toString()

/** Returns a port on which nobody listens. */
export async function closedPort(): Promise<number> {
  const server = createTcpServer().listen(0, LOOPBACK)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return port
}
