/** Runs work with an AbortSignal as a cold Observable whose teardown aborts it. */
import { Observable } from 'rxjs'

export const fromAbortable = <T>(work: (signal: AbortSignal) => Promise<T>): Observable<T> =>
  new Observable((subscriber) => {
    const abort = new AbortController()
    work(abort.signal).then(
      (value) => {
        subscriber.next(value)
        subscriber.complete()
      },
      (error: unknown) => subscriber.error(error),
    )
    return () => abort.abort()
  })
