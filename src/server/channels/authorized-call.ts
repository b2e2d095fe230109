/**
 * One upstream call that carries a token or a signature in place of a key: it waits for that, and is sent once more
 * with another one where the upstream refuses it.
 */
import { performance } from 'node:perf_hooks'
import { type Access, AccessFailure, type Pass, type SignedRequest } from '../../access/access.ts'
import { clockProblem } from '../../access/clock.ts'
import {
  type ResponseHeaders,
  type UpstreamCall,
  UpstreamFailure,
  type UpstreamHandler,
} from '../../upstream/client.ts'

/** Sends the request with these headers beside its own. */
export type SendWith = (
  headers: Pass['headers'],
  deadlineMs: number,
  handler: UpstreamHandler,
) => UpstreamCall

const NOT_SENT = { sent: false, headReceived: false, reused: false }
const isRefusal = (status: number): boolean => status === 401 || status === 403

export class AuthorizedCall implements UpstreamCall, UpstreamHandler {
  readonly #access: Access
  readonly #request: SignedRequest
  readonly #send: SendWith
  readonly #handler: UpstreamHandler
  readonly #deadlineAt: number
  #pass: Pass | null = null
  #call: UpstreamCall | null = null
  #isPaused = false
  #isOver = false
  #hasRepeated = false
  #timer: NodeJS.Timeout | null = null

  constructor(
    access: Access,
    request: SignedRequest,
    { send, handler, deadlineMs }: { send: SendWith; handler: UpstreamHandler; deadlineMs: number },
  ) {
    this.#access = access
    this.#request = request
    this.#send = send
    this.#handler = handler
    this.#deadlineAt = performance.now() + deadlineMs
    this.#authorize()
  }

  #authorize(): void {
    const pass = this.#access.pass(this.#request)
    if (!(pass instanceof Promise)) return this.#sendWith(pass)
    const failed = (kind: 'access' | 'deadline', detail: string) => {
      if (this.#isOver) return
      this.#end()
      this.#handler.onError(new UpstreamFailure(kind, detail, NOT_SENT))
    }
    this.#timer = setTimeout(() => failed('deadline', 'no access in time'), this.#msLeft())
    pass.then(
      (ready) => {
        if (this.#isOver) return
        clearTimeout(this.#timer!)
        this.#sendWith(ready)
      },
      (error: unknown) =>
        failed('access', error instanceof AccessFailure ? error.message : 'the request could not be signed'),
    )
  }

  #msLeft(): number {
    return Math.max(1, this.#deadlineAt - performance.now())
  }

  #sendWith(pass: Pass): void {
    this.#pass = pass
    this.#call = this.#send(pass.headers, this.#msLeft(), this)
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
    const clock = clockProblem(headers.get('date') ?? null, Date.now())
    const again = !this.#hasRepeated && clock === null && this.#access.refused(this.#pass!, status)
    if (clock === null && !again) return false
    this.#call!.abort()
    if (again) {
      this.#hasRepeated = true
      this.#authorize()
    } else {
      this.#end()
      this.#handler.onError(
        new UpstreamFailure('access', clock!, { ...NOT_SENT, sent: true, headReceived: true }),
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
