/** A stream of server-sent events as an answer. A reader that is too slow loses events, and gets their number. */
import { interval, map, merge, Observable, type ObservableInput, takeUntil } from 'rxjs'
import type { HeaderList, Reply } from '../../../src/http/handler.ts'

export interface LiveEvent {
  readonly name: string
  readonly data: unknown
}

const KEEP_ALIVE_MS = 15_000
const HEADERS: HeaderList = [
  ['content-type', 'text/event-stream; charset=utf-8'],
  ['cache-control', 'no-store'],
  // A proxy such as nginx passes each event on at once.
  ['x-accel-buffering', 'no'],
]
/** The first line sets how soon a browser connects again. */
const BEGIN = 'retry: 2000\n\n'
const COMMENT = ': keep-alive\n\n'

const printEvent = ({ name, data }: LiveEvent, id: number): string =>
  `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`

/** Returns the reply: events until they end or `ended` emits. */
export const streamEvents = (
  events: Observable<LiveEvent>,
  ended: ObservableInput<unknown>,
): Observable<Reply> =>
  new Observable((reader) => {
    let isPaused = false
    let missed = 0
    let id = 0
    const send = (event: LiveEvent) => {
      id += 1
      reader.next({ type: 'data', bytes: printEvent(event, id) })
    }
    const flow = {
      pause() {
        isPaused = true
      },
      resume() {
        isPaused = false
        if (missed > 0) send({ name: 'gap', data: { missed } })
        missed = 0
      },
    }
    reader.next({ type: 'head', status: 200, headers: HEADERS, flow })
    reader.next({ type: 'data', bytes: BEGIN })
    const keepAlive = interval(KEEP_ALIVE_MS).pipe(map(() => null))
    return merge(events, keepAlive)
      .pipe(takeUntil(ended))
      .subscribe({
        next(event) {
          if (isPaused) missed += event === null ? 0 : 1
          else if (event === null) reader.next({ type: 'data', bytes: COMMENT })
          else send(event)
        },
        error: (error) => reader.error(error),
        complete: () => reader.complete(),
      })
  })
