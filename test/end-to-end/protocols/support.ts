/** What tests of all four protocols share: channels of each, a plain call in each, and the books that calls balance. */
import { Buffer } from 'node:buffer'
import { request } from 'node:http'
import type { Test } from 'tap'
import type { z } from 'zod'
import type { ChatProtocol, channelEntry, modelEntry } from '../../../schemas/config/catalog.ts'
import { CHAT_PROTOCOLS } from '../../../schemas/config/catalog.ts'
import { type Credits, parseCredits, printCredits } from '../../../schemas/money.ts'
import { type LentService, type LogJson, until } from '../../support/service.ts'
import { balanceOf, post, rowOf, UPSTREAM_KEY } from '../support.ts'

export { CHAT_PROTOCOLS, type ChatProtocol }

/** Credits: 1 a prompt token, 0.1 a cached one, 1.25 one written to the cache, 2 an output token, 5 a tool call. */
const PRICING = {
  unit: '1M_tokens',
  input: '1000000',
  output: '2000000',
  cached_input: '100000',
  server_tool_call: '5',
} as const

type ModelPlan = Omit<z.input<typeof modelEntry>, 'id'>
export type ChannelPlan = z.input<typeof channelEntry>

/** `more` are further sections of the configuration. YAML reads JSON. */
export function configOf(
  models: Readonly<Record<string, ModelPlan>>,
  channels: readonly ChannelPlan[],
  more: object = {},
): string {
  const entries = Object.entries(models).map(([id, plan]) => ({ id, pricing: PRICING, ...plan }))
  return JSON.stringify({ ...more, models: entries, channels }, null, 2)
}

const BASE_PATHS: Readonly<Record<ChatProtocol, string>> = {
  'chat-completions': '/v1',
  messages: '',
  'generate-content': '',
  responses: '/v1',
}

/** Where a vendor's own SDK has its base, at `url`. */
export const baseUrlAt = (url: string, protocol: ChatProtocol): string => url + BASE_PATHS[protocol]

/** A channel to the simulated provider. */
export const simulated = (
  protocol: ChatProtocol,
  models: Readonly<Record<string, string>>,
  more: Partial<ChannelPlan> = {},
): ChannelPlan => ({
  id: `line-${protocol}`,
  protocol,
  base_url: baseUrlAt('${TEST_SIMULATOR_URL}', protocol),
  api_key: UPSTREAM_KEY,
  models,
  ...more,
})

/** A client's protocol, and what the channel behind it speaks: each natively, and each translation. */
export const WAYS: readonly (readonly [client: ChatProtocol, upstream: ChatProtocol])[] = [
  ...CHAT_PROTOCOLS.map((protocol) => [protocol, protocol] as const),
  ['chat-completions', 'messages'],
  ['chat-completions', 'generate-content'],
]

interface PlainCall {
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
}

/** The least that can be said in each protocol. */
export const PLAIN: Readonly<Record<ChatProtocol, (model: string, stream: boolean) => PlainCall>> = {
  'chat-completions': (model, stream) => ({
    path: '/v1/chat/completions',
    body: { model, messages: [{ role: 'user', content: 'hi' }], stream },
  }),
  messages: (model, stream) => ({
    path: '/v1/messages',
    body: { model, max_tokens: 1024, messages: [{ role: 'user', content: 'hi' }], stream },
  }),
  'generate-content': (model, stream) => ({
    path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  }),
  responses: (model, stream) => ({
    path: '/v1/responses',
    body: { model, input: [{ role: 'user', content: 'hi' }], stream },
  }),
}

/**
 * Posts like `post` and waits for the end of the answer, or for the point at which it breaks: the body is every byte
 * that arrived. `fetch` drops those that nobody has read when the connection breaks.
 */
export function postUntilBroken(
  service: { readonly baseUrl: string },
  key: string,
  path: string,
  body: unknown,
): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  return new Promise((resolve, reject) => {
    const outgoing = request(
      service.baseUrl + path,
      { method: 'POST', headers, agent: false },
      (incoming) => {
        const arrived: Buffer[] = []
        incoming.on('data', (bytes: Buffer) => arrived.push(bytes))
        incoming.on('error', () => {})
        incoming.on('close', () => {
          const { statusCode: status, headers } = incoming
          resolve(
            new Response(Buffer.concat(arrived), { status, headers: headers as Record<string, string> }),
          )
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(JSON.stringify(body))
  })
}

/** The least that can be said, said. */
export function ask(
  service: { readonly baseUrl: string },
  key: string,
  protocol: ChatProtocol,
  model: string,
  { stream = false, more = {}, headers = {}, send = post }: AskOptions = {},
): Promise<Response> {
  const { path, body } = PLAIN[protocol](model, stream)
  return send(service, key, path, { ...body, ...more }, headers)
}
export interface AskOptions {
  readonly stream?: boolean
  /** More fields of the body. */
  readonly more?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly send?: typeof post
}

/** A failure as the three error shapes name it. */
export interface Named {
  readonly status: number
  readonly code: string
  readonly type: string
  readonly messagesType: string
  readonly generateStatus: string
  /** It is an upstream's, with details of its own. */
  readonly isPassed?: boolean
}

/** The whole body of a failure in the shape of `protocol`, whatever its message says. */
export function shapeOf(
  protocol: ChatProtocol,
  named: Named,
  message: unknown,
  retryAfter: string | null = null,
): object {
  const { status, code, type, messagesType, generateStatus } = named
  switch (protocol) {
    case 'messages':
      return { type: 'error', error: { type: messagesType, message } }
    case 'generate-content':
      return { error: { code: status, message, status: generateStatus, ...retryInfo(retryAfter) } }
    default:
      return { error: { message, type, code } }
  }
}

const retryInfo = (seconds: string | null) =>
  seconds !== null && {
    details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${seconds}s` }],
  }

/** Tokens of one call, as the caller got them. */
export interface Told {
  /** All prompt tokens, cached and cache-write ones among them. */
  readonly input: number
  readonly output: number
  readonly cached?: number
  readonly cacheWrite?: number
  readonly reasoning?: number
  readonly serverToolCalls?: number
}

export interface ChargedCall {
  readonly requestId: string | null | undefined
  readonly told: Told
  /** What else its row says. */
  readonly row?: object
}

/** Hundredths of a credit, so that all of it stays whole. */
function costOf({ input, output, cached = 0, cacheWrite = 0, serverToolCalls = 0 }: Told): Credits {
  const fresh = input - cached - cacheWrite
  const hundredths = 100 * fresh + 10 * cached + 125 * cacheWrite + 200 * output + 500 * serverToolCalls
  return parseCredits((hundredths / 100).toFixed(2))
}

/** A key with a wallet of its own, of which every call is accounted for. */
export class Books {
  readonly key: string
  readonly #service: LentService
  readonly #expected: { readonly requestId: string; readonly row: object }[] = []
  #balance: Credits

  private constructor(service: LentService, key: string, credit: string) {
    this.#service = service
    this.key = key
    this.#balance = parseCredits(credit)
  }

  static async open(service: LentService, credit = '1000000'): Promise<Books> {
    return new Books(service, (await service.newKey(credit)).key, credit)
  }

  /** The balance has fallen by what `told` costs. The row must say the same, and what `row` says. */
  charged(requestId: string | null | undefined, told: Told, row: object = {}): Promise<void> {
    return this.chargedTogether([{ requestId, told, row }])
  }

  /** The balance has fallen by what all of them cost. */
  async chargedTogether(calls: readonly ChargedCall[]): Promise<void> {
    const costs = calls.map(({ told }) => costOf(told))
    await this.#fell(costs.reduce((sum, cost) => sum + cost, 0n))
    for (const [index, { requestId, told, row }] of calls.entries())
      this.#expect(requestId, {
        status: 'success',
        cost: printCredits(costs[index]!),
        input_tokens: told.input,
        output_tokens: told.output,
        cached_tokens: told.cached ?? 0,
        ...(told.cacheWrite === undefined ? {} : { cache_write_tokens: told.cacheWrite }),
        ...(told.reasoning === undefined ? {} : { reasoning_tokens: told.reasoning }),
        server_tool_calls: told.serverToolCalls ?? 0,
        ...row,
      })
  }

  /** A call without usage in its answer: the balance has fallen by what its row says. */
  async chargedAsRow(requestId: string | null | undefined, row: object): Promise<LogJson> {
    const found = await rowOf(this.#service, this.key, requestId ?? 'none')
    await this.#fell(parseCredits(found.cost))
    this.#expect(requestId, row)
    return found
  }

  /** A call that cost nothing. */
  free(requestId: string | null | undefined, row: object): void {
    this.#expect(requestId, { cost: '0', input_tokens: 0, output_tokens: 0, ...row })
  }

  #expect(requestId: string | null | undefined, row: object): void {
    if (typeof requestId !== 'string') throw new Error('the response carries no x-gateway-trace')
    this.#expected.push({ requestId, row })
  }

  async #fell(by: Credits): Promise<void> {
    this.#balance -= by
    const wanted = printCredits(this.#balance)
    let seen = ''
    await until('the balance has fallen by the cost', async () => {
      seen = (await balanceOf(this.#service, this.key)).remaining
      return seen === wanted
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${wanted} wanted, ${seen} seen`)
    })
  }

  /** Exactly one row for each call, and no other; the balance is what is left of them. */
  async close(t: Test): Promise<LogJson[]> {
    const count = this.#expected.length
    const rows = await this.#service.logs(this.key, (found) => found.length >= count)
    t.equal(rows.length, count, 'one row for each call')
    const byId = new Map(rows.map((row) => [row.request_id, row]))
    for (const { requestId, row } of this.#expected) t.match(byId.get(requestId), row, requestId)
    t.equal((await balanceOf(this.#service, this.key)).remaining, printCredits(this.#balance))
    return this.#expected.map(({ requestId }) => byId.get(requestId)!)
  }
}

export const TRANSLATION = 'x-protocol-translation'
export const WARNING = 'x-protocol-warning'

/** Whether, and by what, the answer says that it was translated. `warning` null: nothing was left out. */
export function checkTranslation(
  t: Test,
  headers: { get(name: string): string | null } | undefined,
  upstream: ChatProtocol | null,
  warning: RegExp | null = null,
  client: ChatProtocol = 'chat-completions',
): void {
  const expected = upstream === null ? null : `${client} to ${upstream}`
  t.equal(headers?.get(TRANSLATION) ?? null, expected)
  const said = headers?.get(WARNING) ?? null
  if (warning === null) t.equal(said, null)
  else t.match(said, warning)
}

/** Status and code of each failure, and its names in the three shapes. */
const INVALID = 'invalid_request_error'
const row = (
  status: number,
  code: string,
  type: string,
  messagesType: string,
  generateStatus: string,
): Named => ({ status, code, type, messagesType, generateStatus })

export const ERRORS = {
  modelNotFound: row(400, 'model_not_found', INVALID, 'not_found_error', 'NOT_FOUND'),
  modelNotAllowed: row(400, 'model_not_allowed', INVALID, INVALID, 'INVALID_ARGUMENT'),
  invalidRequest: row(400, 'invalid_request', INVALID, INVALID, 'INVALID_ARGUMENT'),
  toolNotSupported: row(400, 'tool_not_supported', INVALID, INVALID, 'INVALID_ARGUMENT'),
  invalidKey: row(400, 'invalid_idempotency_key', INVALID, INVALID, 'INVALID_ARGUMENT'),
  keyReuse: row(409, 'idempotency_key_reuse', INVALID, INVALID, 'ALREADY_EXISTS'),
  inFlight: row(409, 'idempotency_in_flight', INVALID, INVALID, 'ALREADY_EXISTS'),
  notCached: row(409, 'idempotency_response_not_cached', INVALID, INVALID, 'ALREADY_EXISTS'),
  invalidApiKey: row(
    401,
    'invalid_api_key',
    'authentication_error',
    'authentication_error',
    'UNAUTHENTICATED',
  ),
  quotaExceeded: row(402, 'quota_exceeded', 'insufficient_quota', 'billing_error', 'RESOURCE_EXHAUSTED'),
  notFound: row(404, 'not_found', INVALID, 'not_found_error', 'NOT_FOUND'),
  methodNotAllowed: row(405, 'method_not_allowed', INVALID, INVALID, 'INVALID_ARGUMENT'),
  tooLarge: row(413, 'request_too_large', INVALID, 'request_too_large', 'INVALID_ARGUMENT'),
  rateLimited: row(429, 'rate_limit_exceeded', 'rate_limit_error', 'rate_limit_error', 'RESOURCE_EXHAUSTED'),
  unreachable: row(502, 'upstream_unreachable', 'api_error', 'api_error', 'UNAVAILABLE'),
  noChannel: row(503, 'no_channel_available', 'server_error', 'overloaded_error', 'UNAVAILABLE'),
  timeout: row(504, 'upstream_timeout', 'api_error', 'api_error', 'DEADLINE_EXCEEDED'),
} as const satisfies Record<string, Named>

/** Names of an upstream's own refusal: those of its status, or of its row. */
export function passedThrough(status: number, code: string, type: string): Named {
  const listed = Object.values({ ...ERRORS, denied: DENIED }).find(
    (error) => [403, 429, 504].includes(status) && error.status === status,
  )
  const { messagesType = 'api_error', generateStatus = 'UNAVAILABLE' } = listed ?? {}
  return { status, code, type, messagesType, generateStatus, isPassed: true }
}
const DENIED = row(403, 'permission_denied', 'permission_error', 'permission_error', 'PERMISSION_DENIED')

/** The response is this refusal, in the shape of `protocol`, and nothing more. Gives its message. */
export async function checkRefused(
  t: Test,
  response: Response,
  protocol: ChatProtocol,
  named: Named,
  message: RegExp = /\S/,
): Promise<string> {
  const body = (await response.json()) as { error: { message: string; details?: unknown } }
  if (named.isPassed === true) delete body.error.details
  t.equal(response.status, named.status)
  t.match(response.headers.get('content-type'), /^application\/json/)
  t.match(response.headers.get('x-gateway-trace'), /^req_/)
  t.equal(response.headers.get('access-control-allow-origin'), '*')
  const retryAfter = named.isPassed === true ? null : response.headers.get('retry-after')
  t.strictSame(body, shapeOf(protocol, named, body.error.message, retryAfter), `${protocol}: ${named.code}`)
  t.match(body.error.message, message)
  return body.error.message
}

/** Returns noise of this length as WAV, of 8,000 bytes a second. */
export function makeWav(seconds: number): Buffer {
  const rate = 8_000
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + seconds * rate, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(rate, 24)
  // Decoders ignore this byte rate, so the gateway does not trust it.
  head.writeUInt32LE(rate * 1_000, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write('data', 36)
  head.writeUInt32LE(seconds * rate, 40)
  const noise = Buffer.alloc(seconds * rate)
  for (let at = 0; at < noise.length; at += 4) noise.writeUInt32LE((at * 2_654_435_761) >>> 0, at)
  return Buffer.concat([head, noise])
}
