/** MiniMax's speech: sound in hexadecimal digits within the answer. */
import { z } from 'zod'
import { measureAudioSeconds } from '../../../core/media/audio-length.ts'
import type { MediaAdapter, MediaAnswer, SubmitOutcome } from '../../media/adapter.ts'
import {
  isSuccess,
  looseNumber,
  looseSeconds,
  looseText,
  makeUnknown,
  readFields,
  readPlainRefusal,
} from '../../media/answer.ts'
import { isText, makeProduced } from '../../media/files.ts'
import { jsonRequest, throwNotServed } from '../../media/request.ts'
import { minimaxFailure, minimaxRefusal } from './failure.ts'

/** The interface has no default. A voice of the provider's list, which speaks every language. */
const DEFAULT_VOICE = 'English_expressive_narrator'
const MEDIA_TYPE = 'audio/mpeg'
const MILLISECONDS = 1000
const HEX = /^(?:[0-9a-f]{2})+$/i

const made = z.looseObject({ audio: looseText })
/** Counts a Chinese character as two. */
const MAX_BILLED_CHARACTERS = 1_000_000
const billed = looseNumber.transform((count) =>
  Number.isSafeInteger(count) && count! <= MAX_BILLED_CHARACTERS ? count : null,
)
const measured = z.looseObject({ audio_length: looseSeconds, usage_characters: billed })

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return readPlainRefusal(answer, 502)
  const failure = minimaxFailure(answer)
  if (failure !== null) return minimaxRefusal(failure)
  const body = readFields(answer)
  const { audio = null } = made.safeParse(body?.data).data ?? {}
  if (audio === null || !HEX.test(audio)) return makeUnknown('The answer holds no sound.')
  const bytes = Buffer.from(audio, 'hex')
  if (isText(bytes)) return makeUnknown('The answer holds no sound.')
  const info = measured.safeParse(body?.extra_info).data
  const { audio_length = null, usage_characters: billed_characters = null } = info ?? {}
  const seconds = audio_length === null ? measureAudioSeconds(bytes) : audio_length / MILLISECONDS
  const source = { type: 'bytes', bytes, mediaType: MEDIA_TYPE } as const
  return makeProduced([{ role: 'audio', source, facts: { seconds } }], { seconds, billed_characters })
}

export const minimaxSpeech: MediaAdapter = {
  baseUrl: { end: '/v1', appended: '/t2a_v2' },
  works: ['speech'],
  inlines: false,
  submit(channel, { job, upstreamModel }) {
    if (job.work !== 'speech') return throwNotServed(job)
    return jsonRequest(channel, '/t2a_v2', {
      model: upstreamModel,
      text: job.input,
      stream: false,
      voice_setting: { voice_id: job.voice ?? DEFAULT_VOICE, speed: job.speed },
      audio_setting: { format: 'mp3' },
    })
  },
  readSubmit,
  follow: null,
}
