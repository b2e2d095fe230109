/** Work whose result comes in the answer itself: how long it takes, and whether it succeeds. */

import { jsonAnswer, SimulatedFailure, type WholeAnswer } from '../dialect.ts'
import { preventsWork } from '../directives/faults.ts'
import type { Directives } from '../directives/grammar.ts'
import type { World } from '../world.ts'
import { refusalOf } from './taken-work.ts'

const DEFAULT_WORK_MS = 200
/** Longer than any caller waits. */
const NEVER_MS = 7 * 86_400_000

type WaitedWork = {
  readonly world: World
  readonly dialect: string
  readonly model: string
  readonly directives: Directives
  /** What the vendor says of work that breaks its rules, and its word for that; always 400. */
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
      throw refusalOf(directives)
    default:
      throw new SimulatedFailure(500, 'simulated', 'The work failed: simulated.', { workedMs: delay })
  }
}
