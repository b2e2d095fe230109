/** A refusal on its way to the client is recorded first. Source: decisions, "Chat". */
import { catchError, type MonoTypeOperatorFunction } from 'rxjs'

export const recordingRefusals =
  <T>(record: (error: unknown) => void): MonoTypeOperatorFunction<T> =>
  (values) =>
    values.pipe(
      catchError((error) => {
        record(error)
        throw error
      }),
    )
