/** Live data: server-sent events of the management API. */
import { useEffect, useRef, useState } from 'react'

const BASE = '/api/manage/v1'

export type LiveState = 'connecting' | 'live' | 'lost'

/**
 * Watches a stream while the page is shown and `path` is not null. The browser connects again by itself. `onEvent`
 * gets the name of each event and its data.
 */
export function useLive(
  path: string | null,
  names: readonly string[],
  onEvent: (name: string, data: unknown) => void,
): LiveState {
  const [state, setState] = useState<LiveState>('connecting')
  const handler = useRef(onEvent)
  handler.current = onEvent
  const wanted = names.join(' ')
  useEffect(() => {
    if (path === null) return
    setState('connecting')
    const source = new EventSource(`${BASE}${path}`)
    source.onopen = () => setState('live')
    source.onerror = () => setState('lost')
    for (const name of wanted.split(' '))
      source.addEventListener(name, (event) =>
        handler.current(name, JSON.parse((event as MessageEvent).data)),
      )
    return () => source.close()
  }, [path, wanted])
  return state
}
