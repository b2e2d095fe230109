/** What every statement is checked against: one service with a model of each family, and providers that do as asked. */
import { request } from 'node:http'
import { type ChatProtocol, PLAIN } from '../end-to-end/protocols/support.ts'
import { balanceOf, findReceived, rowOf, upstreamCalls, upstreamRequest } from '../end-to-end/support.ts'
import { eventually } from '../support/eventually.ts'
import { closedPort } from '../support/http-server.ts'
import { processTeardown, serviceOfProcess } from '../support/process-service.ts'
import type { LentService, LogJson } from '../support/service.ts'
import { configuration } from './configuration.ts'
import { type ScriptedUpstream, startScriptedUpstream } from './scripted-upstream.ts'

// biome-ignore lint/suspicious/noExplicitAny: statements read fields of every endpoint; what is absent is undefined.
export type Json = any

/** What a request is answered. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Json
  /** The request id. */
  readonly trace: string
}

export interface Streamed extends Answer {
  /** Whether it ended as HTTP wants it, with the terminating chunk. */
  readonly isWhole: boolean
}

export interface CallOptions {
  readonly stream?: boolean
  /** What the user says: `hi`, or directives of the simulated provider. */
  readonly say?: string
  readonly more?: object
  readonly headers?: Readonly<Record<string, string>>
}

/** Directives for the simulated provider, as a part of a prompt. */
export const simulate = (directives: string): string => `hi [simulate: ${directives}]`

export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text()
  const trace = response.headers.get('x-gateway-trace') ?? ''
  return { status: response.status, headers: response.headers, text, body: parsed(text), trace }
}

/** A key and its account. */
export class Client {
  readonly service: LentService
  readonly accountId: string
  readonly keyId: string
  readonly key: string

  constructor(service: LentService, made: { accountId: string; keyId: string; key: string }) {
    this.service = service
    this.accountId = made.accountId
    this.keyId = made.keyId
    this.key = made.key
  }

  async send(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): Promise<Answer> {
    return answerOf(await this.open(method, path, body, headers, signal))
  }

  /** The response as it arrives. */
  open(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): Promise<Response> {
    const isText = typeof body === 'string' || body instanceof FormData
    return fetch(this.service.baseUrl + path, {
      method,
      ...(body !== undefined && { body: isText ? body : JSON.stringify(body) }),
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(signal && { signal }),
    })
  }

  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Answer> {
    return this.send('GET', path, undefined, headers)
  }

  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer> {
    return this.send('POST', path, body, headers)
  }

  /** The least that can be said to a model in each protocol. */
  call(protocol: ChatProtocol, model: string, options: CallOptions = {}): Promise<Answer> {
    const { path, body } = callOf(protocol, model, options)
    return this.post(path, body, options.headers)
  }

  /** Streams a call on a connection of its own, and reads it until it ends, breaks or `leave` says so of its text. */
  stream(
    protocol: ChatProtocol,
    model: string,
    { leave = () => false, ...options }: CallOptions & { readonly leave?: (text: string) => boolean },
  ): Promise<Streamed> {
    const { path, body } = callOf(protocol, model, { ...options, stream: true })
    const headers = { authorization: `Bearer ${this.key}`, 'content-type': 'application/json' }
    return new Promise((resolve, reject) => {
      const sent = request(this.service.baseUrl + path, {
        method: 'POST',
        headers: { ...headers, ...options.headers },
        agent: false,
      })
      sent.on('error', reject)
      sent.on('response', (incoming) => {
        const pieces: Buffer[] = []
        const text = () => Buffer.concat(pieces).toString()
        incoming.on('data', (piece: Buffer) => {
          pieces.push(piece)
          if (leave(text())) incoming.destroy()
        })
        incoming.on('error', () => undefined)
        incoming.on('close', () =>
          resolve({
            status: incoming.statusCode!,
            headers: new Headers(incoming.headers as Record<string, string>),
            text: text(),
            body: parsed(text()),
            trace: String(incoming.headers['x-gateway-trace']),
            isWhole: incoming.complete,
          }),
        )
      })
      sent.end(JSON.stringify(body))
    })
  }

  /** The call-log row of a request, once it is readable. */
  row({ trace }: Pick<Answer, 'trace'>): Promise<LogJson> {
    return rowOf(this.service, this.key, trace)
  }

  /** Every row, once there are so many. */
  rows(count: number): Promise<LogJson[]> {
    return this.service.logs(this.key, (rows) => rows.length >= count)
  }

  balance() {
    return balanceOf(this.service, this.key)
  }

  /** Waits until the balance is `remaining`; the last one seen otherwise. */
  async remaining(remaining: string): Promise<string> {
    let seen = ''
    const read = async () => {
      seen = (await this.balance()).remaining
      return seen === remaining ? true : undefined
    }
    await eventually('the balance has changed', read).catch(() => undefined)
    return seen
  }

  /** The answer to polls once `status` is none of the open ones. */
  ended(path: string) {
    const open = ['queued', 'running', 'processing', 'pending']
    return eventually(`${path} has ended`, async () => {
      const { status, body } = await this.get(path)
      if (status !== 200) throw new Error(`${path} answered ${status}: ${JSON.stringify(body)}`)
      return open.includes(body.status) ? undefined : body
    })
  }
}

/** Path and body of a call; `more` replaces fields. */
export function callOf(
  protocol: ChatProtocol,
  model: string,
  { stream = false, say = 'hi', more = {} }: CallOptions,
): { path: string; body: Readonly<Record<string, unknown>> } {
  const { path, body } = PLAIN[protocol](model, stream)
  const said = JSON.parse(JSON.stringify(body).replaceAll('"hi"', JSON.stringify(say)))
  return { path, body: { ...said, ...more } }
}

export interface World {
  readonly service: LentService
  readonly upstream: ScriptedUpstream
  /** A new account with this credit, and a key of it. */
  client(credit?: string, more?: Parameters<LentService['newKey']>[1]): Promise<Client>
  /** Another key of the account. */
  another(client: Client, more?: Parameters<LentService['newKey']>[1]): Promise<Client>
  /** Calls that the simulated provider received for a request. */
  upstreamCalls(trace: string): ReturnType<typeof upstreamCalls>
  /** The JSON that it received. */
  received(trace: string): Promise<Json>
  /** The JSON of the latest request that it received with this word in it: those for media carry no request id. */
  receivedWith(word: string): Promise<Json>
}

/** Fewer than the simulated provider keeps: others come meanwhile. */
const KEPT_REQUESTS = 80

let world: Promise<World> | null = null

/** Opens the one world of this process. */
export function openWorld(): Promise<World> {
  world ??= makeWorld()
  return world
}

async function makeWorld(): Promise<World> {
  const upstream = await startScriptedUpstream(processTeardown)
  const service = await serviceOfProcess(configuration(upstream.url, await closedPort()))
  return {
    service,
    upstream,
    client: async (credit = '1000000', more = {}) => new Client(service, await service.newKey(credit, more)),
    async another({ accountId }, more = {}) {
      const { key, raw } = await service.database.keys.create({ name: 'another', accountId, ...more })
      return new Client(service, { accountId, keyId: key.id, key: raw })
    },
    upstreamCalls: (trace) => upstreamCalls(service, trace),
    received: async (trace) => JSON.parse((await upstreamRequest(service, trace)).body),
    async receivedWith(word) {
      for (const call of (await upstreamCalls(service)).reverse().slice(0, KEPT_REQUESTS)) {
        const received = await findReceived(service, call)
        if (received?.body.includes(word)) return JSON.parse(received.body)
      }
      throw new Error(`the upstream received no ${word}`)
    },
  }
}
