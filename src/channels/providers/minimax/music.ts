/** MiniMax's music: one song a request, made within it. */
import { z } from 'zod'
import type { JobOf } from '../../../../schemas/media/job.ts'
import type { MediaAdapter, MediaAnswer, MediaSubmit, SubmitOutcome } from '../../media/adapter.ts'
import {
  isSuccess,
  looseId,
  looseSeconds,
  looseText,
  makeUnknown,
  readFields,
  readPlainRefusal,
} from '../../media/answer.ts'
import { makeProduced, toSource } from '../../media/files.ts'
import { jsonRequest, omitUndefined, throwNotServed } from '../../media/request.ts'
import { minimaxFailure, minimaxRefusal } from './failure.ts'

type MusicJob = JobOf<'music'>

/** A song of some minutes takes some minutes. */
const WORK_TIMEOUT_MS = 10 * 60 * 1000
/** A song without words needs a description; a request may have none. */
const DEFAULT_STYLE = 'pop'
const MILLISECONDS = 1000

/** Returns the words that are sung: those of the client, or those that the upstream writes by the prompt. */
function chooseLyrics({ lyrics, instrumental }: MusicJob): Record<string, unknown> {
  if (instrumental) return { is_instrumental: true }
  return lyrics === null ? { lyrics_optimizer: true } : { lyrics }
}

const made = z.looseObject({ audio: looseText })
const measured = z.looseObject({ music_duration: looseSeconds })

function readSubmit(answer: MediaAnswer, { job }: MediaSubmit): SubmitOutcome {
  if (job.work !== 'music') return throwNotServed(job)
  if (!isSuccess(answer)) return readPlainRefusal(answer, 502)
  const failure = minimaxFailure(answer)
  if (failure !== null) return minimaxRefusal(failure)
  const body = readFields(answer)
  const source = toSource(made.safeParse(body?.data).data?.audio ?? null)
  if (source === null) return makeUnknown('The answer holds no song.')
  const { music_duration = null } = measured.safeParse(body?.extra_info).data ?? {}
  const seconds = music_duration === null ? null : music_duration / MILLISECONDS
  const { title, instrumental } = job
  const lyrics = instrumental ? null : job.lyrics
  return makeProduced([{ role: 'audio', source, facts: { track: 0, seconds } }], {
    tracks: [{ clip_id: looseId.parse(body?.trace_id) ?? '1', title, lyrics, seconds }],
  })
}

export const minimaxMusic: MediaAdapter = {
  baseUrl: { end: '/v1', appended: '/music_generation' },
  works: ['music'],
  inlines: false,
  workTimeoutMs: WORK_TIMEOUT_MS,
  submit(channel, { job, upstreamModel }) {
    if (job.work !== 'music') return throwNotServed(job)
    const described = [job.prompt, job.tags].filter((text) => text !== null).join('. ')
    return jsonRequest(
      channel,
      '/music_generation',
      omitUndefined({
        model: upstreamModel,
        prompt: described === '' && job.instrumental ? DEFAULT_STYLE : described || null,
        ...chooseLyrics(job),
        output_format: 'url',
        audio_setting: { format: 'mp3' },
      }),
    )
  },
  readSubmit,
  follow: null,
}
