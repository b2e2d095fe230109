/**
 * Keeps the client of a slow answer from giving up, with spaces before the JSON. From the first space on the status is
 * 200, so a later failure is reported in the body. See docs/api-rules.md, "Timeouts".
 */
import { type MonoTypeOperatorFunction, Observable } from 'rxjs'
import type { HeaderList, Reply } from '../../src/http/handler.ts'

export const KEEP_ALIVE_EVERY_MS = 10_000
const HEADERS: HeaderList = [['content-type', 'application/json; charset=utf-8']]
const SPACE = ' '

interface KeepAliveTimes {
  readonly afterMs: number
  readonly everyMs: number
}

/** For replies in one piece. `errorBody` returns the error that the client would have got. */
export const withKeepAlive =
  (
    errorBody: (error: unknown) => string | Uint8Array,
    { afterMs, everyMs }: KeepAliveTimes,
  ): MonoTypeOperatorFunction<Reply> =>
  (replies) =>
    new Observable((subscriber) => {
      let isBegun = false
      let timer = setTimeout(function space() {
        if (!isBegun) subscriber.next({ type: 'head', status: 200, headers: HEADERS, flow: null })
        isBegun = true
        subscriber.next({ type: 'data', bytes: SPACE })
        timer = setTimeout(space, everyMs)
      }, afterMs)
      const finish = (body: string | Uint8Array) => {
        subscriber.next({ type: 'data', bytes: body })
        subscriber.complete()
      }
      const subscription = replies.subscribe({
        next(reply) {
          clearTimeout(timer)
          if (isBegun && reply.type === 'full') finish(reply.body)
          else subscriber.next(reply)
        },
        error(error) {
          clearTimeout(timer)
          if (isBegun) finish(errorBody(error))
          else subscriber.error(error)
        },
        complete: () => subscriber.complete(),
      })
      return () => {
        clearTimeout(timer)
        subscription.unsubscribe()
      }
    })
