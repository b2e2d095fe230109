/** Operations of long jobs. */
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/jobs.ts'
import type { Job } from '../../../src/postgres/operation/jobs.ts'
import { implement } from '../operation.ts'
import { readPage, toPage } from '../page.ts'
import { printInstantOrNull } from '../shapes.ts'

/** The shape that jobs of every kind have in common. */
export const jobProgressShape = ({ id, state, done, total, error, ...job }: Job) => ({
  id,
  state,
  done: Number(done),
  total: Number(total),
  error,
  created_by: job.createdBy,
  created_at: job.createdAt.toISOString(),
  started_at: printInstantOrNull(job.startedAt),
  ended_at: printInstantOrNull(job.endedAt),
})

const INTEGRITY_KINDS = ['verify', 'rebuild'] as const
type IntegrityKind = (typeof INTEGRITY_KINDS)[number]

/** @throws Failure `not_found` for an import: its knowledge base has it */
function jobShape(job: Job) {
  const kind = INTEGRITY_KINDS.find((one): one is IntegrityKind => one === job.kind)
  if (kind === undefined) throw new Failure('not_found', `There is no job ${job.id}.`)
  return {
    ...jobProgressShape(job),
    kind,
    verified: kind === 'verify' ? (job.result as operations.Verified | null) : null,
    rebuilt: kind === 'rebuild' ? (job.result as operations.Rebuilt | null) : null,
  }
}

export const jobOperations = [
  implement(operations.startJob, async ({ write }, { kind, ...flags }) => {
    const given = Object.entries(flags).filter(([, isSet]) => isSet)
    const input = given.length > 0 ? Object.fromEntries(given) : null
    return jobShape(await write((database) => database.jobs.start({ kind, input })))
  }),
  implement(operations.listJobs, async ({ database }, { kind, ...input }) => {
    const kinds = kind === undefined ? INTEGRITY_KINDS : [kind]
    return toPage((await database.jobs.list({ kinds, ...readPage(input) })).map(jobShape), input)
  }),
  implement(operations.showJob, async ({ database }, { id }) => jobShape(await database.jobs.read(id))),
  implement(operations.cancelJob, async ({ write }, { id }) =>
    write(async (database) => jobShape(await database.jobs.cancel(id))),
  ),
]
