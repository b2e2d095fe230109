/** `/v1/videos/generations`: create, get, list and cancel. See docs/api-rules.md, "Videos". */
import { modelNamed } from '../../../schemas/media/fields.ts'
import { VIDEO_WORKS } from '../../../schemas/media/videos.ts'
import type { Model } from '../../../src/core/routing/catalog.ts'
import type { Handler } from '../../../src/http/handler.ts'
import { readJsonBody } from '../../../src/protocols/request/client-json.ts'
import type { FileLinks } from '../../../src/storage/store.ts'
import type { CallAccess } from '../../calls/authenticate.ts'
import { jsonReply } from '../../calls/replies.ts'
import { type MediaOrders, mediaCall } from '../media-call.ts'
import { priceJob } from '../priced-job.ts'
import { assertEndpoint, requireRoutes } from '../select-media.ts'
import { type MediaTasks, taskEndpoints } from '../task-endpoints.ts'
import { VIDEO_BODY, VIDEO_JOBS, type VideoSources, type VideoWork } from './jobs.ts'
import { printSubmittedVideo, printVideo } from './task.ts'

const ENDPOINT_TYPES = ['videos_generations', 'contents_generations_tasks', 'clip_compose'] as const

interface NamedModel {
  readonly id: string
  readonly entry: Model['entry']
}

/** The kind of video depends on the model, under any of its names. */
export function readWork({ id, entry }: NamedModel): VideoWork {
  const known = [id, ...entry.aliases].find((name) => Object.hasOwn(VIDEO_WORKS, name))
  return known === undefined ? 'video' : VIDEO_WORKS[known]!
}

/** The fields that all kinds share; each kind reads the rest. */
type VideoParams = Record<string, unknown> & { model: string; callback_url?: string | null | undefined }

/** A link means the same as a text and as the `url` of an object. */
function describeMeaning({ content, ...fields }: VideoParams): object {
  if (!Array.isArray(content)) return { ...fields, content }
  const normalizeLinks = (value: unknown) =>
    typeof value === 'object' && value !== null && 'url' in value ? value.url : value
  const parts = content.map((part) =>
    typeof part === 'object' && part !== null
      ? { ...part, image_url: normalizeLinks(part.image_url), video_url: normalizeLinks(part.video_url) }
      : part,
  )
  return { ...fields, content: parts }
}

export const makeVideo = (orders: MediaOrders, sources: VideoSources): Handler =>
  mediaCall<VideoParams>(orders, {
    kind: 'video',
    protocol: 'videos',
    read: ({ body }) => readJsonBody(modelNamed, body, VIDEO_BODY),
    model: ({ model }) => model,
    meaning: describeMeaning,
    async order(call) {
      const { catalog, params, model } = call
      assertEndpoint(model, ENDPOINT_TYPES)
      const work = readWork(model)
      const asked = {
        caller: call,
        body: params,
        entry: model.entry,
        routes: requireRoutes(catalog, model, work),
      }
      const { job, routes, variant } = await VIDEO_JOBS[work](sources, asked)
      return { ...priceJob(model, job, variant), routes, until: 'accepted' }
    },
    reply: (task) => jsonReply(printSubmittedVideo(task)),
  })

export const videoTasks = (access: CallAccess, tasks: MediaTasks, files: FileLinks) =>
  taskEndpoints(access, tasks, 'video', (task) => printVideo(files, task, Date.now()))
