/** Background responses: tasks in the shapes of the responses interface. */
import { jsonAnswer, type WholeAnswer } from '../../dialect.ts'
import type { Directives } from '../../directives/grammar.ts'
import { makeTaskId, readState, type Task } from '../../tasks/task-book.ts'
import { acceptWork } from '../../tasks/work.ts'
import type { World } from '../../world.ts'

type Fields = Readonly<Record<string, unknown>>

type Background = {
  readonly world: World
  /** The model's name as received. */
  readonly model: string
  readonly directives: Directives
  /** The response before and at its end. */
  readonly begun: Fields
  readonly finished: Fields
  readonly usage: unknown
  /** Usage of a response that was cancelled: half of its output. */
  readonly usageSoFar: unknown
  /** Keeps the response for later requests. */
  readonly keep: (id: string) => void
}

/** @throws {SimulatedFailure} if the directives want a refusal */
export function takeInBackground(asked: Background): WholeAnswer {
  const { world, model, directives, keep } = asked
  const work = {
    world,
    dialect: 'responses',
    model,
    reference: null,
    directives,
    id: `resp_${makeTaskId()}`,
    kind: 'response',
    words: '',
    tell: (task: Task) => told(asked, task),
  }
  return acceptWork(work, (task) => {
    keep(task.id)
    return jsonAnswer(200, task.tell(task))
  })
}

function told({ begun, finished, usage, usageSoFar, directives }: Background, task: Task): object {
  const response = { ...begun, id: task.id, background: true, usage: null }
  const error = (code: string) => ({ code, message: 'The answer failed: simulated.' })
  switch (readState(task)) {
    case 'queued':
      return { ...response, status: 'queued' }
    case 'running':
      return { ...response, status: 'in_progress' }
    case 'succeeded':
      return { ...finished, id: task.id, background: true }
    case 'moderated':
      return {
        ...finished,
        id: task.id,
        background: true,
        status: 'incomplete',
        incomplete_details: { reason: 'content_filter' },
      }
    case 'cancelled':
      return {
        ...response,
        status: 'cancelled',
        usage: task.endsAtMs > task.startsAtMs ? usageSoFar : null,
      }
    case 'unknown':
      return { ...response, status: 'paused' }
    default:
      return {
        ...response,
        status: 'failed',
        error: error(directives.code ?? 'server_error'),
        usage: directives.usage === 'always' ? usage : null,
      }
  }
}
