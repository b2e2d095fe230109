/** Receives live data: server-sent events of the management API. */
import { focusManager } from '@tanstack/react-query'
import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { request } from './client.ts'

const REOPEN_MS = 5_000

export type LiveState = 'connecting' | 'live' | 'lost'

const subscribeShown = focusManager.subscribe.bind(focusManager)

/**
 * Watches a stream while the page is visible and `url` is not null, and connects again where it is lost. `onEvent` gets
 * the name of each event and its data; `gap` where events may have been missed, if that is among the names.
 */
export function useLive(
  url: string | null,
  names: readonly string[],
  onEvent: (name: string, data: unknown) => void,
): LiveState {
  const [state, setState] = useState<LiveState>('connecting')
  const isShown = useSyncExternalStore(subscribeShown, () => focusManager.isFocused())
  const handler = useRef(onEvent)
  handler.current = onEvent
  const watched = useRef<string | null>(null)
  const wanted = names.join(' ')
  useEffect(() => {
    if (url === null || !isShown) return
    setState('connecting')
    const events = wanted.split(' ')
    let isOver = false
    let close = () => {}
    const open = () => {
      const source = new EventSource(url)
      close = () => source.close()
      source.onopen = () => {
        setState('live')
        if (watched.current === url && events.includes('gap')) handler.current('gap', {})
        watched.current = url
      }
      source.onerror = () => {
        setState('lost')
        // The browser does not reconnect after an answer that is not a stream, such as 503.
        if (source.readyState !== EventSource.CLOSED) return
        const again = setTimeout(async () => {
          // If the session has ended, this waits until the user has signed in again.
          await request('showSession', {}).catch(() => undefined)
          if (!isOver) open()
        }, REOPEN_MS)
        close = () => clearTimeout(again)
      }
      for (const name of events)
        source.addEventListener(name, (event) =>
          handler.current(name, JSON.parse((event as MessageEvent).data)),
        )
    }
    open()
    return () => {
      isOver = true
      close()
    }
  }, [url, wanted, isShown])
  return state
}
