/** The server with routes of the test's own, and clients whose every byte the test decides. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Observable, of } from 'rxjs'
import type { Test } from 'tap'
import { makeErrorReply } from '../../../pipelines/calls/errors.ts'
import { type AddressLimits, ClientLimits } from '../../../src/http/client-limits.ts'
import type { GatewayRequest, Handler, Reply } from '../../../src/http/handler.ts'
import { type Route, type RoutedPath, Router } from '../../../src/http/router.ts'
import { GatewayServer } from '../../../src/http/server.ts'
import { TrustedProxies } from '../../../src/http/trusted-proxies.ts'

export const HOST = '127.0.0.1'

/** Limits of clients, off where a test says nothing. */
export const clientLimits = ({
  maxBufferedBytes = Number.POSITIVE_INFINITY,
  proxies = [],
  ...perAddress
}: {
  readonly maxBufferedBytes?: number
  readonly proxies?: readonly string[]
} & Partial<AddressLimits> = {}): ClientLimits => {
  const trusted = new TrustedProxies(proxies)
  return new ClientLimits({
    maxBufferedBytes: () => maxBufferedBytes,
    perAddress: () => ({
      connections: null,
      unauthenticatedPerMinute: null,
      bufferedBytes: null,
      ...perAddress,
    }),
    proxies: () => trusted,
  })
}

export const whole = (body: string | Uint8Array, status = 200): Observable<Reply> =>
  of({ type: 'full', status, headers: [['content-type', 'text/plain']], body })

export interface TestServer {
  readonly server: GatewayServer
  readonly port: number
  /** Requests that reached a pipeline. */
  readonly seen: GatewayRequest[]
  /** Errors that nobody foresaw. */
  readonly unforeseen: unknown[]
}

/** A server closed with the test, which must leave nothing in flight. */
export async function serve(
  t: Test,
  routes: Readonly<Record<string, Handler | Route>>,
  clients = clientLimits(),
): Promise<TestServer> {
  const seen: GatewayRequest[] = []
  const unforeseen: unknown[] = []
  const paths = Object.entries(routes).map(([name, answer]): RoutedPath => {
    const [method = '', path = ''] = name.split(' ')
    const route = typeof answer === 'function' ? { handler: answer } : answer
    const seeing = (request: GatewayRequest) => {
      seen.push(request)
      return route.handler(request)
    }
    const handler: Handler = Object.assign(seeing, route.handler)
    return [method, path, { ...route, handler }]
  })
  const server = new GatewayServer({
    maxTextBytes: () => 10 * 1024 * 1024,
    router: new Router(paths),
    clients,
    renderError: (path, requestId) =>
      makeErrorReply(path, requestId, {
        onUnforeseen: (error) => unforeseen.push(error),
        onInternal: () => undefined,
      }),
  })
  const port = await server.listen(HOST, 0)
  t.teardown(() => server.close())
  return { server, port, seen, unforeseen }
}

/** One connection; `received` is all that has come, `gone` resolves when it is closed. */
export class RawClient {
  readonly socket: Socket
  readonly gone: Promise<unknown>
  received = Buffer.alloc(0)

  constructor(port: number) {
    this.socket = connect({ port, host: HOST, allowHalfOpen: true })
    this.socket.on('error', () => this.socket.destroy())
    this.socket.on('end', () => this.socket.end())
    this.gone = once(this.socket, 'close')
    this.socket.on('data', (bytes) => {
      this.received = Buffer.concat([this.received, bytes])
    })
  }

  get text(): string {
    return this.received.toString('latin1')
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(bytes)
    return this
  }

  /** The answer is there, as far as `enough` says; the test's own time limit ends a vain wait. */
  async until(enough: (text: string) => boolean): Promise<string> {
    await until(() => enough(this.text) || this.socket.destroyed)
    return this.text
  }
}

export const head = (line: string, ...fields: string[]): string =>
  `${[`${line} HTTP/1.1`, 'host: test', ...fields].join('\r\n')}\r\n\r\n`

/** Sends it on a connection of its own; answers when the server has closed that or `enough` came. */
export async function ask(
  t: Test,
  port: number,
  request: string | Uint8Array,
  enough: (text: string) => boolean = () => false,
): Promise<string> {
  const client = clientOn(t, port)
  const text = await client.send(request).until(enough)
  client.socket.destroy()
  return text
}

export const isWhole = (text: string): boolean => {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, headEnd))?.[1]
  return length !== undefined && text.length >= headEnd + 4 + Number(length)
}

export const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)

/** A client whose connection ends with the test. */
export function clientOn(t: Test, port: number): RawClient {
  const client = new RawClient(port)
  t.teardown(() => client.socket.destroy())
  return client
}

const POLL_MS = 2
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
}
