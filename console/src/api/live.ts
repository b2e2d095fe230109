/** Receives live data: server-sent events of the management API. */
import { useEffect, useRef, useState } from 'react'

const REOPEN_MS = 5_000

export type LiveState = 'connecting' | 'live' | 'lost'

/**
 * Watches a stream while the page is shown and `url` is not null, and connects again where it is lost. `onEvent` gets the
 * name of each event and its data; `gap` where events may have been missed, if that is among the names.
 */
export function useLive(
  url: string | null,
  names: readonly string[],
  onEvent: (name: string, data: unknown) => void,
): LiveState {
  const [state, setState] = useState<LiveState>('connecting')
  const handler = useRef(onEvent)
  handler.current = onEvent
  const wanted = names.join(' ')
  useEffect(() => {
    if (url === null) return
    setState('connecting')
    const events = wanted.split(' ')
    const open = (onOpen: () => void): (() => void) => {
      const source = new EventSource(url)
      let close = () => source.close()
      source.onopen = () => {
        setState('live')
        onOpen()
      }
      source.onerror = () => {
        setState('lost')
        // The browser does not reconnect after an answer that is not a stream, such as 503.
        if (source.readyState !== EventSource.CLOSED) return
        const again = setTimeout(() => {
          close = open(() => events.includes('gap') && handler.current('gap', {}))
        }, REOPEN_MS)
        close = () => clearTimeout(again)
      }
      for (const name of events)
        source.addEventListener(name, (event) =>
          handler.current(name, JSON.parse((event as MessageEvent).data)),
        )
      return () => close()
    }
    return open(() => undefined)
  }, [url, wanted])
  return state
}
