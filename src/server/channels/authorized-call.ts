/**
 * One upstream call that carries a token or a signature in place of a key: it waits for that, and is sent once more
 * with another one where the upstream refuses it.
 */
import { performance } from 'node:perf_hooks'
import {
  type Authorization,
  AuthorizationFailure,
  type Authorizer,
  type SignedRequest,
} from '../../auth/authorizer.ts'
import { describeClockProblem } from '../../auth/clock.ts'
import {
  type ResponseHeaders,
  type UpstreamCall,
  UpstreamFailure,
  type UpstreamHandler,
} from '../../upstream/client.ts'

/** Sends the request with these headers beside its own. */
export type SendWith = (
  headers: Authorization['headers'],
  deadlineMs: number,
  handler: UpstreamHandler,
) => UpstreamCall

const NOT_SENT = { sent: false, headReceived: false, reused: false }
const isRefusal = (status: number): boolean => status === 401 || status === 403

export class AuthorizedCall implements UpstreamCall, UpstreamHandler {
  readonly #authorizer: Authorizer
  readonly #request: SignedRequest
  readonly #send: SendWith
  readonly #handler: UpstreamHandler
  readonly #deadlineAt: number
  #authorization: Authorization | null = null
  #call: UpstreamCall | null = null
  #isPaused = false
  #isOver = false
  #hasRepeated = false
  #timer: NodeJS.Timeout | null = null

  constructor(
    authorizer: Authorizer,
    request: SignedRequest,
    { send, handler, deadlineMs }: { send: SendWith; handler: UpstreamHandler; deadlineMs: number },
  ) {
    this.#authorizer = authorizer
    this.#request = request
    this.#send = send
    this.#handler = handler
    this.#deadlineAt = performance.now() + deadlineMs
    this.#authorize()
  }

  #authorize(): void {
    const authorization = this.#authorizer.authorize(this.#request)
    if (!(authorization instanceof Promise)) return this.#sendWith(authorization)
    const failed = (kind: 'authorization' | 'deadline', detail: string) => {
      if (this.#isOver) return
      this.#end()
      this.#handler.onError(new UpstreamFailure(kind, detail, NOT_SENT))
    }
    this.#timer = setTimeout(() => failed('deadline', 'no token in time'), this.#msLeft())
    authorization
      .then((ready) => {
        if (this.#isOver) return
        clearTimeout(this.#timer!)
        this.#sendWith(ready)
      })
      .catch((error: unknown) =>
        failed(
          'authorization',
          error instanceof AuthorizationFailure ? error.message : 'the request could not be signed',
        ),
      )
  }

  #msLeft(): number {
    return Math.max(1, this.#deadlineAt - performance.now())
  }

  #sendWith(authorization: Authorization): void {
    this.#authorization = authorization
    this.#call = this.#send(authorization.headers, this.#msLeft(), this)
    if (this.#isPaused) this.#call.pause()
  }

  #end(): void {
    this.#isOver = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  onHead(status: number, headers: ResponseHeaders): void {
    if (isRefusal(status) && this.#isAnswered(status, headers)) return
    this.#handler.onHead(status, headers)
  }

  /** Answers a refusal: sends the request once more with another token, or names the clock that is wrong. */
  #isAnswered(status: number, headers: ResponseHeaders): boolean {
    const clock = describeClockProblem(headers.get('date') ?? null, Date.now())
    const again =
      !this.#hasRepeated && clock === null && this.#authorizer.dropRefused(this.#authorization!, status)
    if (clock === null && !again) return false
    this.#call!.abort()
    if (again) {
      this.#hasRepeated = true
      this.#authorize()
    } else {
      this.#end()
      this.#handler.onError(
        new UpstreamFailure('authorization', clock!, { ...NOT_SENT, sent: true, headReceived: true }),
      )
    }
    return true
  }

  onData(bytes: Uint8Array): void {
    this.#handler.onData(bytes)
  }

  onEnd(): void {
    this.#end()
    this.#handler.onEnd()
  }

  onError(failure: UpstreamFailure): void {
    this.#end()
    this.#handler.onError(failure)
  }

  pause(): void {
    this.#isPaused = true
    this.#call?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#call?.resume()
  }

  get paused(): boolean {
    return this.#isPaused
  }

  get sent(): boolean {
    return this.#call?.sent ?? false
  }

  abort(): void {
    if (this.#isOver) return
    this.#end()
    this.#call?.abort()
  }
}
