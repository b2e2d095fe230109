/** Operations of long jobs, and what an operator reads of the integrity of the books. */
import { z } from 'zod'
import { amountText, instantText, operation, pageInput, toPageSchema } from './operation.ts'

/** Of lists of jobs: fewer than of others, for each has its result. */
export const lastJobs = { ...pageInput, limit: z.coerce.number().int().min(1).max(100).default(20) }

const kind = z.enum(['verify', 'rebuild'])
const id = z.string()

const difference = z.object({
  account_id: z.string(),
  kind: z.string(),
  ref: z.string().optional().describe('The request, task or day, where it is about one.'),
  expected: z.string(),
  found: z.string(),
})

const verified = z.object({
  ok: z.boolean(),
  since: instantText
    .optional()
    .describe('The instant since which what was written was read; absent: everything was.'),
  accounts: z.int(),
  entries: z.int(),
  differences: z.array(difference),
  call_log_not_compared: z.string().optional().describe('Why the call log was not compared.'),
  payments_not_compared: z
    .string()
    .optional()
    .describe("Why the payment provider's books were not compared."),
  metered_last_day: z
    .array(
      z.object({
        account_id: z.string(),
        model: z.string(),
        channel_id: z.string(),
        calls: z.int(),
        estimated: z.int().describe('Charged by estimate.'),
        suspect: z.int().describe('With reported usage that no call can have.'),
        estimated_percent: z.int(),
        other_model: z.int().describe('Answered by another model than was requested.'),
      }),
    )
    .optional()
    .describe('Charged calls of the last day, where some were estimated, suspect, or answered otherwise.'),
  negative_balances: z.array(z.object({ account_id: z.string(), balance: amountText })).optional(),
})
export type Verified = z.infer<typeof verified>

const rebuilt = z.object({
  rows: z.int(),
  dropped: z.int().describe('Rows that the log drops for their age.'),
})
export type Rebuilt = z.infer<typeof rebuilt>

/** The progress of a job of any kind. */
export const jobProgress = {
  id,
  state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']),
  error: z.string().nullable(),
  created_by: z.string(),
  created_at: instantText,
  started_at: instantText.nullable(),
  ended_at: instantText.nullable(),
}

const job = z.object({
  ...jobProgress,
  kind,
  done: z.int().describe('Checks of a verify, rows of a rebuild.'),
  total: z.int(),
  verified: verified.nullable(),
  rebuilt: rebuilt.nullable(),
})

const ofOperators = { scope: 'admin', allows: 'operators' } as const

export const startJob = operation('startJob', {
  ...ofOperators,
  summary: 'Start a job: verify every wallet against the ledger and the call log, or rebuild the call log.',
  details: 'A settler runs it. 409 while one of its kind is under way.',
  input: z.object({
    kind,
    full: z
      .boolean()
      .default(false)
      .describe(
        'A verify reads everything, and not only what was written since the last one without a difference.',
      ),
    delete_unbooked: z
      .boolean()
      .default(false)
      .describe(
        'A rebuild deletes the calls that only the call log has. Without it a rebuild fails where there are some; ' +
          '`POST /call-log/import` books them.',
      ),
  }),
  answer: { name: 'Job', schema: job },
  status: 201,
})

export const listJobs = operation('listJobs', {
  ...ofOperators,
  summary: 'List the last jobs, the newest first.',
  input: z.object({ kind: kind.optional(), ...lastJobs }),
  answer: { name: 'JobList', schema: toPageSchema(job) },
})

export const showJob = operation('showJob', {
  ...ofOperators,
  summary: 'Show a job with its progress and result.',
  input: z.object({ id }),
  answer: { name: 'JobInFull', schema: job },
})

export const cancelJob = operation('cancelJob', {
  ...ofOperators,
  summary: 'Cancel a job. A rebuild that is cancelled leaves the call log as it was.',
  input: z.object({ id }),
  answer: { name: 'CancelledJob', schema: job },
})
