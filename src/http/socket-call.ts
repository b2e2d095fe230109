/** One call on a WebSocket: its reply becomes messages. */
import type { Buffer } from 'node:buffer'
import type { Observable, Observer, Subscription } from 'rxjs'
import type { HeldBytes } from './client-limits.ts'
import type { DataSink, Flow, Reply, SocketReply } from './handler.ts'
import { type RenderError, toBuffer } from './reply-form.ts'

interface SocketCallOptions {
  readonly requestId: string
  readonly reply: SocketReply
  readonly renderError: RenderError
  /** The memory of the request's body. */
  readonly held: HeldBytes
  /** Packs what `write` sends. */
  readonly cork: (write: () => void) => void
  /** Called once, when the reply is over or its client has left. */
  readonly onOver: () => void
}

export class SocketCall implements Observer<Reply>, DataSink {
  readonly #options: SocketCallOptions
  #flow: Flow | null = null
  #isPaused = false
  #isOver = false
  #subscription: Subscription | null = null

  constructor(options: SocketCallOptions) {
    this.#options = options
  }

  /** Subscribes to the replies, once. */
  run(replies: Observable<Reply>): void {
    this.#subscription = replies.subscribe(this)
    if (this.#isOver) this.#subscription.unsubscribe()
  }

  /** Called when the client has left. */
  abort(): void {
    if (!this.#end()) return
    this.#subscription?.unsubscribe()
  }

  /** The client is behind. */
  pause(): void {
    this.#isPaused = true
    this.#flow?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#flow?.resume()
  }

  next(reply: Reply): void {
    if (this.#isOver) return
    switch (reply.type) {
      case 'full':
        if (reply.status >= 200 && reply.status < 300) this.data(toBuffer(reply.body))
        else this.#fail(reply)
        break
      case 'head':
        this.#flow = reply.flow
        if (this.#isPaused) this.#flow?.pause()
        reply.direct?.(this)
        break
      case 'data':
        this.data(toBuffer(reply.bytes))
        break
    }
  }

  data(bytes: Uint8Array): void {
    if (this.#isOver) return
    const { cork, reply, held } = this.#options
    held.release()
    cork(() => reply.data(bytes as Buffer))
  }

  error(error: unknown): void {
    // It is also what logs the error.
    if (!this.#isOver) this.#fail(this.#options.renderError(error))
  }

  complete(): void {
    if (this.#isOver) return
    this.#options.reply.end(this.#options.requestId)
    this.#end()
  }

  #fail(refusal: ReturnType<RenderError>): void {
    this.#options.reply.fail(refusal, this.#options.requestId)
    this.#end()
  }

  #end(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#options.held.close()
    this.#options.onOver()
    return true
  }
}
