/** Accepts work, as a task or with the result in the answer, finds tasks, and reads directives, for all media dialects. */

import {
  type Dialect,
  jsonAnswer,
  type OpenedRequest,
  type ReceivedRequest,
  SimulatedFailure,
  type WholeAnswer,
} from '../dialect.ts'
import { preventsWork } from '../directives/faults.ts'
import type { Directives } from '../directives/grammar.ts'
import type { World } from '../world.ts'
import { type NewTask, pollDirectives, type Task } from './task-book.ts'

const REFUSED = 'The request was refused: simulated.'
/** Directives in any text: `[simulate: …]`, or `simulate=…`, percent-encoded, in the query of a link. */
const IN_TEXT = /\[simulate:([^\]]*)\]/
const IN_LINK = /^https?:\/\/[^?#\s]*\?(?:[^#\s]*&)?simulate=([^&#\s]*)/

type Work = NewTask & {
  readonly world: World
  readonly dialect: string
  readonly model: string
  readonly reference: string | null
  readonly directives: Directives
  /** Returns the status of a refusal with this code. Default: 400. */
  readonly statusOfCode?: (code: string | undefined) => number
}

/**
 * Takes work on and tells the new task; where a fault stands in its place, nothing is taken on and what is answered
 * does not matter.
 *
 * @throws {SimulatedFailure} where the directives ask for a refusal.
 */
export function acceptWork(work: Work, tell: (task: Task) => WholeAnswer): WholeAnswer {
  const { world, dialect, model, reference, directives, id, kind, words } = work
  const submit = world.tasks.recordSubmit({ dialect, model, reference, directives })
  if (preventsWork(directives.fault)) return jsonAnswer(200, {})
  if (directives.outcome === 'refuse') throw makeRefusal(directives, work.statusOfCode)
  return tell(world.tasks.open(submit, { id, kind, words, tell: work.tell }))
}

/** Makes the error of `outcome=refuse`. */
function makeRefusal(
  { code }: Directives,
  statusOfCode: (code: string | undefined) => number = () => 400,
): SimulatedFailure {
  const details = { isAskedFor: true, ...(code === undefined ? {} : { code }) }
  return new SimulatedFailure(statusOfCode(code), 'invalid_request', REFUSED, details)
}

/** Opens a poll of one task, with the faults that its submit requested. */
export function openPoll({ world }: ReceivedRequest, dialect: Dialect['name'], id: string): OpenedRequest {
  const task = world.tasks.find(dialect, id)
  if (task === null) throw new SimulatedFailure(404, 'not_found', `There is no task "${id}".`)
  return {
    model: task.submit.model,
    directives: [pollDirectives(task)],
    answer: () => {
      task.polls += 1
      return jsonAnswer(200, task.tell(task))
    },
  }
}

/** Returns the directives in any text of a request's body; null without any. */
export function directivesInTexts(value: unknown): string | null {
  if (typeof value === 'string') return directivesInText(value)
  if (typeof value !== 'object' || value === null) return null
  for (const part of Object.values(value)) {
    const found = directivesInTexts(part)
    if (found !== null) return found
  }
  return null
}

function directivesInText(text: string): string | null {
  if (text.startsWith('data:')) return null
  const link = IN_LINK.exec(text)
  if (link === null) return IN_TEXT.exec(text)?.[1] ?? null
  try {
    return decodeURIComponent(link[1] as string)
  } catch {
    return null
  }
}

const DEFAULT_WORK_MS = 200
/** Longer than any caller waits. */
const NEVER_MS = 7 * 86_400_000

type WaitedWork = {
  readonly world: World
  readonly dialect: string
  readonly model: string
  readonly directives: Directives
  /** The vendor's message and code for work that breaks its rules; always 400. */
  readonly moderated: { readonly message: string; readonly code: string }
}

/**
 * Notes the request, and makes its answer; where a fault stands in its place, nothing is made and what is answered
 * does not matter.
 *
 * @throws {SimulatedFailure} where the directives ask for a failure.
 */
export function answerAfterWork(work: WaitedWork, make: () => WholeAnswer): WholeAnswer {
  const { world, dialect, model, directives } = work
  world.tasks.recordSubmit({ dialect, model, reference: null, directives })
  const { outcome = 'success', delay = DEFAULT_WORK_MS, fault } = directives
  if (preventsWork(fault)) return jsonAnswer(200, {})
  switch (outcome) {
    case 'success':
      return { ...make(), workedMs: delay }
    case 'stuck':
      return { ...make(), workedMs: NEVER_MS }
    case 'moderation':
      throw new SimulatedFailure(400, 'invalid_request', work.moderated.message, {
        code: work.moderated.code,
        workedMs: delay,
      })
    case 'refuse':
      throw makeRefusal(directives)
    default:
      throw new SimulatedFailure(500, 'simulated', 'The work failed: simulated.', { workedMs: delay })
  }
}
