/** Operations of tasks. */
import { z } from 'zod'
import { shownRefund } from '../../call-log/detail.ts'
import { commaList } from '../../call-log/query.ts'
import { attemptRow } from '../../call-log/row.ts'
import { resultFile } from '../../media/job.ts'
import { queryFlag } from '../../query.ts'
import { taskKind, taskState } from '../../tasks/task.ts'
import { amountText, instantText, operation, pageInput, timeInput, toPageSchema } from '../operation.ts'

const taskSchema = z.object({
  id: z.string(),
  kind: taskKind,
  state: taskState,
  account_id: z.string(),
  key_id: z.string(),
  request_id: z.string().describe('The call that made the task.'),
  model: z.string(),
  hold: amountText,
  cost: amountText.nullable(),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  created_at: instantText,
  accepted_at: instantText.nullable(),
  ended_at: instantText.nullable(),
  deadline_at: instantText,
})

const operatorTask = taskSchema.extend({
  channel_id: z.string().nullable(),
  upstream_model: z.string().nullable(),
  upstream_id: z.string().nullable(),
  upstream_state: z.string().nullable(),
  attempts: z.array(attemptRow),
})

const files = z
  .array(
    z.object({
      role: resultFile.shape.role,
      url: z.string().describe('A fresh link.'),
      expires_at: instantText.nullable().describe('When the link ends; null: it does not, or nobody knows.'),
    }),
  )
  .describe('What the task made, as far as it is still kept.')

const inFull = {
  files,
  refund: shownRefund.nullable().describe('What an operator gave back of the cost; null: nothing.'),
}
const taskInFull = taskSchema.extend(inFull)
const operatorTaskInFull = operatorTask.extend(inFull)

const MAX_REASON_CHARS = 500
const ended = { options: 'reason' }

const filters = {
  kind: taskKind.optional().describe('Only tasks of this kind.'),
  state: commaList(taskState).optional().describe('One state or several, separated by commas.'),
  open: queryFlag().default(false).describe('true: only tasks that have not ended.'),
  ...timeInput,
  ...pageInput,
}
const id = z.string()
const allows = ['owner', 'admin'] as const

export const listTasks = operation('listTasks', {
  summary: 'List the tasks of an account, the newest first.',
  input: z.object({ account_id: z.string(), ...filters }),
  answer: { name: 'ManagedTaskList', schema: toPageSchema(taskSchema) },
  scope: 'read',
  allows,
})

export const showTask = operation('showTask', {
  summary: 'Show a task with fresh links to its results.',
  input: z.object({ id }),
  answer: { name: 'ManagedTask', schema: taskInFull },
  scope: 'read',
  allows,
})

export const cancelTask = operation('cancelTask', {
  summary: 'Cancel a task that is still queued, at its provider too.',
  details:
    'The hold goes back to the wallet, but for what the provider of a response says was used. 409 when the task runs ' +
    'already or its provider cannot cancel it.',
  input: z.object({ id }),
  answer: { name: 'CancelledTask', schema: taskSchema },
  scope: 'accounts',
  allows,
})

export const listAllTasks = operation('listAllTasks', {
  summary: 'List the tasks of all accounts, the newest first, with their channels and attempts.',
  details: 'Includes tasks whose record was deleted and tasks that no upstream took.',
  input: z.object({ account_id: z.string().optional(), ...filters }),
  answer: { name: 'OperatorTaskList', schema: toPageSchema(operatorTask) },
  scope: 'read',
  allows: 'operators',
  commands: [
    {
      words: 'task list',
      summary: 'List tasks, the newest first.',
      options: 'account_id kind since until',
      limit: 50,
      columns: 'id state account_id model channel_id hold cost created_at ended_at error_code',
      example: '--state open --kind video',
    },
  ],
})

export const showAnyTask = operation('showAnyTask', {
  summary: 'Show a task of any account, with its channel and attempts.',
  input: z.object({ id }),
  answer: { name: 'OperatorTask', schema: operatorTaskInFull },
  scope: 'read',
  allows: 'operators',
  commands: [{ words: 'task show', summary: 'Show a task with fresh links to its results.' }],
})

export const endTask = operation('endTask', {
  summary: 'End a task that has not ended, and refund it in full.',
  details: 'Its provider is asked to cancel it. Anything that the provider still makes is discarded.',
  input: z.object({
    id,
    as: z.enum(['cancelled', 'failed']).default('cancelled'),
    reason: z
      .string()
      .trim()
      .min(1)
      .max(MAX_REASON_CHARS)
      .nullable()
      .default(null)
      .describe('Reason that the customer reads.'),
  }),
  answer: {
    name: 'EndedTask',
    schema: operatorTask.extend({ provider: z.string().describe('What the provider did.') }),
  },
  scope: 'admin',
  allows: 'operators',
  isSensitive: true,
  commands: [
    {
      words: 'task cancel',
      ...ended,
      values: { as: 'cancelled' },
      summary: 'Cancel a task, at its provider too, and refund it in full.',
      effect: 'This would cancel the task {id} for good, at its provider too, and refund it in full',
    },
    {
      words: 'task fail',
      ...ended,
      values: { as: 'failed' },
      required: 'reason',
      effect: 'This would end the task {id} as failed, cancel it at its provider, and refund it in full',
      summary: 'Mark a task as failed, cancel it at its provider, and refund it in full.',
      example: '--reason "The provider lost it."',
    },
  ],
})

export const retryTask = operation('retryTask', {
  summary: 'Work on a task now: ask its provider again, or store its results again.',
  details: 'A task worker does it within seconds. 409 when the task has ended.',
  input: z.object({ id }),
  answer: { name: 'RetriedTask', schema: operatorTask },
  scope: 'admin',
  allows: 'operators',
  commands: [{ words: 'task retry' }],
})
