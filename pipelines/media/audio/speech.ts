/** `/v1/audio/speech`: create, get, list and cancel. See docs/api-rules.md, "Speech". */
import type { Observable } from 'rxjs'
import type { z } from 'zod'
import { Failure } from '../../../schemas/failure.ts'
import { countCharacters } from '../../../schemas/media/fields.ts'
import {
  SPEECH_FORMAT,
  type SpeechRequest,
  type SpeechTask,
  type speech,
  speechRequest,
  type speechSubmitted,
} from '../../../schemas/media/speech.ts'
import { printCredits } from '../../../schemas/money.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import { namesJson, prefersSound } from '../../../src/core/accepted-format.ts'
import { printSeconds } from '../../../src/core/media/pricing.ts'
import type { GatewayRequest, Handler, Reply } from '../../../src/http/handler.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { invalidField, readJsonBody } from '../../../src/protocols/request/client-json.ts'
import type { FileReader, LastingLinks } from '../../../src/storage/store.ts'
import type { CallAccess } from '../../calls/authenticate.ts'
import { jsonReply, paceReply } from '../../calls/replies.ts'
import { readEnding } from '../../tasks/end/settlement.ts'
import { isThere } from '../../tasks/store/result-files.ts'
import { filesRemoved, toTaskFailure } from '../failed-task.ts'
import { throwUnreadable } from '../files/unreadable.ts'
import { type MediaCall, type MediaOrders, mediaCall, type OrderParts } from '../media-call.ts'
import { priceJob } from '../priced-job.ts'
import { assertEndpoint, requireRoutes } from '../select-media.ts'
import { type MediaResources, resolveMediaResource } from '../select-voice-or-avatar.ts'
import { type MediaTasks, taskEndpoints } from '../task-endpoints.ts'

const DEFAULT_SPEED = 1

interface SpeechFiles extends FileReader, LastingLinks {}

interface SpeechParams extends SpeechRequest {
  /** True if the client wants the audio itself, not a link to it. */
  readonly asSound: boolean
}

/** @throws Failure also for an unknown format if the answer is the audio itself */
function readSpeech({ body, header }: GatewayRequest): SpeechParams {
  const params = readJsonBody(speechRequest, body)
  const { response_format: format, stream_format: delivery } = params
  const accept = header('accept')
  const isNamed = format != null || delivery != null
  const asSound = prefersSound(accept) || (isNamed && !namesJson(accept))
  if (asSound && format != null && format !== SPEECH_FORMAT)
    throw invalidField('response_format', `it must be '${SPEECH_FORMAT}', which is what there is`)
  return { ...params, asSound }
}

/** Finds the voice, which selects the channels that have it; without one, each channel uses its default. */
async function findVoice(resources: MediaResources, call: MediaCall<SpeechRequest>) {
  const { catalog, params, model } = call
  const routes = requireRoutes(catalog, model, 'speech')
  if (params.voice == null) return { voice: null, isOwn: false, routes }
  const asked = { field: 'voice', id: params.voice, routes }
  const { upstreamId, ...rest } = await resolveMediaResource(resources, call, 'voice', asked)
  return { voice: upstreamId, ...rest }
}

async function orderSpeech(resources: MediaResources, call: MediaCall<SpeechRequest>): Promise<OrderParts> {
  const { params, model } = call
  assertEndpoint(model, ['audio_speech'])
  const { voice, isOwn, routes } = await findVoice(resources, call)
  // Speed applies only to cloned voices.
  const speed = isOwn ? (params.speed ?? DEFAULT_SPEED) : DEFAULT_SPEED
  const job = { work: 'speech', input: params.input, voice, speed } as const
  const until = params.async === true ? 'accepted' : 'ended'
  return { ...priceJob(model, job), routes, until }
}

function countJobCharacters({ id, job }: Task): number {
  if (job.work !== 'speech') throw new Error(`task ${id} says nothing`)
  return countCharacters(job.input)
}

/** Returns a link to the audio; the upstream's own if it could not be copied. */
function findSound(files: LastingLinks, { result }: Task): string | null {
  const sound = result?.files.find(({ role }) => role === 'audio')
  if (sound === undefined || !isThere(sound, Date.now())) return null
  return sound.key === null ? sound.upstream_url : files.makePermanentLink(sound.key)
}

/** @throws Failure for a task that failed or was cancelled */
export function printSpeech(files: LastingLinks, task: Task): z.infer<typeof speech> {
  const audio_url = findSound(files, task)
  if (task.state !== 'succeeded') throw toTaskFailure(task)
  if (audio_url === null) throw filesRemoved('speech')
  return {
    model: task.model,
    audio_url,
    characters: countJobCharacters(task),
    cost_usd: printCredits(task.cost ?? 0n),
  }
}

/** Prints the answer to a submit, whatever has happened to the task since. */
export const printSubmittedSpeech = (task: Task): z.infer<typeof speechSubmitted> => ({
  id: task.id,
  model: task.model,
  status: 'pending',
  characters: countJobCharacters(task),
  created_at: new Date(task.submittedAt).toISOString(),
})

export function printSpeechTask(files: LastingLinks, task: Task): SpeechTask {
  const { id, kind, state, model, submittedAt, result } = task
  const { code, message } = readEnding(task)
  const audio_url = state === 'succeeded' ? findSound(files, task) : null
  const seconds = audio_url === null ? null : (result?.seconds ?? null)
  return {
    id,
    model,
    status: TASK_RULES[kind].outward[state] as SpeechTask['status'],
    characters: countJobCharacters(task),
    ...(seconds !== null && { duration_sec: printSeconds(seconds) }),
    ...(audio_url !== null && { audio_url }),
    created_at: new Date(submittedAt).toISOString(),
    ...(code !== null && { error: { code, message: message ?? '' } }),
  }
}

/** Replies with the audio, or with JSON and the upstream's own link if it could not be copied. */
function replyWithSound(files: SpeechFiles, task: Task): Reply | Observable<Reply> {
  const printed = printSpeech(files, task)
  const key = task.result?.files.find(({ role }) => role === 'audio')?.key ?? null
  if (key === null) return jsonReply(printed)
  return paceReply(async () => {
    const found = await files.get(key).catch(throwUnreadable)
    if (found === null) throw new Failure('not_found', 'The sound is not there any more.')
    // No content-length: the reply ends after its last byte, once the record of its Idempotency-Key is stored.
    return { headers: [['content-type', found.mediaType]], pieces: found.stream }
  })
}

/** Once the task exists, it is carried out and charged even if the client leaves. */
export const makeSpeech = (orders: MediaOrders, resources: MediaResources, files: SpeechFiles): Handler =>
  mediaCall<SpeechParams>(orders, {
    kind: 'speech',
    protocol: 'speech',
    read: readSpeech,
    model: ({ model }) => model,
    meaning: ({ asSound: _, ...fields }) => fields,
    order: (call) => orderSpeech(resources, call),
    reply(task, { params }) {
      if (params.async === true) return jsonReply(printSubmittedSpeech(task))
      return params.asSound ? replyWithSound(files, task) : jsonReply(printSpeech(files, task))
    },
  })

export const speechTasks = (access: CallAccess, tasks: MediaTasks, files: LastingLinks) =>
  taskEndpoints(access, tasks, 'speech', (task) => printSpeechTask(files, task))
