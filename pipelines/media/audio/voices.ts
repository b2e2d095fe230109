/** `/v1/audio/voices`: clone, get, list with the presets, delete. See docs/api-rules.md, "Music, voices, avatars, transcripts". */
import type { z } from 'zod'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { AVATAR_VIDEO_MODEL } from '../../../schemas/media/avatars.ts'
import {
  VOICE_LIST_MAX,
  VOICE_MODEL,
  type VoiceRecord,
  type VoiceRequest,
  type voiceList,
  voiceRequest,
} from '../../../schemas/media/voices.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Catalog } from '../../../src/core/routing/catalog.ts'
import type { Handler } from '../../../src/http/handler.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { readJsonBody } from '../../../src/protocols/request/client-json.ts'
import type { CallAccess, Caller } from '../../calls/authenticate.ts'
import { jsonReply } from '../../calls/replies.ts'
import { readEnding } from '../../tasks/end/settlement.ts'
import { mergeLists, type PresetLists } from '../channel-lists.ts'
import { type DeletableRecords, deleteRecord } from '../delete-record.ts'
import { toTaskFailure } from '../failed-task.ts'
import { answerForFree } from '../free-call.ts'
import { type MediaOrders, mediaCall } from '../media-call.ts'
import { priceOrder } from '../priced-job.ts'
import { listChannels } from '../select-media.ts'
import { showTask } from '../task-endpoints.ts'
import { type TaskFinder, type TaskRecords, throwUnavailable } from '../task-records.ts'

export function printVoice(task: Task): VoiceRecord {
  const { id, kind, state, model, job, submittedAt } = task
  if (job.work !== 'voice') throw new Error(`task ${id} makes no voice`)
  return {
    id,
    name: job.name,
    status: TASK_RULES[kind].outward[state] as VoiceRecord['status'],
    model,
    created_at: new Date(submittedAt).toISOString(),
    error: readEnding(task).message,
  }
}

function printMade(task: Task, isAsync: boolean): VoiceRecord {
  // The answer to a submit, whatever has happened to the task since.
  if (isAsync) return { ...printVoice(task), status: 'pending', error: null }
  if (task.state !== 'succeeded') throw toTaskFailure(task)
  return printVoice(task)
}

export const cloneVoice = (orders: MediaOrders): Handler =>
  mediaCall<VoiceRequest>(orders, {
    kind: 'voice',
    protocol: 'voices',
    read: ({ body }) => readJsonBody(voiceRequest, body),
    model: VOICE_MODEL,
    order(call) {
      const { name, audio_url, async } = call.params
      const job = { work: 'voice', name, audio: { from: 'url', url: audio_url } } as const
      return priceOrder(call, 'audio_voices', job, async === true ? 'accepted' : 'ended')
    },
    reply: (task, { params }) => jsonReply(printMade(task, params.async === true)),
  })

export const showVoice = (access: CallAccess, records: TaskFinder): Handler =>
  showTask(access, records, 'voice', printVoice)

export const deleteVoice = (access: CallAccess, records: DeletableRecords): Handler =>
  answerForFree(access, (caller) => deleteRecord(records, caller, 'voice'))

interface Voices {
  readonly tasks: TaskRecords
  readonly catalog: () => Catalog
  readonly lists: PresetLists
}

/** Lists the models that take a voice, each with the channels that have voices. */
function listSpeakers(catalog: Catalog): { id: string; channels: readonly ChannelEntry[] }[] {
  const speech = catalog.models
    .filter(({ entry }) => entry.callable && entry.endpoint_type === 'audio_speech')
    .map((model) => ({ id: model.id, channels: listChannels(catalog, model, 'speech') }))
  const avatars = catalog.resolve(AVATAR_VIDEO_MODEL)
  if (avatars === null) return speech
  return [...speech, { id: avatars.id, channels: listChannels(catalog, avatars, 'avatar_video') }]
}

type PresetVoice = z.infer<typeof voiceList>['presets'][number]

/** Lists each voice once, with all models that take it; nothing if no channel answers. */
async function listPresetVoices({ catalog, lists }: Voices): Promise<PresetVoice[]> {
  const listed = await Promise.all(
    listSpeakers(catalog()).map(async ({ id: model, channels }) => {
      const ask = (channel: ChannelEntry) => lists.presets(channel, 'voice')
      const voices = await mergeLists(channels, ask, ({ id }) => id).catch(() => [])
      return voices.map(({ id, name }) => ({ id, name, model }))
    }),
  )
  const voices = new Map<string, PresetVoice>()
  for (const { id, name, model } of listed.flat())
    voices.set(id, { id, name, models: [...(voices.get(id)?.models ?? []), model] })
  return [...voices.values()]
}

export const listVoices = (access: CallAccess, voices: Voices): Handler =>
  answerForFree(access, async ({ known }: Caller): Promise<z.infer<typeof voiceList>> => {
    const query = { accountId: known.account.id, kind: 'voice', states: null, limit: VOICE_LIST_MAX } as const
    const [own, presets] = await Promise.all([
      voices.tasks.list(query).catch(throwUnavailable),
      listPresetVoices(voices),
    ])
    return { voices: own.tasks.map(printVoice), presets }
  })
