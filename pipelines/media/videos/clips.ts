/**
 * The parts of clips: `/v1/videos/clip-subtitles`, `/v1/videos/clip-templates` and their categories. A key that may not
 * compose clips may not use them. See docs/api-rules.md, "Clips".
 */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import {
  CLIP_API_VERSION,
  CLIP_COMPOSE_MODEL,
  CLIP_SUBTITLE_MODEL,
  type ClipSubtitleRequest,
  clipSubtitleRequest,
  clipTemplateQuery,
} from '../../../schemas/media/clips.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Catalog } from '../../../src/core/routing/catalog.ts'
import type { Handler, Reply } from '../../../src/http/handler.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { readJsonBody } from '../../../src/protocols/request/client-json.ts'
import type { CallAccess, Caller } from '../../calls/authenticate.ts'
import { readQuery } from '../../calls/query.ts'
import { jsonReply } from '../../calls/replies.ts'
import { readEnding } from '../../tasks/end/settlement.ts'
import { type ChannelLists, mergeLists } from '../channel-lists.ts'
import { toTaskFailure } from '../failed-task.ts'
import { answerForFree } from '../free-call.ts'
import { type MediaOrders, mediaCall } from '../media-call.ts'
import { priceOrder } from '../priced-job.ts'
import { requireRoutes, selectMediaModel } from '../select-media.ts'
import { findTask, type TaskFinder } from '../task-records.ts'

/** The time for which a client waits for a recognition. See docs/api-rules.md, "Timeouts". */
const SUBTITLE_WAIT_MS = 240_000
const HTTP_ACCEPTED = 202

/** Returns the lines and the id by which a composition names them: the task's own id, known in advance. */
function readLines({ id, result }: Task) {
  const segments = (result?.segments ?? []).map(({ content, showRange }) => ({ content, showRange }))
  return { asr_id: id, segments, sentences: segments }
}

export const printSubtitles = (task: Task) => ({
  model: task.model,
  api_version: CLIP_API_VERSION,
  ...readLines(task),
})

export function printSubtitleTask(task: Task) {
  const { id, kind, state, model } = task
  const { code, message } = readEnding(task)
  return {
    id,
    object: 'clip_subtitle',
    model,
    status: TASK_RULES[kind].outward[state],
    ...readLines(task),
    api_version: CLIP_API_VERSION,
    error: code === null ? null : { code, message },
  }
}

const printSubmitted = ({ id, model }: Task) => ({
  id,
  object: 'clip_subtitle',
  model,
  status: 'running',
  asr_id: id,
  api_version: CLIP_API_VERSION,
})

function replyWithSubtitles(task: Task, isAsync: boolean): Reply {
  if (isAsync) return { ...jsonReply(printSubmitted(task)), status: HTTP_ACCEPTED }
  if (task.state !== 'succeeded') throw toTaskFailure(task)
  return jsonReply(printSubtitles(task))
}

export const recogniseSubtitles = (orders: MediaOrders): Handler =>
  mediaCall<ClipSubtitleRequest>(orders, {
    kind: 'subtitle',
    protocol: 'videos',
    read: ({ body }) => readJsonBody(clipSubtitleRequest, body),
    model: CLIP_SUBTITLE_MODEL,
    permittedBy: CLIP_COMPOSE_MODEL,
    order(call) {
      const { video_url, async } = call.params
      const job = { work: 'subtitle', video: { from: 'url', url: video_url } } as const
      if (async === true) return priceOrder(call, 'clip_subtitles', job)
      return { ...priceOrder(call, 'clip_subtitles', job, 'ended'), deadlineMs: SUBTITLE_WAIT_MS }
    },
    reply: (task, { params }) => replyWithSubtitles(task, params.async === true),
  })

/** @throws Failure `model_not_allowed`, `model_not_found` */
const answerPermitted = (access: CallAccess, body: (caller: Caller) => Promise<object>): Handler =>
  answerForFree(access, async (caller) => {
    selectMediaModel(access.catalog(), caller.known, CLIP_COMPOSE_MODEL)
    return body(caller)
  })

export const showSubtitles = (access: CallAccess, records: TaskFinder): Handler =>
  answerPermitted(access, async (caller) =>
    printSubtitleTask(await findTask(records, caller, 'subtitle', caller.request.params.id)),
  )

/** Lists the channels that compose clips. @throws Failure `no_channel_available` */
function listComposers(catalog: Catalog): readonly ChannelEntry[] {
  const model = catalog.resolve(CLIP_COMPOSE_MODEL)
  return model === null ? [] : requireRoutes(catalog, model, 'clip_compose').map(({ channel }) => channel)
}

export const listClipTemplates = (access: CallAccess, lists: ChannelLists): Handler =>
  answerPermitted(access, async ({ request }) => {
    const { cate_id: category = null } = readQuery(clipTemplateQuery, request.query)
    const list = await mergeLists(
      listComposers(access.catalog()),
      (channel) => lists.clipTemplates(channel, category),
      ({ style_id }) => style_id,
    )
    return { list, sid: '', api_version: CLIP_API_VERSION }
  })

export const listClipCategories = (access: CallAccess, lists: ChannelLists): Handler =>
  answerPermitted(access, async () => {
    const list = await mergeLists(
      listComposers(access.catalog()),
      (channel) => lists.clipCategories(channel),
      ({ cate_id }) => cate_id,
    )
    return { list: list.toSorted((a, b) => a.sort - b.sort), api_version: CLIP_API_VERSION }
  })
