/** ElevenLabs: speech, voices from recordings, and the voices that everybody has. */
import { z } from 'zod'
import type { ChannelEntry } from '../../../../schemas/config/catalog.ts'
import type { JobOf } from '../../../../schemas/media/job.ts'
import type {
  MediaAdapter,
  MediaAnswer,
  MediaRequest,
  Preset,
  PresetSource,
  SubmitOutcome,
} from '../../media/adapter.ts'
import {
  isSuccess,
  looseId,
  looseText,
  makeRefused,
  makeUnknown,
  markUsedUp,
  readFields,
  readMessage,
  readPlainRefusal,
  toFields,
} from '../../media/answer.ts'
import { makeProduced } from '../../media/files.ts'
import {
  filePart,
  formRequest,
  getRequest,
  isLink,
  jsonRequest,
  type KeyHeader,
  omitUndefined,
  pathPart,
  throwNotServed,
} from '../../media/request.ts'
import { readSpeech } from '../../media/speech-answer.ts'
import type { Provider } from '../provider.ts'

const key: KeyHeader = (channel) => [['xi-api-key', channel.api_key]]

/** The interface has no default; the vendor's examples all use this one. */
const DEFAULT_VOICE = 'JBFqnCBsd6RMkjVDRZzb'
const OUTPUT_FORMAT = 'mp3_44100_128'

function speak(channel: ChannelEntry, job: JobOf<'speech'>, model: string): MediaRequest {
  const path = `/v1/text-to-speech/${pathPart(job.voice ?? DEFAULT_VOICE)}?output_format=${OUTPUT_FORMAT}`
  const settings = job.speed === 1 ? null : { speed: job.speed }
  const body = omitUndefined({ text: job.input, model_id: model, voice_settings: settings })
  return jsonRequest(channel, path, body, { key, accept: '*/*' })
}

const learn = (channel: ChannelEntry, job: JobOf<'voice'>): MediaRequest =>
  formRequest(channel, '/v1/voices/add', [{ name: 'name', value: job.name }, filePart('files', job.audio)], {
    key,
  })

const made = z.looseObject({
  voice_id: looseId,
  requires_verification: z.boolean().catch(false).default(false),
})

function readVoice(answer: MediaAnswer): SubmitOutcome {
  const body = readFields(answer)
  if (body === null) return makeUnknown('The answer is no JSON object.')
  const { voice_id, requires_verification } = made.parse(body)
  if (voice_id === null) {
    const isError = 'detail' in body || 'error' in body
    return isError
      ? makeRefused(502, readMessage(body, 'No voice was made.'))
      : makeUnknown('The answer names no voice.')
  }
  // The voice cannot be used before its owner has read a text to the vendor.
  if (requires_verification) return makeRefused(400, 'The speaker of the recording has to be verified first.')
  return makeProduced([], { made_id: voice_id })
}

/** Reads a refusal. An exhausted plan comes as 401, though the key is valid. */
function readRefusal(answer: MediaAnswer): SubmitOutcome {
  const detail = toFields(readFields(answer)?.detail)
  return markUsedUp(detail?.status === 'quota_exceeded', readPlainRefusal(answer, 502))
}

const voice = z.looseObject({ voice_id: looseId, name: looseText, category: looseText })

/** The list holds the voices that customers had made as well: those are private. */
const COMMON = 'premade'

const voices: PresetSource = {
  request: (channel) => getRequest(channel, '/v1/voices', { key }),
  read(answer) {
    const voices = isSuccess(answer) ? readFields(answer)?.voices : null
    if (!Array.isArray(voices)) return null
    return voices.flatMap((item): Preset[] => {
      const read = voice.safeParse(item)
      if (!read.success || read.data.voice_id === null || read.data.category !== COMMON) return []
      return [{ id: read.data.voice_id, name: read.data.name ?? read.data.voice_id }]
    })
  },
}

const media: MediaAdapter = {
  baseUrl: { end: null, appended: '/v1/text-to-speech' },
  works: ['speech', 'voice'],
  inlines: false,
  presets: { voice: { type: 'asked', source: voices } },
  takesIn: (job) => (job.work === 'voice' ? [job.audio].filter(isLink) : []),
  submit(channel, { job, upstreamModel }) {
    if (job.work === 'speech') return speak(channel, job, upstreamModel)
    return job.work === 'voice' ? learn(channel, job) : throwNotServed(job)
  },
  readSubmit(answer, { job }) {
    if (!isSuccess(answer)) return readRefusal(answer)
    return job.work === 'voice' ? readVoice(answer) : readSpeech(answer)
  },
  follow: null,
}

export const elevenlabs: Provider = {
  title: 'ElevenLabs',
  baseUrls: {},
  media: { elevenlabs: media },
}
