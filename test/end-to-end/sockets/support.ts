/** A client of Responses over WebSocket, message by message. */
import { get } from 'node:http'
import { WebSocket } from 'undici'
import type { Teardown } from '../../support/engines.ts'
import { eventually } from '../../support/eventually.ts'

export interface Message {
  readonly type: string
  readonly status?: number
  readonly error?: { readonly code: string; readonly message: string; readonly param?: string }
  readonly headers?: Readonly<Record<string, string>>
  readonly response?: { readonly id: string; readonly output: readonly object[] }
  readonly delta?: string
}

/** Messages after which nothing follows for one request. */
const LAST: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'error',
])

interface Service {
  readonly baseUrl: string
}

export const PATH = '/v1/responses'

export class SocketClient {
  readonly received: Message[] = []
  /** Code and reason with which the server has closed the connection. */
  closed: { readonly code: number; readonly reason: string } | null = null
  readonly #socket: WebSocket
  #read = 0

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => this.received.push(JSON.parse(data) as Message))
    socket.addEventListener('close', ({ code, reason }) => {
      this.closed = { code, reason }
    })
  }

  send(message: object | string): this {
    this.#socket.send(typeof message === 'string' ? message : JSON.stringify(message))
    return this
  }

  create(body: object): this {
    return this.send({ type: 'response.create', ...body })
  }

  /** The messages up to the next that ends a request. */
  async answer(): Promise<readonly Message[]> {
    const end = await eventually('a request is answered', () => {
      const at = this.received.findIndex(({ type }, index) => index >= this.#read && LAST.has(type))
      if (at >= 0) return at + 1
      if (this.closed !== null) throw new Error(`closed: ${this.closed.code} ${this.closed.reason}`)
      return undefined
    })
    const messages = this.received.slice(this.#read, end)
    this.#read = end!
    return messages
  }

  /** The last message for the next request. */
  async last(): Promise<Message> {
    return (await this.answer()).at(-1)!
  }

  async untilClosed(): Promise<{ readonly code: number; readonly reason: string }> {
    return (await eventually('the connection is closed', () => this.closed ?? undefined))!
  }

  close(): void {
    this.#socket.close()
  }
}

export async function connect(
  t: Teardown,
  { baseUrl }: Service,
  key: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<SocketClient> {
  const socket = new WebSocket(baseUrl.replace('http', 'ws') + PATH, {
    headers: {
      authorization: `Bearer ${key}`,
      'openai-beta': 'responses_websockets=2026-02-06',
      ...headers,
    },
  })
  const client = new SocketClient(socket)
  t.teardown(() => client.close())
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', ({ error }) => reject(error))
  })
  return client
}

/** Asks for an upgrade that is refused; returns the status and the body. */
export const askUpgrade = (
  { baseUrl }: Service,
  headers: Readonly<Record<string, string>>,
  path = PATH,
): Promise<{ readonly status: number | undefined; readonly body: string }> => {
  const upgrade = {
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    'sec-websocket-version': '13',
  }
  return new Promise((resolve, reject) => {
    const request = get(baseUrl + path, { headers: { ...upgrade, ...headers }, agent: false })
    request.on('error', reject)
    request.on('upgrade', ({ statusCode: status }, socket) => {
      socket.destroy()
      resolve({ status, body: '' })
    })
    request.on('response', (response) => {
      let body = ''
      response.on('data', (text) => {
        body += text
      })
      response.on('end', () => resolve({ status: response.statusCode, body }))
    })
  })
}
