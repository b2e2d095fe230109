import {
  type Origin,
  type ResponseHeaders,
  renderHead,
  type UpstreamClient,
  type UpstreamFailure,
  type UpstreamHandler,
  type UpstreamRequest,
} from '../../../src/upstream/client.ts'

/** Longer than any test of this folder takes. */
export const TEST_DEADLINE_MS = 20_000

export interface ExchangeLog {
  status: number
  headers: ResponseHeaders | null
  body: string
  pieces: string[]
  ended: boolean
  failure: UpstreamFailure | null
}

/** Copies all that a call brings; settles `finished` at its end or failure, never rejects. */
export class LoggingHandler implements UpstreamHandler {
  readonly log: ExchangeLog = {
    status: 0,
    headers: null,
    body: '',
    pieces: [],
    ended: false,
    failure: null,
  }
  readonly finished: Promise<ExchangeLog>
  readonly headArrived: Promise<void>
  #finish: (log: ExchangeLog) => void
  #arrive: () => void

  constructor() {
    const finished = Promise.withResolvers<ExchangeLog>()
    const head = Promise.withResolvers<void>()
    this.finished = finished.promise
    this.#finish = finished.resolve
    this.headArrived = head.promise
    this.#arrive = head.resolve
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.log.status = status
    this.log.headers = headers
    this.#arrive()
  }

  onData(bytes: Uint8Array): void {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
    this.log.pieces.push(piece)
    this.log.body += piece
  }

  onEnd(): void {
    this.log.ended = true
    this.#finish(this.log)
  }

  onError(failure: UpstreamFailure): void {
    this.log.failure = failure
    this.#finish(this.log)
  }
}

export function getRequest(
  origin: Origin,
  path = '/',
  extra: Partial<UpstreamRequest> = {},
): UpstreamRequest {
  const head = renderHead('GET', path, origin.authority, [], null)
  return { origin, head, body: null, deadlineMs: TEST_DEADLINE_MS, ...extra }
}

export function postRequest(
  origin: Origin,
  body: Uint8Array,
  extra: Partial<UpstreamRequest> = {},
): UpstreamRequest {
  const head = renderHead('POST', '/', origin.authority, [['content-type', 'text/plain']], body.length)
  return { origin, head, body, deadlineMs: TEST_DEADLINE_MS, ...extra }
}

export function run(client: UpstreamClient, request: UpstreamRequest): Promise<ExchangeLog> {
  const handler = new LoggingHandler()
  client.send(request, handler)
  return handler.finished
}
