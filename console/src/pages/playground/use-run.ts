/** Runs calls of the playground. They go on while the user looks at other pages. */
import { useSyncExternalStore } from 'react'
import { ApiError } from '../../api/client.ts'
import { type Answer, NO_ANSWER, withChunk } from './answer.ts'
import { type Callee, findOrCreateKey, forgetPlaygroundKey } from './key.ts'
import { send } from './send.ts'

export interface Run {
  readonly id: string
  readonly model: string
  readonly body: object
  readonly answer: Answer
  readonly requestId: string | null
  readonly isRunning: boolean
  /** How the answer ended. */
  readonly ending: 'whole' | 'broken' | 'stopped'
  readonly error: Error | null
}

interface Kept {
  readonly run: Run
  readonly stopping: AbortController
}

const kept = new Map<string, Kept>()
const listeners = new Set<() => void>()

function keep(name: string, one: Kept | null): void {
  if (one === null) kept.delete(name)
  else kept.set(name, one)
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

async function runCall(callee: Callee, { run, stopping }: Kept, change: (changes: Partial<Run>) => void) {
  const key = await findOrCreateKey(callee)
  const { requestId, chunks } = await send(key, run.body, stopping.signal).catch((error: Error) => {
    if (error instanceof ApiError) {
      change({ requestId: error.requestId })
      if (error.status === 401) forgetPlaygroundKey(callee)
    }
    throw error
  })
  change({ requestId })
  let { answer } = run
  try {
    for await (const chunk of chunks) {
      answer = withChunk(answer, chunk)
      change({ answer })
    }
    change({ ending: answer.finishReason === null ? 'broken' : 'whole' })
  } catch (error) {
    change({ ending: stopping.signal.aborted ? 'stopped' : 'broken' })
    // The connection was cut: the answer so far says it, not the words of the browser.
    if (answer.characters === 0) throw error
  }
}

/** Returns the last call of this place, which no page has to show for it to go on. */
export function useRun(callee: Callee, place = '') {
  const name = `${callee.agentId ?? callee.accountId} ${place}`
  const run = useSyncExternalStore(subscribe, () => kept.get(name)?.run ?? null)
  const stop = () => kept.get(name)?.stopping.abort()
  const clear = () => {
    stop()
    keep(name, null)
  }
  const start = (model: string, body: object) => {
    stop()
    const stopping = new AbortController()
    const begun: Run = {
      id: crypto.randomUUID(),
      model,
      body,
      answer: NO_ANSWER,
      requestId: null,
      isRunning: true,
      ending: 'whole',
      error: null,
    }
    keep(name, { run: begun, stopping })
    const change = (changes: Partial<Run>) => {
      const now = kept.get(name)
      if (now?.stopping === stopping) keep(name, { run: { ...now.run, ...changes }, stopping })
    }
    runCall(callee, { run: begun, stopping }, change)
      .catch((error: Error) => stopping.signal.aborted || change({ error }))
      .finally(() => change({ isRunning: false }))
  }
  return { run, start, stop, clear }
}
