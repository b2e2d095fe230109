/** What tests from the outside ask of the service, and of the simulated provider behind it. */
import type { Test } from 'tap'
import { verifyWallets } from '../support/connections.ts'
import {
  type LentService,
  type LogJson,
  TEST_MASTER_KEY,
  type TestModel,
  testConfig,
  until,
} from '../support/service.ts'

/** The upstream's key of every channel here: long enough to be looked for in logs. */
export const UPSTREAM_KEY = 'upstream-key-4c1d9be07a6f'

/** As `testConfig`, with an upstream key that can be recognised. */
export const callConfig = (models: Readonly<Record<string, TestModel>>, extra = ''): string =>
  testConfig(models, extra).replace('api_key: test', `api_key: ${UPSTREAM_KEY}`)

export const say = (content: string) => [{ role: 'user', content }]

/** The request id that a response carries. */
export const traceOf = (response: Response): string => {
  const trace = response.headers.get('x-gateway-trace')
  if (trace === null) throw new Error('the response carries no x-gateway-trace')
  return trace
}

/** One call of the simulated provider, as its control interface shows it. */
export interface UpstreamCall {
  readonly id: number
  readonly path: string
  readonly model: string | null
  readonly request_id: string | null
  readonly state: 'running' | 'completed' | 'client_closed' | 'faulted'
  readonly output_tokens: number
}

class SimulatorError extends Error {
  readonly status: number

  constructor(status: number, path: string) {
    super(`the simulator answered ${status} to ${path}`)
    this.status = status
  }
}

async function askSimulator<T>(service: LentService, path: string): Promise<T> {
  const response = await fetch(service.engines.simulatorUrl + path)
  if (response.status !== 200) throw new SimulatorError(response.status, path)
  return (await response.json()) as T
}

/** Calls that the upstream received, oldest first; of one request only, where it is named. */
export const upstreamCalls = (service: LentService, requestId?: string): Promise<UpstreamCall[]> =>
  askSimulator(service, `/simulator/calls${requestId === undefined ? '' : `?request_id=${requestId}`}`)

export interface UpstreamRequest {
  readonly headers: ReadonlyMap<string, string>
  /** As they came. */
  readonly bytes: Buffer
  readonly body: string
}

/** What the upstream received in one of its calls. */
export async function receivedIn(service: LentService, { id }: UpstreamCall): Promise<UpstreamRequest> {
  const kept = await askSimulator<{ headers: [string, string][]; body_base64: string }>(
    service,
    `/simulator/calls/${id}/request`,
  )
  const headers = new Map(kept.headers.map(([name, value]) => [name.toLowerCase(), value]))
  const bytes = Buffer.from(kept.body_base64, 'base64')
  return { headers, bytes, body: bytes.toString('utf8') }
}

/** The same; null while the request is on its way, and when the upstream has forgotten it. */
export const findReceived = (service: LentService, call: UpstreamCall): Promise<UpstreamRequest | null> =>
  receivedIn(service, call).catch((error) => {
    if (error instanceof SimulatorError && error.status === 404) return null
    throw error
  })

/** What the upstream received for this request, at its only or last attempt. */
export async function upstreamRequest(service: LentService, requestId: string): Promise<UpstreamRequest> {
  const call = (await upstreamCalls(service, requestId)).at(-1)
  if (call === undefined) throw new Error(`the upstream was never called for ${requestId}`)
  return receivedIn(service, call)
}

export interface BalanceJson {
  readonly remaining: string
  readonly used: string
  readonly total: string
  readonly held: string
}

export async function balanceOf(service: LentService, key: string): Promise<BalanceJson> {
  const response = await service.get(key, '/v1/key/balance')
  if (response.status !== 200) throw new Error(`the balance answered ${response.status}`)
  return (await response.json()) as BalanceJson
}

/** The row of one request, once it is readable. */
export async function rowOf(service: LentService, key: string, requestId: string): Promise<LogJson> {
  const rows = await service.logs(key, (found) => found.length > 0, `&ref=${requestId}`)
  if (rows.length !== 1) throw new Error(`${rows.length} rows for ${requestId}`)
  return rows[0]!
}

/** Checks that the key has one row and one charge for each of its calls, and that the books agree. Returns the rows. */
export async function checkCharges(
  t: Test,
  service: LentService,
  key: string,
  count: number,
): Promise<LogJson[]> {
  const rows = await service.logs(key, (found) => found.length >= count)
  t.equal(rows.length, count, 'one row for each call')
  t.equal(new Set(rows.map(({ request_id }) => request_id)).size, count)
  const used = rows.reduce((sum, { cost }) => sum + Number(cost), 0)
  await until('the calls are charged', async () => {
    const balance = await balanceOf(service, key)
    return balance.used === String(used) && balance.held === '0'
  })
  t.same((await verifyWallets(service)).differences, [])
  return rows
}

/** The rows of these requests, in their order, once all are readable: one wait for many. */
export async function rowsOf(
  service: LentService,
  key: string,
  requestIds: readonly string[],
): Promise<LogJson[]> {
  const indexed = (rows: readonly LogJson[]) => new Map(rows.map((row) => [row.request_id, row]))
  const isIn = (rows: readonly LogJson[]) => requestIds.every((id) => indexed(rows).has(id))
  const found = indexed(await service.logs(key, isIn))
  return requestIds.map((id) => found.get(id)!)
}

/** Posts a text or bytes as they are, and anything else as JSON. */
export const post = (
  service: { readonly baseUrl: string },
  key: string,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
): Promise<Response> =>
  fetch(service.baseUrl + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body:
      typeof body === 'string' || body instanceof Uint8Array
        ? (body as string | Uint8Array<ArrayBuffer>)
        : JSON.stringify(body),
    ...(signal && { signal }),
  })

/** Sends these bytes as they are. */
export const chatRaw = (service: LentService, key: string, body: string | Uint8Array): Promise<Response> =>
  post(service, key, '/v1/chat/completions', body)

export interface ErrorJson {
  readonly error: { readonly message: string; readonly type: string; readonly code: string }
}

export const errorOf = async (response: Response): Promise<ErrorJson['error']> =>
  ((await response.json()) as ErrorJson).error

/** Payloads of the complete events in a stream's text. */
export function eventsIn(text: string): string[] {
  const complete = text.slice(0, text.lastIndexOf('\n\n') + 2)
  return complete
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length))
}

/** Returns the tokens that a text is estimated at: by its characters, of which each byte beyond the first counts too. */
export const estimatedTokens = (text: string): number =>
  Math.ceil([...text].reduce((sum, one) => sum + 1 + 1.5 * (Buffer.byteLength(one) - 1), 0) / 4)

/** What the model said in these events. */
export function textIn(events: readonly string[]): string {
  const chunks = events.filter((event) => event !== '[DONE]').map((event) => JSON.parse(event) as Chunk)
  const words = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? ''))
  return words.join('')
}
interface Chunk {
  readonly choices: ReadonlyArray<{ readonly delta: { readonly content?: string | null } }>
}

/** Reads until `enough` says so or the stream ends, however it ends. */
export async function readUntil(
  response: Response,
  enough: (bytes: Buffer) => boolean = () => false,
): Promise<Buffer> {
  let bytes = Buffer.alloc(0)
  const reader = response.body!.getReader()
  try {
    while (!enough(bytes)) {
      const { done, value } = await reader.read()
      if (done) break
      bytes = Buffer.concat([bytes, value])
    }
  } catch {
    // Cut: what came before is the answer.
  }
  reader.releaseLock()
  return bytes
}

/** Replaces the configuration of the running service; returns when calls are handled by it. */
export async function reconfigure(
  service: LentService,
  key: string,
  write: () => Promise<void>,
  inForce: (models: readonly string[]) => boolean,
): Promise<void> {
  await write()
  await until('the configuration is in force', async () => {
    const { data } = (await (await service.get(key, '/v1/models')).json()) as { data: { id: string }[] }
    return inForce(data.map(({ id }) => id))
  })
}

/** Whatever goes wrong, none of these may stand in what the service has printed. */
export function secretsIn(service: LentService, keys: readonly string[]): string[] {
  const output = service.output()
  const master = [TEST_MASTER_KEY.toString('hex'), TEST_MASTER_KEY.toString('base64')]
  return [...keys, UPSTREAM_KEY, ...master].filter((secret) => output.includes(secret))
}
