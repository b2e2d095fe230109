/** The simulated provider: one HTTP server for every dialect. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type PerformanceOptions, perform } from './answers/performance.ts'
import { Ticker } from './answers/ticker.ts'
import { type Call, CallLog } from './calls.ts'
import { answerControl, isControlPath, type Target } from './control.ts'
import { type Dialect, type Endpoint, SimulatedFailure } from './dialect.ts'
import { DIALECTS } from './dialects.ts'
import type { Fault } from './directives/faults.ts'
import { DirectiveError, type Directives, mergeDirectives, readDirectives } from './directives/grammar.ts'
import { BodyTooLargeError, Form, FormError, readBody, readForm } from './requests.ts'
import { newWorld, type World } from './world.ts'

/** An import from an ES module also loads Node's WebSocket: 7 MB of memory. */
const { createServer } = process.getBuiltinModule('node:http')

const DIRECTIVES_HEADER = 'x-simulate'
/** Every answer has the id of the call in the record. */
const CALL_HEADER = 'x-simulator-call'
const KEEP_ALIVE_TIMEOUT_MS = 65_000
const BACKLOG_CONNECTIONS = 4_096

type SimulatorOptions = {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** Default: all. */
  readonly dialects?: readonly Dialect[]
  /** File of the payment provider's books. Default: in memory. */
  readonly paymentsFile?: string
}

export type Simulator = {
  /** `http://host:port`, without a path. */
  readonly url: string
  /** Closes every connection and frees the port. */
  close(): Promise<void>
}

/** Starts the server; resolves when it listens. Rejects with the system's error if it cannot. */
export function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const { host, port, dialects = DIALECTS, paymentsFile = null } = options
  const provider = new Provider(dialects, paymentsFile)
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS }, (request, response) => {
    provider.receive(request, response)
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, backlog: BACKLOG_CONNECTIONS }, () => {
      server.off('error', reject)
      const address = server.address() as AddressInfo
      const shownHost = address.family === 'IPv6' ? `[${address.address}]` : address.address
      const close = () =>
        new Promise<void>((closed) => {
          server.close(() => closed())
          server.closeAllConnections()
          provider.stop()
        })
      resolve({ url: `http://${shownHost}:${address.port}`, close })
    })
  })
}

type Found = { readonly dialect: Dialect; readonly endpoint: Endpoint; readonly path: RegExpExecArray }
type Part = Pick<PerformanceOptions, 'answer' | 'directives' | 'fault'>
type Incoming = { readonly request: IncomingMessage; readonly response: ServerResponse; readonly call: Call }

class Provider {
  readonly #dialects: readonly Dialect[]
  readonly #calls = new CallLog()
  readonly #budget = new FaultBudget()
  readonly #ticker = new Ticker()
  readonly #world: World

  constructor(dialects: readonly Dialect[], paymentsFile: string | null) {
    this.#dialects = dialects
    this.#world = newWorld(paymentsFile)
  }

  stop(): void {
    this.#world.payments.webhooks.stop()
    this.#ticker.stop()
  }

  receive(request: IncomingMessage, response: ServerResponse): void {
    const target = readTarget(request.url ?? '/')
    if (isControlPath(target.path)) {
      answerControl(request, response, target, {
        calls: this.#calls,
        world: this.#world,
        onClear: () => this.#budget.clear(),
      })
      return
    }
    const requestId = request.headers['x-request-id']
    const call = this.#calls.open(target.path, typeof requestId === 'string' ? requestId : null)
    response.setHeader(CALL_HEADER, call.id)
    // Also after a completed answer: one that was not flushed was not received.
    response.once('close', () => {
      if (!response.writableFinished) this.#calls.close(call, 'client_closed')
    })
    // The caller may have reset the connection; the `close` that follows reports it.
    response.on('error', () => {})
    this.#answer({ request, response, call }, target).catch((error: unknown) => {
      this.#calls.close(call, 'faulted')
      process.stderr.write(`simulator: ${error instanceof Error ? error.stack : String(error)}\n`)
      response.destroy()
    })
  }

  async #answer(incoming: Incoming, target: Target): Promise<void> {
    const { request, call } = incoming
    const header = readHeader(request)
    const early = readEarly(header)
    // Before the body is read only the header is known, so `times` counts such a refusal by the header.
    const refusesEarly = early.fault?.kind === 'refuse'
    if (refusesEarly && this.#budget.take(JSON.stringify([header]), early) !== null) {
      this.#calls.close(call, 'faulted')
      request.destroy()
      return
    }
    const read = await readBody(request).then(
      (body) => ({ body, tooLarge: false }),
      (error: unknown) => ({ body: null, tooLarge: error instanceof BodyTooLargeError }),
    )
    if (read.body === null && !read.tooLarge) return
    call.bodyBytes = read.body?.length ?? 0
    if (read.body !== null) this.#calls.record(call, request, read.body)
    const form = await openForm(request, read.body)
    this.#reply(incoming, target, { body: read.body, form }, header, refusesEarly)
  }

  #reply(
    incoming: Incoming,
    target: Target,
    { body, form }: { readonly body: Buffer | null; readonly form: () => Form },
    header: string | null,
    refused: boolean,
  ): void {
    const { request, call } = incoming
    let dialect = this.#dialects[0] as Dialect
    try {
      const found = this.#find(request.method ?? '', target.path)
      dialect = found.dialect
      if (body === null) throw new SimulatedFailure(413, 'request_too_large', 'The request is too large.')
      const opened = found.endpoint.open({
        ...{ path: found.path, query: target.query, headers: request.headers, body, form },
        ...{ origin: `http://${request.headers.host ?? ''}`, world: this.#world },
      })
      const { model = null, stream = false, directives: own = [] } = opened
      call.model = model
      call.stream = stream
      const sources = [...own, header]
      const directives = mergeDirectives(...sources.map(readDirectives))
      const fault = refused ? null : this.#budget.take(JSON.stringify([model, ...sources]), directives)
      const answer = opened.answer({ ...directives, fault: fault ?? undefined })
      this.#play(incoming, dialect, { answer, directives, fault })
    } catch (error) {
      const failure = toFailure(error)
      const { reason, workedMs } = failure
      const answer = { ...dialect.failure(failure), workedMs, faulted: reason === 'simulated' }
      this.#play(incoming, dialect, { answer, directives: {}, fault: null })
    }
  }

  #play({ response, call }: Incoming, dialect: Dialect, part: Part): void {
    perform({ ...part, response, dialect, call, calls: this.#calls, ticker: this.#ticker })
  }

  #find(method: string, path: string): Found {
    let methods: string[] = []
    for (const dialect of this.#dialects) {
      for (const endpoint of dialect.endpoints) {
        const match = endpoint.path.exec(path)
        if (match !== null && endpoint.method === method) return { dialect, endpoint, path: match }
        if (match !== null) methods = [...methods, endpoint.method]
      }
    }
    if (methods.length === 0) throw new SimulatedFailure(404, 'not_found', `Invalid URL (${method} ${path})`)
    const headers = { allow: methods.join(', ') }
    throw new SimulatedFailure(405, 'method_not_allowed', `Not allowed: ${method} ${path}`, { headers })
  }
}

/** An address that cannot be parsed becomes a path that is not found. */
function readTarget(url: string): Target {
  const mark = url.indexOf('?')
  if (mark < 0) return { path: url, query: new URLSearchParams() }
  return { path: url.slice(0, mark), query: new URLSearchParams(url.slice(mark + 1)) }
}

/** Reads a form. The endpoint that uses it reports its failure. */
async function openForm({ headers }: IncomingMessage, body: Buffer | null): Promise<() => Form> {
  const type = headers['content-type'] ?? ''
  const form =
    type.startsWith('multipart/') && body !== null ? await readForm(body, type).catch(toFailure) : null
  return () => {
    if (form instanceof Form) return form
    throw form ?? new SimulatedFailure(400, 'invalid_request', `Not multipart/form-data: '${type}'.`)
  }
}

function readHeader(request: IncomingMessage): string | null {
  const value = request.headers[DIRECTIVES_HEADER]
  return Array.isArray(value) ? value.join(',') : (value ?? null)
}

/** Reads the directives of the header, for faults before the body is read. Their errors are reported later. */
function readEarly(header: string | null): Directives {
  try {
    return readDirectives(header)
  } catch {
    return {}
  }
}

function toFailure(error: unknown): SimulatedFailure {
  if (error instanceof SimulatedFailure) return error
  if (error instanceof DirectiveError) {
    return new SimulatedFailure(400, 'invalid_request', error.message, { param: 'simulate' })
  }
  if (error instanceof FormError) return new SimulatedFailure(400, 'invalid_request', error.message)
  throw error
}

const MAX_KEYS = 10_000

class FaultBudget {
  readonly #struck = new Map<string, number>()

  /**
   * The directives' fault if it strikes this time. `key` is the exact text of the model and all directives:
   * the first K requests that share it are struck, the next succeed.
   */
  take(key: string, { fault, times }: Directives): Fault | null {
    if (fault === undefined) return null
    if (times === undefined) return fault
    const struck = this.#struck.get(key) ?? 0
    if (struck >= times) return null
    if (struck === 0 && this.#struck.size >= MAX_KEYS)
      this.#struck.delete(this.#struck.keys().next().value ?? '')
    this.#struck.set(key, struck + 1)
    return fault
  }

  clear(): void {
    this.#struck.clear()
  }
}
