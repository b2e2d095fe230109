/** Adapter for OpenAI's speech interface: text in, sound out. */
import type { MediaAdapter } from '../../media/adapter.ts'
import { isSuccess } from '../../media/answer.ts'
import { jsonRequest, omitUndefined, throwNotServed } from '../../media/request.ts'
import { readSpeech } from '../../media/speech-answer.ts'
import { openaiRefusal } from './refusal.ts'

/** The interface has no default. */
const DEFAULT_VOICE = 'alloy'

/** Voices of all its models; no request lists them. */
const VOICES = [
  { id: 'alloy', name: 'Alloy' },
  { id: 'ash', name: 'Ash' },
  { id: 'coral', name: 'Coral' },
  { id: 'echo', name: 'Echo' },
  { id: 'fable', name: 'Fable' },
  { id: 'nova', name: 'Nova' },
  { id: 'onyx', name: 'Onyx' },
  { id: 'sage', name: 'Sage' },
  { id: 'shimmer', name: 'Shimmer' },
] as const

export const openaiSpeech: MediaAdapter = {
  baseUrl: { end: '/v1', appended: '/audio/speech' },
  works: ['speech'],
  inlines: false,
  presets: { voice: { type: 'known', presets: VOICES } },
  submit(channel, { job, upstreamModel }) {
    if (job.work !== 'speech') return throwNotServed(job)
    const { input, voice } = job
    const body = {
      model: upstreamModel,
      input,
      voice: voice ?? DEFAULT_VOICE,
      response_format: 'mp3',
      // Some models refuse the field.
      speed: job.speed === 1 ? null : job.speed,
    }
    return jsonRequest(channel, '/audio/speech', omitUndefined(body), { accept: '*/*' })
  },
  readSubmit: (answer) => (isSuccess(answer) ? readSpeech(answer) : openaiRefusal(answer)),
  follow: null,
}
