import { readFileSync } from 'node:fs'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { listen, type RawServer, readRequests } from './raw-server.ts'

const fixturePath = (name: string): string =>
  fileURLToPath(new URL(`../../fixtures/tls/${name}`, import.meta.url))

export const TEST_CA_PATH = fixturePath('test-only-ca.crt')
export const TEST_CA = readFileSync(TEST_CA_PATH, 'utf8')

export interface TlsServer extends RawServer {
  /** One for each connection, in the order of their handshakes. */
  readonly handshakes: { resumed: boolean; alpn: string | false | null; servername: string | false }[]
}

export interface TlsServerOptions extends TlsOptions {
  /** Whose certificate is shown. */
  certificate?: 'localhost' | 'other'
  /** The name or address that clients use. */
  host?: string
}

/** A TLS server that calls back with each complete request. Closed with the test. */
export async function startTlsServer(
  t: Test,
  onRequest: (socket: TLSSocket, request: string) => void,
  { certificate = 'localhost', host = 'localhost', ...options }: TlsServerOptions = {},
): Promise<TlsServer> {
  const handshakes: TlsServer['handshakes'] = []
  const credentials = {
    key: readFileSync(fixturePath(`test-only-${certificate}.key`)),
    cert: readFileSync(fixturePath(`test-only-${certificate}.crt`)),
  }
  const server = createServer({ ALPNProtocols: ['h2', 'http/1.1'], ...credentials, ...options }, (socket) => {
    const { alpnProtocol, servername } = socket as TLSSocket & { servername: string | false }
    handshakes.push({ resumed: socket.isSessionReused(), alpn: alpnProtocol, servername })
    socket.on('error', () => socket.destroy())
    readRequests(socket, (request) => onRequest(socket, request))
  })
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  const raw = await listen(server, 'https', host)
  t.teardown(() => raw.close())
  return { ...raw, handshakes }
}
