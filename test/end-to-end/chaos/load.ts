/** Clients that call as planned, and what they saw. */
import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../simulation/random.ts'
import { BOUND_MS } from '../../support/eventually.ts'
import type { TestService } from '../../support/service.ts'
import { type PlannedCall, type PlanShape, plannedCall } from './plan.ts'

/** Where no head came, perhaps because nobody listens. */
const NOBODY_THERE_PAUSE_MS = 200

export interface SeenCall {
  /** Null where no head came. */
  readonly requestId: string | null
  readonly status: number | null
  readonly code: string | null
  /** `complete`: the answer was whole. `cut`: the connection ended before it was. `left`: the client went. */
  readonly end: 'complete' | 'cut' | 'left'
  /** When it was sent and when it was over, in milliseconds of `performance.now`. */
  readonly sentAt: number
  readonly endedAt: number
}

export interface Load {
  /** Those that are over, as they ended. */
  readonly seen: readonly SeenCall[]
  readonly begun: number
  /** Heads that came. */
  readonly answered: number
  readonly done: Promise<void>
}

interface Progress {
  readonly seen: SeenCall[]
  begun: number
  answered: number
}

/** One call on a connection of its own. Never fails: what went wrong is in the answer. */
function call(baseUrl: string, key: string, planned: PlannedCall, progress: Progress): Promise<SeenCall> {
  progress.begun++
  const sentAt = performance.now()
  return new Promise((resolve) => {
    let response: IncomingMessage | null = null
    let hasLeft = false
    let text = ''
    const over = (end: SeenCall['end']) => {
      clearTimeout(leaving)
      const status = response?.statusCode ?? null
      const requestId = response?.headers['x-gateway-trace'] ?? null
      const code = codeOf(status, text)
      const endedAt = performance.now()
      const seen = { requestId: requestId as string | null, status, code, end, sentAt, endedAt }
      progress.seen.push(seen)
      resolve(seen)
    }
    const sent = request(`${baseUrl}/v1/chat/completions`, {
      method: 'POST',
      agent: ONCE,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    })
    const leaving = setTimeout(() => {
      hasLeft = true
      sent.destroy()
    }, planned.leavesAfterMs ?? BOUND_MS)
    sent.on('response', (head) => {
      response = head
      progress.answered++
      head.on('data', (bytes) => {
        if (head.statusCode !== 200) text += bytes
      })
      // Told by `close`, which comes in any case.
      head.on('error', () => {})
      head.on('close', () => over(head.complete ? 'complete' : hasLeft ? 'left' : 'cut'))
    })
    sent.on('error', () => {})
    sent.on('close', () => {
      if (response === null) over(hasLeft ? 'left' : 'cut')
    })
    sent.end(JSON.stringify(planned.body))
  })
}

const ONCE = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY })

function codeOf(status: number | null, text: string): string | null {
  if (status === null || status === 200) return null
  return /"code":\s*"(\w+)"/.exec(text)?.[1] ?? null
}

/** Begins all calls of a plan at their time. */
export function startLoad(service: TestService, keys: readonly string[], plan: readonly PlannedCall[]): Load {
  const progress: Progress = { seen: [], begun: 0, answered: 0 }
  const done = Promise.all(
    plan.map(async (planned) => {
      await sleep(planned.delayMs)
      await call(service.baseUrl, keys[planned.key] ?? '', planned, progress)
    }),
  ).then(() => {})
  return Object.assign(progress, { done })
}

export interface SteadyLoad extends Load {
  /** Begins no more. `done` comes when the last call is over. */
  stop(): void
}

export interface SteadyShape extends PlanShape {
  /** So many at a time; `calls` bounds them all. */
  readonly atOnce: number
}

/** Goes on calling, also while nobody answers, until it is stopped. */
export function keepCalling(
  service: TestService,
  keys: readonly string[],
  random: Random,
  shape: SteadyShape,
): SteadyLoad {
  const progress: Progress = { seen: [], begun: 0, answered: 0 }
  let isStopped = false
  const caller = async () => {
    while (!isStopped && progress.begun < shape.calls) {
      const planned = plannedCall(random, shape)
      const { status } = await call(service.baseUrl, keys[planned.key] ?? '', planned, progress)
      await sleep(status === null ? NOBODY_THERE_PAUSE_MS : planned.delayMs)
    }
  }
  const done = Promise.all(Array.from({ length: shape.atOnce }, caller)).then(() => {})
  const stop = () => {
    isStopped = true
  }
  return Object.assign(progress, { done, stop })
}
