/**
 * The HTTP server: routes a request to its handler, subscribes once, and unsubscribes when the client has left. All of
 * uWebSockets.js stays in this folder.
 */

import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import { Failure } from '../../schemas/failure.ts'
import { Arrival, type ArrivalServer } from './arrival.ts'
import { type Coding, decodePieces, decodeWhole } from './body/coding.ts'
import { formContent, isFormType } from './body/form-reader.ts'
import { TextLimit } from './body/text-limit.ts'
import { Upload } from './body/upload.ts'
import type { ClientLimits } from './client-limits.ts'
import type { FormContent, FullReply, Reply } from './handler.ts'
import { refuseRepeatedHeader, shuttingDown, tooLarge, uploadCutShort } from './refusals.ts'
import type { RenderError } from './reply-form.ts'
import type { ReplyWriter } from './reply-writer.ts'
import { hasKnownKey, isWithoutKey, readAdmission, readCoding, readPeer } from './request-checks.ts'
import {
  type CopiedHead,
  MAX_BODY_BYTES,
  pauseAfterTurn,
  readBody,
  readHead,
  readTarget,
  UNCHECKED_MAX_BYTES,
} from './request-reader.ts'
import { type FoundRoute, NO_PARAMS, type Route, type Router } from './router.ts'
import { type Handshake, type OnUpgrade, Sockets } from './sockets.ts'
import {
  App,
  type HttpRequest,
  type HttpResponse,
  SSLApp,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from './uws.ts'

/** The route of a request, known before its head is read. */
interface Target {
  readonly method: string
  readonly path: string
  readonly found: FoundRoute
}

interface ServerOptions {
  /** Files in PEM; without them the server serves plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string } | null
  readonly router: Router
  /** Returns the largest body in bytes, without its inline files. */
  readonly maxTextBytes: () => number
  readonly clients: ClientLimits
  /** Errors in the shape of the path's protocol. */
  readonly renderError: (path: string, requestId: string, client: () => string) => RenderError
}

const CORS_EXPOSED =
  'x-gateway-trace, x-request-id, request-id, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, ' +
  'x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, ' +
  'x-ratelimit-limit-concurrency, x-ratelimit-remaining-concurrency, ' +
  'retry-after, idempotency-replayed, x-protocol-translation, x-protocol-warning, x-protocol-changes, ' +
  'x-served-model, x-truncated, x-next-cursor'
const SAME_ORIGIN_HEADERS = Buffer.from('x-content-type-options: nosniff\r\nx-gateway-trace')
const COMMON_HEADERS = Buffer.from(
  `access-control-allow-origin: *\r\naccess-control-expose-headers: ${CORS_EXPOSED}\r\n${SAME_ORIGIN_HEADERS}`,
)
const UNAUTHORIZED = 401
const MAX_BEGUN_IN_TURN = 64
const CROWDED_TURN_REQUESTS = 16

export class GatewayServer implements ArrivalServer {
  readonly #options: ServerOptions
  readonly clients: ClientLimits
  /** The last one listens; those before it serve the connections that they have. */
  readonly #apps: TemplatedApp[] = []
  #listening: us_listen_socket | null = null
  #address: { readonly host: string; readonly port: number } | null = null
  #inFlight = 0
  /** Requests whose body is incomplete, except for forms, which their pipelines read. */
  readonly #reading = new Set<ReplyWriter>()
  /** Forms of requests that are not over. */
  readonly #uploads = new Set<Upload>()
  readonly #sockets: Sockets
  /** Requests that began in this turn of the event loop. */
  #beganInTurn = 0
  readonly #endTurn = (): void => {
    this.#beganInTurn = 0
  }
  #isDraining = false
  #onIdle: (() => void) | null = null

  constructor(options: ServerOptions) {
    this.#options = options
    this.clients = options.clients
    this.#sockets = new Sockets({
      clients: options.clients,
      maxTextBytes: options.maxTextBytes,
      renderError: (path, requestId, address) => (error) => {
        const client = { peer: () => address, forwardedFor: '' }
        return this.renderError(error, { head: { path }, requestId, client, address: () => address })
      },
      onInFlight: (change) => this.#countInFlight(change),
    })
    this.#addApp()
  }

  #addApp(): TemplatedApp {
    const { router, tls = null } = this.#options
    const app = tls === null ? App() : SSLApp({ cert_file_name: tls.cert, key_file_name: tls.key })
    // The server compares paths as they are sent, letter for letter, and does so for less than it hands them over.
    for (const [path, { POST, GET }] of router.listExactPaths()) {
      const aim = (method: string, route: Route) => ({ method, path, found: { route, params: NO_PARAMS } })
      if (POST !== undefined) {
        const target = aim('POST', POST)
        app.post(path, (response, request) => this.#handle(response, request, target))
      }
      if (GET?.maxSocketMs !== undefined) {
        const target = aim('GET', GET)
        const onUpgrade: OnUpgrade = (response, request, handshake) =>
          this.#handle(response, request, target, handshake)
        app.ws(path, this.#sockets.makeBehavior(onUpgrade))
      }
    }
    app.any('/*', (response, request) => this.#handle(response, request, null))
    const onConnection = (response: HttpResponse, change: number) => {
      if (change > 0 && !this.clients.mayConnect(() => readPeer(response))) response.close()
    }
    app.filter(onConnection)
    this.#apps.push(app)
    return app
  }

  /** Number of requests whose reply is not over. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Number of open WebSockets. */
  get socketCount(): number {
    return this.#sockets.count
  }

  /** Resolves with the port; rejects when it is taken. Several gateway processes may listen on one port. */
  async listen(host: string, port: number): Promise<number> {
    const taken = await this.#listen(this.#apps.at(-1)!, host, port)
    this.#address = { host, port: taken }
    return taken
  }

  /**
   * Loads the certificate from its files for new connections; open ones keep theirs. The caller has checked the files:
   * the server accepts broken ones without an error.
   */
  async reloadCertificate(): Promise<void> {
    if (this.#address === null || this.#isDraining) return
    const before = this.#listening
    await this.#listen(this.#addApp(), this.#address.host, this.#address.port)
    if (before !== null) us_listen_socket_close(before)
  }

  #listen(app: TemplatedApp, host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const onSocket = (socket: us_listen_socket | false) => {
        if (!socket)
          return reject(new Error(`Cannot listen on ${host} port ${port}: the port is taken or not allowed.`))
        this.#listening = socket
        resolve(us_socket_local_port(socket as never))
      }
      app.listen(host, port, onSocket)
    })
  }

  /**
   * Answers only health checks from now on; running requests continue. Bodies that are still arriving are not waited
   * for.
   */
  drain(): void {
    this.#isDraining = true
    for (const writer of [...this.#reading]) {
      this.#reading.delete(writer)
      writer.error(uploadCutShort())
    }
    for (const upload of this.#uploads) if (!upload.isWhole) upload.destroy(uploadCutShort())
    this.#sockets.drain()
  }

  #stopListening(): void {
    if (this.#listening !== null) us_listen_socket_close(this.#listening)
    this.#listening = null
  }

  /** Resolves when no request is in flight. */
  waitUntilIdle(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onIdle = resolve
    })
  }

  /** Ends every connection at once: clients see their streams cut. */
  close(): void {
    this.#stopListening()
    for (const app of this.#apps) app.close()
  }

  #handle(
    response: HttpResponse,
    uwsRequest: HttpRequest,
    target: Target | null,
    handshake: Handshake | null = null,
  ): void {
    const head = readHead(uwsRequest, target ?? readTarget(uwsRequest))
    const found = target === null ? this.#options.router.find(head) : target.found
    const { route = null, params = NO_PARAMS } = 'route' in found ? found : {}
    const commonHeaders = route?.isSameOrigin === true ? SAME_ORIGIN_HEADERS : COMMON_HEADERS
    const arrival = new Arrival(response, head, { commonHeaders, params }, this)
    const { client, writer } = arrival
    this.#inFlight++
    response.onAborted(() => arrival.abort())
    if (head.fault !== null) return writer.cut(head.fault)
    if (isWithoutKey(found) || head.conflict !== null) this.clients.noteUnauthenticated(client)
    if (route === null)
      return this.#beginInTurn(writer, () =>
        found instanceof Failure ? writer.error(found) : writer.next(found as Reply),
      )
    const refuse = (error: unknown) => this.#beginInTurn(writer, () => writer.error(error))
    if (head.conflict !== null) return refuse(refuseRepeatedHeader(head.conflict))
    if (this.#refusesToBegin(route, writer)) return
    const isLimited = route.addressLimit !== 'never' && this.clients.isBlocked(client)
    if (isLimited && !hasKnownKey(route, head, arrival.submittedAt))
      return refuse(this.clients.refuseBlocked(client))
    if (handshake === null) return this.#readBody(arrival, route, refuse)
    const answer = this.#sockets.answer(arrival, handshake, route.maxSocketMs!())
    this.#beginInTurn(writer, () => arrival.run(route, NO_BODY, null, answer))
  }

  #readBody(arrival: Arrival, route: Route, refuse: (error: unknown) => void): void {
    const { head, submittedAt } = arrival
    const isForm = route.maxFormBytes !== undefined && isFormType(head.header('content-type'))
    const limit = isForm ? route.maxFormBytes : (route.maxBodyBytes ?? MAX_BODY_BYTES)
    // The server itself refuses a value that is no number.
    const announcedBytes = Number(head.header('content-length')) || 0
    if (announcedBytes > limit) return refuse(tooLarge(limit))
    const coding = readCoding(head, refuse)
    if (coding === undefined) return
    const body = { route, limit, announcedBytes, coding }
    if (isForm) return this.#beginForm(arrival, body)
    const isLong = head.isChunked || announcedBytes > UNCHECKED_MAX_BYTES
    const admission = isLong ? readAdmission(route, head, submittedAt, refuse) : null
    if (admission === undefined) return
    this.#reading.add(arrival.writer)
    if (admission !== null) this.#pauseUntilAdmitted(arrival, admission)
    this.#readWhole(arrival, body)
  }

  /** Begins at once: the pipeline reads the form while it comes in. */
  #beginForm(arrival: Arrival, { route, limit, announcedBytes, coding }: ArrivingBody): void {
    const { response, head, writer, held } = arrival
    const upload = new Upload(response, { limitBytes: limit, isClosed: () => writer.isClosed })
    arrival.upload = upload
    this.#uploads.add(upload)
    const limits = { limitBytes: limit, encodedBytes: announcedBytes }
    const form = coding === null ? upload : Readable.from(decodePieces(upload, coding, limits))
    const contentType = head.header('content-type')
    this.#begin(arrival, route, NO_BODY, formContent(form, { contentType, limitBytes: limit, held }))
  }

  #pauseUntilAdmitted(arrival: Arrival, admission: Promise<unknown>): void {
    const { response, writer } = arrival
    let isDecided = false
    pauseAfterTurn(response, () => {
      arrival.isPaused = !isDecided && this.#reading.has(writer)
      return arrival.isPaused
    })
    const onAdmitted = () => {
      isDecided = true
      if (!writer.isClosed) arrival.unpause()
    }
    // Where the whole body has arrived, its handler has begun and answers the client.
    const onRefused = (error: unknown) => {
      isDecided = true
      if (this.#reading.delete(writer)) writer.error(error)
    }
    admission.then(onAdmitted, onRefused)
  }

  #readWhole(arrival: Arrival, { route, limit, announcedBytes, coding }: ArrivingBody): void {
    const { response, head, writer, held } = arrival
    const maxText = this.#options.maxTextBytes()
    const mayBeTooMuchText = coding === null && (head.isChunked || announcedBytes > maxText)
    const text = mayBeTooMuchText ? new TextLimit(maxText) : null
    const beginJson = (body: Buffer) => {
      if (body.length <= maxText) return this.#begin(arrival, route, body, null)
      const isWanted = () => !writer.isClosed
      const measured = text ?? new TextLimit(maxText)
      measured.checkWhole(body, isWanted, (refusal) =>
        refusal === null ? this.#begin(arrival, route, body, null) : writer.error(refusal),
      )
    }
    const isWanted = () => this.#reading.has(writer)
    const isPaused = () => arrival.isPaused
    readBody(response, { limitBytes: limit, announcedBytes, text, held, isWanted, isPaused }, (body) => {
      this.#reading.delete(writer)
      arrival.isWhole = !(body instanceof Failure)
      arrival.unpause()
      if (body instanceof Failure) writer.error(body)
      else if (coding === null) beginJson(body)
      else
        decodeWhole(body, coding, limit, held).then(
          (whole) => {
            if (!writer.isClosed) beginJson(whole)
          },
          (error: unknown) => writer.error(error),
        )
    })
  }

  #begin(arrival: Arrival, route: Route, body: Buffer, form: FormContent | null): void {
    this.#beginInTurn(arrival.writer, () => arrival.run(route, body, form))
  }

  /**
   * Begins the answer to a request, in the next turn where this one has begun many. The server hands over all requests of a
   * connection that it has read in one turn: of one that sends many at once the rest would wait for nothing else, and here
   * the server closes it.
   */
  #beginInTurn(writer: ReplyWriter, begin: () => void): void {
    if (this.#beganInTurn++ === 0) setImmediate(this.#endTurn)
    if (this.#beganInTurn <= MAX_BEGUN_IN_TURN) return begin()
    setImmediate(() => {
      if (!writer.isClosed) begin()
    })
  }

  isCrowded(): boolean {
    return this.#beganInTurn > CROWDED_TURN_REQUESTS
  }

  renderError(error: unknown, { head, requestId, client, address }: FailedRequest): FullReply {
    const reply = this.#options.renderError(head.path, requestId, address)(error)
    if (reply.status === UNAUTHORIZED && reply.isOfUpstream !== true) this.clients.noteUnauthenticated(client)
    return reply
  }

  #refusesToBegin(route: Route, writer: ReplyWriter): boolean {
    if (!this.#isDraining || route.isAnsweredWhileDraining === true) return false
    writer.error(shuttingDown())
    return true
  }

  end({ writer, upload }: Arrival): void {
    this.#reading.delete(writer)
    if (upload !== null) this.#uploads.delete(upload)
    this.#countInFlight(-1)
  }

  #countInFlight(change: 1 | -1): void {
    this.#inFlight += change
    if (this.#inFlight === 0) this.#onIdle?.()
  }
}

interface FailedRequest extends Pick<Arrival, 'requestId' | 'client' | 'address'> {
  readonly head: Pick<CopiedHead, 'path'>
}

interface ArrivingBody {
  readonly route: Route
  readonly limit: number
  readonly announcedBytes: number
  readonly coding: Coding | null
}

const NO_BODY = Buffer.alloc(0)
