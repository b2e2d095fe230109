/** The ark-video dialect: `/api/v3/contents/generations/tasks` in Ark's public shapes. */

import { z } from 'zod'
import { findNamedModel, requireBearer } from '../../access.ts'
import {
  type Dialect,
  jsonAnswer,
  type OpenedRequest,
  parseJsonObject,
  type ReceivedRequest,
  SimulatedFailure,
  type WholeAnswer,
} from '../../dialect.ts'
import type { Directives } from '../../directives/grammar.ts'
import { Delivery, filmSize, roundSeconds } from '../../media/delivery.ts'
import { readAs } from '../../requests.ts'
import { makeTaskId, readState, type Task, type TaskState } from '../../tasks/task-book.ts'
import { acceptWork, directivesInTexts, openPoll } from '../../tasks/work.ts'
import { errorAnswer, NO_KEY } from './error.ts'

const NAME = 'ark-video'
const DEFAULT_SECONDS = 5
const MAX_SECONDS = 60
const DEFAULT_RESOLUTION = '720p'
const DEFAULT_RATIO = '16:9'
const FRAMES_PER_SECOND = 24
/** The vendor bills width x height x frames / 1024 tokens. */
const PIXELS_PER_TOKEN = 1_024
const MS_PER_SECOND = 1_000
const PICTURE = /^(https?:\/\/\S+|data:image\/[a-z]+;base64,[A-Za-z0-9+/]+={0,2}|asset:\/\/\S+)$/
const LINK = /^(https?|asset):\/\/\S+$/

export const arkVideo: Dialect = {
  name: NAME,
  endpoints: [
    { method: 'POST', path: /^\/api\/v3\/contents\/generations\/tasks$/, open: openSubmit },
    { method: 'GET', path: /^\/api\/v3\/contents\/generations\/tasks\/([^/]+)$/, open: openQuery },
    { method: 'DELETE', path: /^\/api\/v3\/contents\/generations\/tasks\/([^/]+)$/, open: openCancel },
  ],
  failure: errorAnswer,
}

const part = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string().min(1) }),
  z.object({
    type: z.literal('image_url'),
    image_url: z.object({ url: z.string().regex(PICTURE, 'it is neither a link nor a picture') }),
    role: z.enum(['first_frame', 'last_frame', 'reference_image']).optional(),
  }),
  z.object({
    type: z.literal('video_url'),
    video_url: z.object({ url: z.string().regex(LINK, 'it is no link') }),
    role: z.enum(['reference_video']).optional(),
  }),
])

const request = z.object({
  model: z.string().min(1),
  content: z.array(part).min(1),
  resolution: z.enum(['480p', '720p', '1080p']).optional(),
  ratio: z.enum(['16:9', '4:3', '1:1', '3:4', '9:16', '21:9', 'adaptive']).optional(),
  duration: z.int().min(1).max(MAX_SECONDS).optional(),
  /** Takes precedence over the length. */
  frames: z
    .int()
    .min(1)
    .max(MAX_SECONDS * FRAMES_PER_SECOND)
    .optional(),
  seed: z
    .int()
    .min(-1)
    .max(2 ** 32 - 1)
    .optional(),
  watermark: z.boolean().optional(),
  camera_fixed: z.boolean().optional(),
  generate_audio: z.boolean().optional(),
})

type Asked = z.infer<typeof request>

function openSubmit(received: ReceivedRequest): OpenedRequest {
  requireBearer(received.headers, NO_KEY)
  const asked = readAs(request, parseJsonObject(received.body))
  const { directives } = findNamedModel(
    asked.model,
    (model) => `The model or endpoint ${model} does not exist or you do not have access to it.`,
  )
  refuseLooseLastFrame(asked)
  return {
    model: asked.model,
    directives: [directives, directivesInTexts(asked.content)],
    answer: (merged) => submit(received, asked, merged),
  }
}

function refuseLooseLastFrame({ content }: Asked): void {
  const roles = content.map((one) => ('role' in one ? one.role : undefined))
  if (!roles.includes('last_frame') || roles.includes('first_frame')) return
  const message = 'The parameter `content` is not valid: a last frame needs a first frame.'
  throw new SimulatedFailure(400, 'invalid_request', message, { param: 'content' })
}

function submit({ world, origin }: ReceivedRequest, asked: Asked, directives: Directives): WholeAnswer {
  const words = JSON.stringify([asked.model, asked.content])
  const tell = (task: Task) => {
    const options = { files: world.files, origin, id: task.id, directives, words }
    return wire(task, asked, new Delivery(options))
  }
  const task = { id: `cgt-${makeTaskId()}`, kind: 'video', words, tell }
  const work = { ...task, world, dialect: NAME, model: asked.model, reference: null, directives }
  return acceptWork(work, ({ id }) => jsonAnswer(200, { id }))
}

function openQuery(received: ReceivedRequest): OpenedRequest {
  requireBearer(received.headers, NO_KEY)
  return openPoll(received, NAME, received.path[1] as string)
}

function openCancel({ world, path, headers }: ReceivedRequest): OpenedRequest {
  requireBearer(headers, NO_KEY)
  const task = world.tasks.find(NAME, path[1] as string)
  if (task === null) throw new SimulatedFailure(404, 'not_found', 'The specified task is not found.')
  return {
    model: task.submit.model,
    answer: () => {
      task.cancels += 1
      if (readState(task) !== 'queued') {
        const message = 'The task is not queued any more: it cannot be cancelled.'
        throw new SimulatedFailure(400, 'invalid_request', message, { code: 'InvalidAction' })
      }
      world.tasks.end(task, 'cancelled')
      return jsonAnswer(200, {})
    },
  }
}

const STATUSES: Readonly<Record<TaskState, string>> = {
  queued: 'queued',
  running: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  moderated: 'failed',
  expired: 'expired',
  cancelled: 'cancelled',
  unknown: 'paused',
}

function wire(task: Task, asked: Asked, delivery: Delivery): object {
  const state = readState(task)
  const nowMs = Math.min(Date.now(), task.endsAtMs)
  const { code } = task.submit.directives
  const failed = { code: code ?? 'InternalServiceError', message: 'The service failed: simulated.' }
  const moderated = {
    code: 'OutputVideoSensitiveContentDetected',
    message: 'The output video may contain sensitive information: simulated.',
  }
  return {
    ...{ id: task.id, model: asked.model, status: STATUSES[state] },
    ...(state === 'failed' ? { error: failed } : {}),
    ...(state === 'moderated' ? { error: moderated } : {}),
    ...(state === 'succeeded' ? madeFilm(task, asked, delivery) : {}),
    created_at: Math.floor(task.submit.atMs / MS_PER_SECOND),
    updated_at: Math.floor(nowMs / MS_PER_SECOND),
  }
}

function madeFilm({ submit: { directives } }: Task, asked: Asked, delivery: Delivery): object {
  const flags = flagsIn(asked)
  const resolution = asked.resolution ?? flags.get('resolution') ?? flags.get('rs') ?? DEFAULT_RESOLUTION
  const ratio = asked.ratio ?? flags.get('ratio') ?? flags.get('rt') ?? DEFAULT_RATIO
  const fromFlags = Number(flags.get('duration') ?? flags.get('dur') ?? DEFAULT_SECONDS)
  const framed = asked.frames === undefined ? undefined : asked.frames / FRAMES_PER_SECOND
  const seconds = roundSeconds(directives.seconds ?? framed ?? asked.duration ?? fromFlags)
  const size = directives.size ?? filmSize(resolution, ratio)
  const pixels = size.widthPixels * size.heightPixels
  const tokens = Math.round((pixels * FRAMES_PER_SECOND * seconds) / PIXELS_PER_TOKEN)
  return {
    content: { video_url: delivery.film(0, size, seconds) },
    usage: { completion_tokens: tokens, total_tokens: tokens },
    ...{ seed: asked.seed ?? 0, resolution, ratio, framespersecond: FRAMES_PER_SECOND },
    ...(directives.no_seconds === true ? {} : { duration: seconds }),
    ...(asked.content.some(({ type }) => type === 'video_url')
      ? { input_video_duration: directives.input_seconds ?? DEFAULT_SECONDS }
      : {}),
  }
}

/** Reads flags after the text, such as `--duration 5`: the older form. */
function flagsIn({ content }: Asked): Map<string, string> {
  const texts = content.flatMap((one) => (one.type === 'text' ? [one.text] : []))
  const found = texts.join(' ').matchAll(/\s--(duration|dur|resolution|rs|ratio|rt)\s+(\S+)/g)
  return new Map([...found].map(([, name = '', value = '']) => [name, value]))
}
