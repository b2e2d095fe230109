/** Operations of tasks. */
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/calls/tasks.ts'
import type { Database } from '../../../src/postgres/database.ts'
import type { AllTasksQuery, Task, TaskMove } from '../../../src/postgres/tasks/types.ts'
import type { FileLinks } from '../../../src/storage/store.ts'
import { readRefund } from '../../call-log/refund.ts'
import { cancelFoundTask } from '../../media/cancel-task.ts'
import type { PipelineLog } from '../../settlement/retrying.ts'
import { endTask as endByOperator, NotEndable } from '../../tasks/end/end-task.ts'
import type { TaskTransitions, TaskUpstreams } from '../../tasks/engine.ts'
import { isThere, KEEPING } from '../../tasks/store/result-files.ts'
import type { TaskMessages } from '../../tasks/worker/messages.ts'
import { type Context, implementWith } from '../operation.ts'
import { type PageInput, readCursor, readRange, type TimeInput, toPage } from '../page.ts'
import { taskShape } from '../shapes.ts'

/** The expiry of a link to a file that is kept forever. */
const PREVIEW_LINK_MS = 60 * 60 * 1000

/** True unless the task counts as missing for its account: its record is deleted, or no upstream took it. */
export const isShown = ({ deletedAt, state, isEarly }: Task): boolean =>
  deletedAt === null && (state !== 'refused' || isEarly)

/** @throws Failure `not_found` */
async function findTask(database: Database, id: string, isSeen: (task: Task) => boolean): Promise<Task> {
  const [task] = await database.tasks.read([id])
  if (task === undefined || !isSeen(task)) throw new Failure('not_found', `There is no task ${id}.`)
  return task
}

interface ListInput extends PageInput, TimeInput {
  readonly kind?: Task['kind'] | undefined
  readonly state?: readonly Task['state'][] | undefined
  readonly open: boolean
}

async function readQuery(
  database: Database,
  { kind, state = [], open, ...input }: ListInput,
): Promise<Omit<AllTasksQuery, 'accountId' | 'isShown'>> {
  const before = readCursor(input)
  const [last] = before === null ? [] : await database.tasks.read([before])
  if (before !== null && last === undefined)
    throw new Failure('invalid_request', `cursor: is not the next_cursor of a page: no task is ${before}.`)
  const states = state.length === 0 ? null : state
  return { kind: kind ?? null, states, isOpen: open, before, limit: input.limit + 1, ...readRange(input) }
}

export interface TaskServices {
  readonly upstreams: TaskUpstreams
  /** Rejects with the reason why the provider has not cancelled the task. */
  readonly cancelUpstream: (task: Task) => Promise<unknown>
  readonly messages: TaskMessages
  readonly files: FileLinks
  readonly log: PipelineLog
}

/** Returns fresh links to the files of a task, as far as they are still kept. */
async function listFiles(files: FileLinks, { kind, result }: Task, now: number) {
  const { linkMs } = KEEPING[kind]
  const kept = (result?.files ?? []).filter((file) => isThere(file, now))
  const links = kept.map(async ({ role, key, upstream_url, kept_until }) => {
    if (key === null) return { role, url: upstream_url ?? '', expires_at: null }
    const expiresAt = Math.min(now + (linkMs ?? PREVIEW_LINK_MS), kept_until ?? Number.POSITIVE_INFINITY)
    return { role, url: await files.makeLink(key, expiresAt), expires_at: new Date(expiresAt).toISOString() }
  })
  return Promise.all(links)
}

const readDetail = async ({ database, now }: Context, task: Task, files: FileLinks) => ({
  ...taskShape(task),
  files: await listFiles(files, task, now),
  refund: await readRefund(database.wallets, task.accountId, task.id),
})

/** Moves the task in the name of the caller; the audit record has its cancellation. */
const listTransitions = ({ write }: Context, { state }: Task): { readonly tasks: TaskTransitions } => ({
  tasks: {
    applyTransition: (move) => {
      const audit = { action: 'task.cancelled', before: { state }, after: { state: move.to } }
      return write((database) =>
        database.tasks.applyTransition(move.to === 'cancelled' ? { ...move, audit } : move),
      )
    },
  },
})

const conflict = (error: unknown): never => {
  throw error instanceof NotEndable ? new Failure('conflict', error.message) : error
}

const findTaskAccount = async (database: Database, { id }: { readonly id: string }): Promise<string> =>
  (await findTask(database, id, isShown)).accountId

const implement = implementWith<TaskServices>()

export const taskOperations = [
  implement(operations.listTasks, async ({ database }, { account_id: accountId, ...input }) => {
    const query = await readQuery(database, input)
    const tasks = await database.tasks.listAll({ ...query, accountId, isShown: true })
    return toPage(tasks.map(taskShape), input)
  }),
  implement(operations.showTask, findTaskAccount, async (context, { id }, { files }) =>
    readDetail(context, await findTask(context.database, id, isShown), files),
  ),
  implement(operations.cancelTask, findTaskAccount, async (context, { id }, { upstreams, messages, log }) => {
    const task = await findTask(context.database, id, isShown)
    const now = () => context.now
    return taskShape(
      await cancelFoundTask(
        { ...upstreams, database: listTransitions(context, task), messages, log, now },
        task,
      ),
    )
  }),
  implement(operations.listAllTasks, async ({ database }, { account_id: accountId = null, ...input }) => {
    const query = await readQuery(database, input)
    return toPage((await database.tasks.listAll({ ...query, accountId })).map(taskShape), input)
  }),
  implement(operations.showAnyTask, async (context, { id }, { files }) =>
    readDetail(context, await findTask(context.database, id, () => true), files),
  ),
  implement(
    operations.endTask,
    async ({ database, write, now }, { id, as, reason }, { messages, cancelUpstream }) => {
      await findTask(database, id, () => true)
      const tasks = {
        read: database.tasks.read,
        applyTransition: (move: TaskMove) => write((writing) => writing.tasks.applyTransition(move)),
      }
      const deps = { database: { tasks }, messages, cancelUpstream, now: () => now }
      const { task, provider } = await endByOperator(deps, id, { event: as, reason }).catch(conflict)
      return { ...taskShape(task), provider }
    },
  ),
  implement(operations.retryTask, async ({ database, write, now }, { id }, { messages }) => {
    const task = await findTask(database, id, () => true)
    const renewed = await write((writing) => writing.tasks.renewChain(id, now))
    if (renewed === null)
      throw new Failure(
        'conflict',
        task.endedAt === null
          ? `Task ${id} is being submitted. Try again in a minute.`
          : `Task ${id} has ended already: it is ${task.state}.`,
      )
    messages.publish(renewed)
    return taskShape(task)
  }),
]
