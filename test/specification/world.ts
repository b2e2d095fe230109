/** What every statement is checked against: one service with a model of each family, and providers that do as asked. */
import { request } from 'node:http'
import { connect } from 'node:net'
import { parse, stringify } from 'yaml'
import { demonstration } from '../end-to-end/media/support.ts'
import {
  baseUrlAt,
  CHAT_PROTOCOLS,
  type ChannelPlan,
  type ChatProtocol,
  PLAIN,
  simulated,
} from '../end-to-end/protocols/support.ts'
import {
  balanceOf,
  receivedIn,
  rowOf,
  UPSTREAM_KEY,
  upstreamCalls,
  upstreamRequest,
} from '../end-to-end/support.ts'
import { eventually } from '../support/eventually.ts'
import { closedPort } from '../support/http-server.ts'
import { processTeardown, serviceOfProcess } from '../support/process-service.ts'
import type { LentService, LogJson } from '../support/service.ts'
import { type ScriptedUpstream, startScriptedUpstream } from './scripted-upstream.ts'

export const TIMEOUT_SECONDS = 0.4
/** Jobs of the simulated provider, unless a request says otherwise. */
const QUICK = 'delay=150,queue=50'
/** Seconds after which an image answer is kept alive; 90 without the setting. */
export const KEPT_ALIVE_AFTER_SECONDS = 1

/** Where the two channels of a pair are: the second is tried after the first. */
export const FIRST = '/first'
export const SECOND = '/second'

/** Tokens of a plain call, and their price: 1 credit a prompt token, 2 an output token. */
export const PROMPT_TOKENS = 10
export const OUTPUT_TOKENS = 4
export const PLAIN_COST = '18'
export const PRICING = { unit: '1M_tokens', input: '1000000', output: '2000000' } as const
const DIRECTIVES = `tokens=${OUTPUT_TOKENS},prompt_tokens=${PROMPT_TOKENS}`

export const SERVER_TOOL_PRICE = '2.022'
const chatModels = CHAT_PROTOCOLS.flatMap((protocol) => [
  { id: `plain-${protocol}`, default_max_tokens: 100, max_output_tokens: 1000, aliases: [`old-${protocol}`] },
  { id: `faulty-${protocol}` },
  {
    id: `script-${protocol}`,
    default_max_tokens: 100,
    max_output_tokens: 1000,
    capabilities: { web_search: true },
  },
  { id: `pair-${protocol}`, default_max_tokens: 100, max_output_tokens: 1000 },
  { id: `silent-${protocol}` },
  { id: `dead-${protocol}` },
  {
    id: `able-${protocol}`,
    capabilities: { web_search: true, image_generation: true, vision: true },
    pricing: { ...PRICING, server_tool_call: SERVER_TOOL_PRICE, discount: '0.5' },
  },
  { id: `cache-${protocol}`, pricing: { ...PRICING, cache_write: '1250000' } },
])

const MODELS = [
  ...chatModels,
  { id: 'unserved' },
  { id: 'placeholder', callable: false },
  { id: 'uncapped', max_output_tokens: 50_000, default_max_tokens: 40_000 },
  {
    id: 'tier-200k',
    pricing: {
      ...PRICING,
      cached_input: '100000',
      tiers: [{ from_prompt_tokens: 200_000, input: '2000000', cached_input: '200000', output: '4000000' }],
    },
  },
  {
    id: 'tier-272k',
    pricing: {
      ...PRICING,
      cached_input: '100000',
      tiers: [{ from_prompt_tokens: 272_000, input: '2000000', cached_input: '200000', output: '3000000' }],
    },
  },
  { id: 'promoted', pricing: { ...PRICING, discount: '0.8', discount_until: '2999-01-01T00:00:00Z' } },
  { id: 'ended-promotion', pricing: { ...PRICING, discount: '0.8', discount_until: '2020-01-01T00:00:00Z' } },
  { id: 'seeing', capabilities: { vision: true } },
  { id: 'toolless' },
  { id: 'script-video', endpoint_type: 'videos_generations', pricing: { unit: 'second', per_unit: '4.04' } },
]

function channels(scripted: string, closed: number): ChannelPlan[] {
  const media: ChannelPlan = {
    id: 'spec-script-video',
    protocol: 'task',
    base_url: `${scripted}/task`,
    api_key: UPSTREAM_KEY,
    models: { 'script-video': 'scripted' },
  }
  const chat = CHAT_PROTOCOLS.flatMap((protocol): ChannelPlan[] => [
    simulated(
      protocol,
      {
        [`plain-${protocol}`]: `sim-plain@${DIRECTIVES}`,
        [`cache-${protocol}`]: 'sim-cache@tokens=4,prompt_tokens=100',
        ...(protocol === 'chat-completions' && {
          uncapped: 'sim-uncapped@tokens=1',
          'tier-200k': 'sim-tier@tokens=1',
          'tier-272k': 'sim-tier@tokens=1',
          promoted: `sim-promoted@${DIRECTIVES}`,
          'ended-promotion': `sim-promoted@${DIRECTIVES}`,
          seeing: `sim-seeing@${DIRECTIVES}`,
          toolless: `sim-toolless@${DIRECTIVES}`,
        }),
      },
      { id: `spec-${protocol}` },
    ),
    simulated(protocol, { [`faulty-${protocol}`]: 'sim-faulty' }, { id: `spec-faulty-${protocol}` }),
    simulated(
      protocol,
      { [`able-${protocol}`]: `sim-able@${DIRECTIVES},searches=3` },
      { id: `spec-able-${protocol}`, tools: ['web_search', 'image_generation'] },
    ),
    simulated(
      protocol,
      { [`silent-${protocol}`]: 'sim-silent@fault=hang' },
      { id: `spec-silent-${protocol}`, timeout_seconds: TIMEOUT_SECONDS },
    ),
    simulated(
      protocol,
      { [`dead-${protocol}`]: 'sim-dead' },
      { id: `spec-dead-${protocol}`, base_url: baseUrlAt(`http://127.0.0.1:${closed}`, protocol) },
    ),
    simulated(
      protocol,
      { [`script-${protocol}`]: 'scripted' },
      { id: `spec-script-${protocol}`, base_url: baseUrlAt(scripted, protocol), tools: ['web_search'] },
    ),
    ...[FIRST, SECOND].map((path, priority) =>
      simulated(
        protocol,
        { [`pair-${protocol}`]: 'scripted' },
        {
          // Where there is a choice, a service is lent to nobody who asks for the same names.
          id: `spec-pair-${priority}-${protocol}-${process.pid}`,
          base_url: baseUrlAt(scripted + path, protocol),
          priority,
        },
      ),
    ),
  ])
  return [media, ...chat]
}

interface Demonstration {
  models: object[]
  channels: { protocol: string; models: Record<string, string> }[]
  [setting: string]: unknown
}

/** The demonstration, whose prices are those of the interface, with jobs that end soon; and models for chat. */
function configuration(scripted: string, closed: number): string {
  const demo: Demonstration = parse(demonstration())
  const media = demo.channels.map((channel) => ({
    ...channel,
    models: CHAT_PROTOCOLS.includes(channel.protocol as ChatProtocol)
      ? channel.models
      : Object.fromEntries(Object.entries(channel.models).map(([id, name]) => [id, `${name}@${QUICK}`])),
  }))
  const models = MODELS.map((model) => ({ pricing: PRICING, ...model }))
  return stringify({
    ...demo,
    images: { keep_alive_after_seconds: KEPT_ALIVE_AFTER_SECONDS },
    models: [...models, ...demo.models],
    channels: [...channels(scripted, closed), ...media],
  })
}

/** What a request is answered. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: statements read fields of every endpoint; what is absent is undefined.
  readonly body: any
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

const parsed = (text: string): unknown => {
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

/** Longer than any machine takes to book a call. */
const SETTLED_WITHIN_MS = 15_000

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
    await eventually('the balance has changed', read, SETTLED_WITHIN_MS).catch(() => undefined)
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
  // biome-ignore lint/suspicious/noExplicitAny: as for `Answer`.
  received(trace: string): Promise<any>
  /** The JSON of the latest request that it received with this word in it: those for media carry no request id. */
  // biome-ignore lint/suspicious/noExplicitAny: as for `Answer`.
  receivedWith(word: string): Promise<any>
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
      const { key, raw } = await service.database.createKey({ name: 'another', accountId, ...more })
      return new Client(service, { accountId, keyId: key.id, key: raw })
    },
    upstreamCalls: (trace) => upstreamCalls(service, trace),
    received: async (trace) => JSON.parse((await upstreamRequest(service, trace)).body),
    async receivedWith(word) {
      for (const call of (await upstreamCalls(service)).reverse().slice(0, KEPT_REQUESTS)) {
        const { body } = await receivedIn(service, call)
        if (body.includes(word)) return JSON.parse(body)
      }
      throw new Error(`the upstream received no ${word}`)
    },
  }
}

/** Sends bytes as they are on a connection of their own, and reads the first answer; null where there is none. */
export function sendRaw(
  service: LentService,
  head: readonly (string | Buffer)[],
  body = '',
): Promise<Answer | null> {
  const { hostname, port } = new URL(service.baseUrl)
  const lines = head.flatMap((line) => [Buffer.isBuffer(line) ? line : Buffer.from(line, 'latin1'), CRLF])
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) })
    let seen = Buffer.alloc(0)
    socket.on('error', reject)
    socket.setTimeout(NO_ANSWER_MS, () => socket.destroy())
    socket.on('data', (more: Buffer) => {
      seen = Buffer.concat([seen, more])
      if (isWhole(seen)) socket.end()
    })
    socket.on('close', () => resolve(seen.length === 0 ? null : rawAnswer(seen)))
    socket.write(Buffer.concat([...lines, CRLF, Buffer.from(body)]))
  })
}
const CRLF = Buffer.from('\r\n')
/** A request that is answered is answered sooner. */
const NO_ANSWER_MS = 5_000

/** Whether as many bytes are there as the head announces; otherwise the answer ends with the connection. */
function isWhole(seen: Buffer): boolean {
  const end = seen.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /content-length: (\d+)/i.exec(seen.subarray(0, end).toString('latin1'))?.[1]
  return length !== undefined && seen.length - end - 4 >= Number(length)
}

function rawAnswer(seen: Buffer): Answer {
  const end = seen.indexOf('\r\n\r\n')
  const [first = '', ...lines] = seen.subarray(0, end).toString('latin1').split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    }),
  )
  const text = seen.subarray(end + 4).toString()
  const trace = headers.get('x-gateway-trace') ?? ''
  return { status: Number(first.split(' ')[1]), headers, text, body: parsed(text), trace }
}
