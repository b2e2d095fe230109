/** Runs calls of the playground. */
import { useEffect, useRef, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { type Answer, NO_ANSWER, withChunk } from './answer.ts'
import { type Callee, findOrCreateKey, forgetPlaygroundKey } from './key.ts'
import { send } from './send.ts'

export interface Run {
  readonly model: string
  readonly body: object
  readonly answer: Answer
  readonly requestId: string | null
  readonly isRunning: boolean
  readonly error: Error | null
}

export function useRun(callee: Callee) {
  const [run, setRun] = useState<Run | null>(null)
  const stopping = useRef<AbortController | null>(null)
  const stop = () => stopping.current?.abort()
  // Leaving the page stops the call.
  useEffect(() => () => stopping.current?.abort(), [])

  const start = (model: string, body: object) => {
    stop()
    const controller = new AbortController()
    stopping.current = controller
    const begun: Run = { model, body, answer: NO_ANSWER, requestId: null, isRunning: true, error: null }
    setRun(begun)
    const change = (changes: (now: Run) => Partial<Run>) => {
      if (stopping.current === controller) setRun((now) => now && { ...now, ...changes(now) })
    }
    const work = async () => {
      const key = await findOrCreateKey(callee)
      const { requestId, chunks } = await send(key, body, controller.signal).catch((error: Error) => {
        if (error instanceof ApiError) change(() => ({ requestId: error.requestId }))
        throw error
      })
      change(() => ({ requestId }))
      for await (const chunk of chunks) change(({ answer }) => ({ answer: withChunk(answer, chunk) }))
    }
    work()
      .catch((error: Error) => {
        if (error instanceof ApiError && error.status === 401) forgetPlaygroundKey(callee)
        if (!controller.signal.aborted) change(() => ({ error }))
      })
      .finally(() => change(() => ({ isRunning: false })))
  }

  const clear = () => {
    stop()
    stopping.current = null
    setRun(null)
  }
  return { run, start, stop, clear }
}
