/** What the simulated studio delivers for each kind of the task contract. */

import { drawTokens, makeSeededRandom } from '../../answers/words.ts'
import type { Directives, PixelSize } from '../../directives/grammar.ts'
import { type Delivery, filmSize, readSize, roundSeconds, spokenSeconds } from '../../media/delivery.ts'
import { toPlayedSeconds } from '../../media/samples.ts'
import type { InputOf, TaskInput } from './inputs.ts'

const SONGS = 2
const SONG_SECONDS = 121.2
const COVER = { widthPixels: 512, heightPixels: 512 } as const
const PORTRAIT = { widthPixels: 540, heightPixels: 960 } as const
const SQUARE = { widthPixels: 1_024, heightPixels: 1_024 } as const
const DEFAULT_FILM_SECONDS = 5
const CLIP_SECONDS = 12
const TRANSCRIPT_WORDS = 120
const TRANSCRIPT_SECONDS = 63.2
const SEGMENTS = 4
const SEGMENT_WORDS = 6
const SEGMENT_MS = 1_800
const PAUSE_MS = 100

type ResultContext = {
  /** The task's id, for the ids of its results. */
  readonly id: string
  readonly delivery: Delivery
  readonly directives: Directives
}

/** Makes the `result` of a successful task. */
export function makeResult(request: TaskInput, context: ResultContext): object {
  const { delivery, directives, id } = context
  switch (request.kind) {
    case 'transcript':
      return transcript(request.input, context)
    case 'avatar':
      return { avatar_id: `face-${id}` }
    case 'voice':
      return { voice_id: `voice-${id}` }
    case 'avatar_video':
      return film(context, PORTRAIT, request.input.duration)
    case 'lipsync':
    case 'motion': {
      const { duration } = request.input
      const input = { input_video_duration_sec: directives.input_seconds ?? duration }
      return { ...film(context, PORTRAIT, duration), ...input }
    }
    case 'clip_compose':
      return film(context, PORTRAIT, CLIP_SECONDS)
    case 'video':
      return video(request.input, context)
    case 'subtitle':
      return { asr_id: `asr-${id}`, segments: segments(delivery.seed(0)) }
    case 'music':
      return { tracks: songs(request.input, context) }
    case 'speech': {
      const seconds = directives.seconds ?? spokenSeconds(request.input.input, request.input.speed)
      return { audio_url: delivery.sound(0, seconds), ...readLength(directives, toPlayedSeconds(seconds)) }
    }
    case 'image':
    case 'image_edit':
      return { images: pictures(request.input, context) }
  }
}

function transcript({ url }: InputOf<'transcript'>, { delivery, directives }: ResultContext): object {
  const link = /https?:\/\/\S+/.exec(url)?.[0]
  const random = makeSeededRandom(delivery.seed(0))
  return {
    content: directives.text ?? drawTokens(random, TRANSCRIPT_WORDS).join(''),
    title: drawTokens(random, SEGMENT_WORDS).join(''),
    cover: delivery.picture(0, COVER),
    platform: link === undefined ? 'simulated' : new URL(link).hostname,
    ...readLength(directives, TRANSCRIPT_SECONDS),
    ...(link === undefined ? {} : { origin_link: link }),
  }
}

function video(input: InputOf<'video'>, context: ResultContext): object {
  const size = filmSize(input.resolution, input.ratio)
  const reference = input.content.some((part) => part.type === 'video')
  const inputSeconds = context.directives.input_seconds ?? DEFAULT_FILM_SECONDS
  return {
    ...film(context, size, input.duration ?? DEFAULT_FILM_SECONDS),
    ...(reference ? { input_video_duration_sec: inputSeconds } : {}),
  }
}

function film({ delivery, directives }: ResultContext, usual: PixelSize, asked: number): object {
  const seconds = roundSeconds(directives.seconds ?? asked)
  const size = directives.size ?? usual
  return {
    video_url: delivery.film(0, size, seconds),
    ...readLength(directives, seconds),
    width: size.widthPixels,
    height: size.heightPixels,
  }
}

function readLength({ no_seconds: isUnreported, seconds }: Directives, made: number): object {
  return isUnreported === true ? {} : { duration_sec: seconds ?? made }
}

/** Songs beyond `partial` have a name but no audio. */
function songs(input: InputOf<'music'>, { delivery, directives, id }: ResultContext): object[] {
  const seconds = directives.seconds ?? SONG_SECONDS
  return Array.from({ length: SONGS }, (_, index) => ({
    clip_id: `${id}-${index + 1}`,
    title: input.title ?? drawTokens(makeSeededRandom(delivery.seed(index)), 2).join(''),
    ...(input.instrumental ? {} : { lyrics: input.lyrics ?? `[Verse]\n${input.prompt ?? ''}` }),
    ...readLength(directives, toPlayedSeconds(seconds)),
    ...(index < (directives.partial ?? SONGS)
      ? { audio_url: delivery.sound(index, seconds), image_url: delivery.picture(index, COVER) }
      : {}),
  }))
}

/** Images beyond `partial` have no link. */
function pictures(input: InputOf<'image'>, { delivery, directives }: ResultContext): object[] {
  const size = directives.size ?? readSize(input.size) ?? SQUARE
  const reported = { width: size.widthPixels, height: size.heightPixels }
  return Array.from({ length: input.n }, (_, index) =>
    index < (directives.partial ?? input.n) ? { url: delivery.picture(index, size), ...reported } : {},
  )
}

function segments(seed: number): object[] {
  const random = makeSeededRandom(seed)
  return Array.from({ length: SEGMENTS }, (_, index) => {
    const startMs = index * (SEGMENT_MS + PAUSE_MS)
    return {
      showRange: [startMs, startMs + SEGMENT_MS],
      content: drawTokens(random, SEGMENT_WORDS).join(''),
    }
  })
}
