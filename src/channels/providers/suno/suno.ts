/** Suno-style music: one request makes two songs, which are polled together. */
import { z } from 'zod'
import type { ChannelEntry } from '../../../../schemas/config/catalog.ts'
import type { JobOf, TrackFacts } from '../../../../schemas/media/job.ts'
import { cutText } from '../../../core/json/cut.ts'
import type { MediaAdapter, MediaAnswer, PollOutcome, Produced, SubmitOutcome } from '../../media/adapter.ts'
import {
  anything,
  chooseOutcome,
  clipMessage,
  isSuccess,
  looseId,
  looseNumber,
  looseSeconds,
  looseText,
  looseWord,
  makeAccepted,
  makeRefused,
  makeUnknown,
  pollError,
  readAsyncRefusal,
  readFields,
  readMessage,
  toFields,
} from '../../media/answer.ts'
import type { MediaFailureCode } from '../../media/failure.ts'
import { type Delivered, makeProduced, toDelivered, toSource } from '../../media/files.ts'
import { getRequest, jsonRequest, omitUndefined, throwNotServed } from '../../media/request.ts'
import type { Provider } from '../provider.ts'

type MusicJob = JobOf<'music'>

const GENERATE = '/api/v1/generate'
const MAX_PROMPT_CHARS = 500
const MAX_TITLE_CHARS = 80
/** Custom mode wants a style and a title; a request may have neither. */
const DEFAULT_STYLE = 'pop'
const DEFAULT_TITLE = 'Untitled'

const withTags = ({ prompt, tags }: MusicJob): string =>
  cutText([prompt, tags].filter((text) => text !== null).join('. '), MAX_PROMPT_CHARS)

/** Returns the first sung line of the lyrics. */
const readFirstLine = (lyrics: string | null): string | null =>
  (lyrics ?? '')
    .split('\n')
    .map((line) => line.trim())
    .find((line) => line !== '' && !line.startsWith('[')) ?? null

/** Returns the mode. Inspiration mode has only a prompt, which contains the request's other wishes too. */
function chooseMode(job: MusicJob): Record<string, unknown> {
  const lyrics = job.instrumental ? null : job.lyrics
  if (lyrics === null && job.prompt !== null) return { customMode: false, prompt: withTags(job) }
  const title = job.title ?? readFirstLine(lyrics) ?? DEFAULT_TITLE
  const style = job.tags ?? DEFAULT_STYLE
  return omitUndefined({ customMode: true, style, title: cutText(title, MAX_TITLE_CHARS), prompt: lyrics })
}

const makeBody = (job: MusicJob, model: string, channel: ChannelEntry): Record<string, unknown> => ({
  ...chooseMode(job),
  instrumental: job.instrumental,
  ...omitUndefined({ model, negativeTags: job.negative_tags }),
  // Required, but unused: it points to the upstream itself. Results are polled for.
  callBackUrl: `${channel.base_url}${GENERATE}/callback`,
})

const envelope = z.looseObject({ code: looseNumber, data: anything })
const submitted = z.looseObject({ taskId: looseId })

/** Codes in the body of a 200 that are no HTTP statuses, or mean something else than these do. */
const STATUS_OF: Readonly<Record<number, number>> = { 405: 429, 413: 400, 430: 429, 455: 503 }

function chooseStatus(code: number): number {
  const status = STATUS_OF[code] ?? code
  return Number.isInteger(status) && status >= 400 && status <= 599 ? status : 500
}

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return readAsyncRefusal(answer)
  const body = readFields(answer)
  if (body === null) return makeUnknown('The answer is no JSON object.')
  const { code, data } = envelope.parse(body)
  if (code !== null && code !== 200)
    return makeRefused(chooseStatus(code), readMessage(body, 'The upstream refused.'))
  const id = submitted.safeParse(data).data?.taskId ?? null
  if (id === null) return makeUnknown('The answer names no task.')
  return makeAccepted(id, 'PENDING')
}

const song = z.looseObject({
  id: looseId,
  audioUrl: looseText,
  sourceAudioUrl: looseText,
  imageUrl: looseText,
  sourceImageUrl: looseText,
  title: looseText,
  prompt: looseText,
  duration: looseSeconds,
})
type Song = z.infer<typeof song>

const record = z.looseObject({
  status: looseWord,
  response: anything,
  errorMessage: looseText,
})

const readSongs = (response: unknown): readonly Song[] => {
  const listed = toFields(response)?.sunoData
  return Array.isArray(listed) ? listed.flatMap((item) => song.safeParse(item).data ?? []) : []
}

const findAudio = ({ audioUrl, sourceAudioUrl }: Song) => toSource(audioUrl) ?? toSource(sourceAudioUrl)

/** Returns the files of a song. `track` is its number among the songs of the answer. */
const listFiles = (made: Song, track: number): Delivered[] => [
  ...toDelivered('audio', findAudio(made), { track, seconds: made.duration }),
  ...toDelivered('cover', toSource(made.imageUrl) ?? toSource(made.sourceImageUrl), { track }),
]

const toTrackFacts = (made: Song, track: number, job: MusicJob): TrackFacts => ({
  clip_id: made.id ?? String(track + 1),
  title: made.title ?? job.title,
  // An instrumental has none, though the field may hold its prompt.
  lyrics: job.instrumental ? null : (made.prompt ?? job.lyrics),
  seconds: made.duration,
})

/** Returns the songs. One song of two is a success; null without any. */
function toProduced(songs: readonly Song[], job: MusicJob): Produced | null {
  const made = songs.filter((each) => findAudio(each) !== null)
  const tracks = made.map((each, track) => toTrackFacts(each, track, job))
  return made.length === 0 ? null : makeProduced(made.flatMap(listFiles), { tracks })
}

function readPoll(answer: MediaAnswer, job: MusicJob): PollOutcome {
  const body = isSuccess(answer) ? readFields(answer) : null
  const { code, data } = envelope.parse(body ?? {})
  const read = record.safeParse(data)
  if ((code !== null && code !== 200) || !read.success || read.data.status === null) return pollError(answer)
  const { status: upstreamState, errorMessage } = read.data
  const songs = readSongs(read.data.response)
  const makeFailed = (code: MediaFailureCode, otherwise: string): PollOutcome => {
    return { type: 'failed', upstreamState, code, message: clipMessage(errorMessage ?? otherwise) }
  }
  const takeSongs = (otherwise: PollOutcome): PollOutcome => {
    const made = toProduced(songs, job)
    return made === null ? otherwise : { ...made, upstreamState }
  }
  switch (upstreamState) {
    case 'SUCCESS':
      return takeSongs(makeFailed('generation_failed', 'The upstream finished and named no song.'))
    case 'GENERATE_AUDIO_FAILED':
      return takeSongs(makeFailed('generation_failed', 'The songs could not be made.'))
    case 'CREATE_TASK_FAILED':
      return makeFailed('generation_failed', 'The upstream could not begin.')
    case 'SENSITIVE_WORD_ERROR':
      return makeFailed('content_policy', 'The request has words that are not allowed.')
    case 'CALLBACK_EXCEPTION': {
      // The state does not cover the songs: they are done when each has its audio.
      const running: PollOutcome = { type: 'running', upstreamState }
      return songs.every((each) => findAudio(each) !== null) ? takeSongs(running) : running
    }
    default:
      return chooseOutcome(answer, upstreamState, {
        PENDING: 'queued',
        TEXT_SUCCESS: 'running',
        FIRST_SUCCESS: 'running',
      })
  }
}

const media: MediaAdapter = {
  baseUrl: { end: null, appended: '/api/v1/generate' },
  works: ['music'],
  inlines: false,
  submit(channel, { job, upstreamModel }) {
    return job.work === 'music'
      ? jsonRequest(channel, GENERATE, makeBody(job, upstreamModel, channel))
      : throwNotServed(job)
  },
  readSubmit,
  follow: {
    poll: (channel, { upstreamId }) =>
      getRequest(channel, `${GENERATE}/record-info?taskId=${encodeURIComponent(upstreamId)}`),
    readPoll: (answer, { job }) => (job.work === 'music' ? readPoll(answer, job) : throwNotServed(job)),
  },
}

export const suno: Provider = {
  title: 'Suno',
  baseUrls: {},
  media: { suno: media },
}
