/** A response that is made in the background, as far as its task knows it: without its text. */
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { epochSeconds } from '../../media/task-records.ts'
import { endingOf } from '../../tasks/end/settlement.ts'

/** The id is the upstream's once it has one: responses that follow name it so. */
export function printResponseTask(task: Task): object {
  const { id, upstreamId, submittedAt, kind, state, model } = task
  const status = TASK_RULES[kind].outward[state]
  const { code, message } = endingOf(task)
  return {
    id: upstreamId ?? id,
    object: 'response',
    created_at: epochSeconds(submittedAt),
    status,
    background: true,
    model,
    output: [],
    error: status === 'failed' ? { code: code ?? 'server_error', message: message ?? '' } : null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    usage: null,
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: 'auto',
    tools: [],
    top_p: null,
  }
}
