/**
 * `GET` and `DELETE /v1/responses/{id}`, the items of its input, and its cancel: asked of the channel that keeps the
 * response. Of one that is made in the background the task tells how far it is. See docs/api-rules.md, "Responses".
 */
import { Failure } from '../../../schemas/failure.ts'
import { isFinal, TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Handler, Reply } from '../../../src/http/handler.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { CallAccess, Caller } from '../../calls/authenticate.ts'
import { jsonReply } from '../../calls/replies.ts'
import { cancelFoundTask, type TaskCanceller } from '../../media/cancel-task.ts'
import { replyForFree } from '../../media/free-call.ts'
import { toEpochSeconds } from '../../media/task-records.ts'
import { notCancellable } from '../../tasks/end/cancel-upstream.ts'
import { readEnding } from '../../tasks/end/settlement.ts'
import {
  askChannel,
  deleteAndForget,
  findKeepingChannel,
  forwardQuery,
  type KeepingChannels,
  readAccountId,
  readId,
  toReply,
} from './ask-channel.ts'
import { awaitStored, findResponse, type ResponseFinder } from './state.ts'

interface ResponseTasks {
  findByResponse(accountId: string, id: string): Promise<Task | null>
  read(ids: readonly string[]): Promise<Task[]>
  deleteRecord(accountId: string, kind: 'response', id: string, now: number): Promise<boolean>
}

export interface ResponseRecords extends ResponseFinder {
  readonly forgetStoredResponse: (accountId: string, id: string) => Promise<void>
}

export interface KeptResponses {
  readonly access: CallAccess
  readonly channels: KeepingChannels
  readonly stored: ResponseRecords
  readonly tasks: ResponseTasks
  readonly canceller: TaskCanceller
  /** Polls the upstream of a task once, and ends the task where the upstream says so. */
  readonly driveTask: (task: Task) => Promise<unknown>
}

/** Whether the upstream may be asked about the task; else the task itself is all there is. */
const isWithUpstream = (task: Task): task is Task & { upstreamId: string } => task.upstreamId !== null

const findResponseTask = ({ tasks }: KeptResponses, caller: Caller): Promise<Task | null> =>
  awaitStored(tasks.findByResponse(readAccountId(caller), readId(caller, 'id')))

/** Asks the channel that keeps a response for what is below its path. */
async function askAbout(
  deps: KeptResponses,
  caller: Caller,
  method: 'GET' | 'DELETE' | 'POST',
  below = '',
): Promise<Reply> {
  const id = readId(caller, 'id')
  const { channelId, upstreamId } = await findResponse(deps.stored, readAccountId(caller), id)
  const channel = findKeepingChannel(deps.channels.catalog(), channelId)
  const question = {
    method,
    kind: 'responses',
    id: upstreamId,
    below,
    query: forwardQuery(caller.request.query),
  } as const
  return toReply(await askChannel(deps.channels, channel, question))
}

export const showResponse = (deps: KeptResponses): Handler =>
  replyForFree(deps.access, async (caller) => {
    const task = await findResponseTask(deps, caller)
    return task === null
      ? askAbout(deps, caller, 'GET')
      : showTask(deps.channels, task, forwardQuery(caller.request.query))
  })

/** Shows a response in its upstream's words; in ours while the upstream does not have it, or does not say. */
export async function showTask(channels: KeepingChannels, task: Task, query = ''): Promise<Reply> {
  if (!isWithUpstream(task)) return jsonReply(printResponseTask(task))
  try {
    const channel = findKeepingChannel(channels.catalog(), task.channelId)
    return toReply(
      await askChannel(channels, channel, { method: 'GET', kind: 'responses', id: task.upstreamId, query }),
    )
  } catch (error) {
    if (isFinal(task.state)) throw error
    return jsonReply(printResponseTask(task))
  }
}

export const listResponseInput = (deps: KeptResponses): Handler =>
  replyForFree(deps.access, async (caller) => {
    const task = await findResponseTask(deps, caller)
    if (task !== null && !isWithUpstream(task))
      throw new Failure(
        'invalid_request',
        'No upstream has taken this response on: its input cannot be listed.',
      )
    return askAbout(deps, caller, 'GET', '/input_items')
  })

/**
 * Cancels a response that is made in the background, and charges what the upstream reports of it. Any other is the
 * upstream's to refuse.
 */
export const cancelResponse = (deps: KeptResponses): Handler =>
  replyForFree(deps.access, async (caller) => {
    const task = await findResponseTask(deps, caller)
    if (task === null) return askAbout(deps, caller, 'POST', '/cancel')
    if (isWithUpstream(task)) {
      const reply = await askAbout(deps, caller, 'POST', '/cancel')
      if (!isFinal(task.state)) await pollAtOnce(deps, task)
      return reply
    }
    if (isFinal(task.state)) throw notCancellable()
    return jsonReply(printResponseTask(await cancelFoundTask(deps.canceller, task)))
  })

/** The worker polls it in any case: what fails here comes a little later. */
const pollAtOnce = ({ driveTask, canceller: { log } }: KeptResponses, task: Task): Promise<unknown> =>
  driveTask(task).catch((error: unknown) =>
    log.info({ task: task.id, error }, 'Failed to poll a response at once; the task worker does'),
  )

export const deleteResponse = (deps: KeptResponses): Handler =>
  replyForFree(deps.access, async (caller) => {
    const task = await findResponseTask(deps, caller)
    return task === null ? deleteStored(deps, caller) : deleteTask(deps, caller, task)
  })

const deleteStored = (deps: KeptResponses, caller: Caller): Promise<Reply> =>
  deleteAndForget(
    () => askAbout(deps, caller, 'DELETE'),
    () => deps.stored.forgetStoredResponse(readAccountId(caller), readId(caller, 'id')),
  )

/** Deletes a response once its task has ended: what its upstream no longer has cannot be charged. */
async function deleteTask(deps: KeptResponses, caller: Caller, task: Task): Promise<Reply> {
  if (!isFinal(task.state) && isWithUpstream(task)) await pollAtOnce(deps, task)
  const [current = task] = await awaitStored(deps.tasks.read([task.id]))
  if (!isFinal(current.state))
    throw new Failure(
      'invalid_request',
      'The response is still being made: cancel it first, or wait for its end.',
    )
  return deleteAndForget(
    async () =>
      isWithUpstream(current)
        ? askAbout(deps, caller, 'DELETE')
        : jsonReply({ id: task.id, object: 'response', deleted: true }),
    async () => {
      await awaitStored(deps.tasks.deleteRecord(readAccountId(caller), 'response', task.id, Date.now()))
      await deps.stored.forgetStoredResponse(readAccountId(caller), task.id)
    },
  )
}

/**
 * A response that is made in the background, as far as its task knows it: without its text.
 * The id is the upstream's once it has one: responses that follow name it so.
 */
export function printResponseTask(task: Task): object {
  const { id, upstreamId, submittedAt, kind, state, model } = task
  const status = TASK_RULES[kind].outward[state]
  const { code, message } = readEnding(task)
  return {
    id: upstreamId ?? id,
    object: 'response',
    created_at: toEpochSeconds(submittedAt),
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
