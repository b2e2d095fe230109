/** `/v1/videos/avatars`: register, get, list, delete; and the presets. See docs/api-rules.md, "Music, voices, avatars, transcripts". */
import {
  AVATAR_LIST_MAX,
  AVATAR_MODEL,
  AVATAR_VIDEO_MODEL,
  type AvatarRecord,
  type AvatarRequest,
  avatarRequest,
} from '../../../schemas/media/avatars.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Handler } from '../../../src/http/handler.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { readJsonBody } from '../../../src/protocols/request/client-json.ts'
import type { CallAccess } from '../../calls/authenticate.ts'
import { jsonReply } from '../../calls/replies.ts'
import { readEnding } from '../../tasks/end/settlement.ts'
import { mergeLists, type PresetLists } from '../channel-lists.ts'
import { type DeletableRecords, deleteRecord } from '../delete-record.ts'
import { answerForFree } from '../free-call.ts'
import { type MediaOrders, mediaCall } from '../media-call.ts'
import { priceOrder } from '../priced-job.ts'
import { requireRoutes } from '../select-media.ts'
import { showTask } from '../task-endpoints.ts'
import { type TaskFinder, type TaskRecords, throwUnavailable } from '../task-records.ts'

export function printAvatar(task: Task): AvatarRecord {
  const { id, kind, state, job, submittedAt } = task
  if (job.work !== 'avatar') throw new Error(`task ${id} makes no avatar`)
  return {
    id,
    name: job.name,
    source_kind: job.source_kind,
    status: TASK_RULES[kind].outward[state] as AvatarRecord['status'],
    error: readEnding(task).message,
    created_at: new Date(submittedAt).toISOString(),
  }
}

export const registerAvatar = (orders: MediaOrders): Handler =>
  mediaCall<AvatarRequest>(orders, {
    kind: 'avatar',
    protocol: 'videos',
    read: ({ body }) => readJsonBody(avatarRequest, body),
    model: AVATAR_MODEL,
    order(call) {
      const { name, source_url, source_kind } = call.params
      const source = { from: 'url', url: source_url } as const
      const job = { work: 'avatar', name, source, source_kind: source_kind ?? 'image' } as const
      return priceOrder(call, 'videos_avatars', job)
    },
    reply: (task) => jsonReply({ ...printAvatar(task), status: 'pending', error: null }),
  })

export const showAvatar = (access: CallAccess, records: TaskFinder): Handler =>
  showTask(access, records, 'avatar', printAvatar)

export const listAvatars = (access: CallAccess, records: TaskRecords): Handler =>
  answerForFree(access, async ({ known }) => {
    const accountId = known.account.id
    const found = await records
      .list({ accountId, kind: 'avatar', states: null, limit: AVATAR_LIST_MAX })
      .catch(throwUnavailable)
    const avatars = found.tasks.map(printAvatar)
    return { object: 'list', avatars, data: avatars, has_more: found.hasMore }
  })

export const deleteAvatar = (access: CallAccess, records: DeletableRecords): Handler =>
  answerForFree(access, (caller) => deleteRecord(records, caller, 'avatar'))

/** Lists the avatars of the channels that make videos of them. */
export const listAvatarPresets = (access: CallAccess, lists: PresetLists): Handler =>
  answerForFree(access, async () => {
    const current = access.catalog()
    const model = current.resolve(AVATAR_VIDEO_MODEL)
    const routes = model === null ? [] : requireRoutes(current, model, 'avatar_video')
    const avatars = await mergeLists(
      routes.map(({ channel }) => channel),
      (channel) => lists.presets(channel, 'avatar'),
      ({ id }) => id,
    )
    return { avatars: avatars.map(({ id, name }) => ({ id, name })) }
  })
