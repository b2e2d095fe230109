/**
 * Jobs that outlive their request and have not ended: the call log has no rows of them yet.
 * See docs/api-rules.md, "Call log list".
 */

import type { CallPageQuery } from '../../schemas/call-log/page-query.ts'
import { IN_FLIGHT_MAX_JOBS, type JobInFlight } from '../../schemas/call-log/query.ts'
import { printCredits } from '../../schemas/money.ts'
import { TASK_KINDS } from '../../schemas/tasks/kinds.ts'
import { TASK_RULES } from '../../schemas/tasks/task.ts'
import type { Tasks } from '../../src/postgres/tasks/repository.ts'
import type { OpenJob } from '../../src/postgres/tasks/types.ts'

function printJob({ task, keyName, keyPrefix }: OpenJob): JobInFlight {
  const { unitType, outward } = TASK_RULES[task.kind]
  return {
    object: 'log.in_flight',
    task_id: task.id,
    request_id: task.requestId,
    key_id: task.keyId,
    key_name: keyName,
    key_prefix: keyPrefix,
    model: task.model,
    unit_type: unitType,
    status: outward[task.state],
    estimate: printCredits(task.hold),
    submitted_at: new Date(task.submittedAt).toISOString(),
  }
}

/**
 * Returns the tasks in flight that the page's filters match, whatever its window: a task that has not ended belongs to
 * none. Returns null while tasks cannot be read: the page is answered all the same, and a missing list differs from an
 * empty one.
 */
export async function listJobsInFlight(
  tasks: Tasks,
  { accountId, keyIds, models, statuses, unitTypes, errorCodes, ref, sessionId }: CallPageQuery,
): Promise<JobInFlight[] | null> {
  // What has not ended has none of the statuses and no error code.
  if (statuses !== null || errorCodes !== null) return []
  const kinds =
    unitTypes === null ? null : TASK_KINDS.filter((kind) => unitTypes.includes(TASK_RULES[kind].unitType))
  const query = {
    accountId,
    keyId: keyIds?.[0] ?? null,
    models,
    kinds,
    ref,
    sessionId,
    limit: IN_FLIGHT_MAX_JOBS,
  }
  const jobs = await tasks.listOpenJobs(query).catch(() => null)
  return jobs === null ? null : jobs.map(printJob)
}
