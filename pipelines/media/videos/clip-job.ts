/**
 * Builds the job that composes a clip, with all checks that are possible before the hold.
 * See docs/api-rules.md, "Clips".
 */
import { type ClipComposeRequest, clipComposeRequest, TITLE_MAX_CHARS } from '../../../schemas/media/clips.ts'
import type { FileRef, JobOf, SubtitleLine } from '../../../schemas/media/job.ts'
import { isFinal } from '../../../schemas/tasks/task.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { invalidField, readClientJson } from '../../../src/protocols/request/client-json.ts'
import type { Caller } from '../../calls/authenticate.ts'
import type { TemplateLists } from '../channel-lists.ts'
import { type TaskFinder, throwUnavailable } from '../task-records.ts'

/** The time for which upstreams keep a recognition: docs/upstream-task.md, `subtitle`. */
export const RECOGNITION_KEPT_MS = 24 * 60 * 60 * 1000

export interface ClipSources {
  readonly tasks: TaskFinder
  readonly lists: TemplateLists
  readonly now?: () => number
}

interface ClipParams {
  readonly caller: Caller
  readonly body: unknown
  readonly routes: readonly Route[]
}

/** @throws Failure `invalid_request` that names the field; `upstream_*`, `service_unavailable` */
export async function buildComposeJob(
  deps: ClipSources,
  { caller, body, routes: all }: ClipParams,
): Promise<{ job: JobOf<'clip_compose'>; routes: readonly Route[] }> {
  const asked = readClientJson(clipComposeRequest, body)
  const recognition = await findRecognition(deps, caller, asked.asr_id)
  const routes = all.filter(({ channel }) => channel.id === recognition.channelId)
  const [route] = routes
  if (route === undefined) throw refuseRecognition('it cannot be used any more')
  if (!isSameVideo(asked.video_url, recognition.job))
    throw invalidField('video_url', 'it is not the video that asr_id was recognised in')
  const sentences = readLines(asked, recognition.segments)
  await assertListed(deps, route, asked.video_style_id ?? null)
  const { name_card: card, pip_config: pictures } = asked
  return {
    routes,
    job: {
      work: 'clip_compose',
      video: toFileRef(asked.video_url),
      asr_id: recognition.upstreamId,
      video_style_id: asked.video_style_id ?? null,
      enable_title_effect: asked.enable_title_effect ?? false,
      enable_caption_effect: asked.enable_caption_effect ?? true,
      enable_keyword_effect: asked.enable_keyword_effect ?? true,
      title: asked.title == null ? null : [...asked.title].slice(0, TITLE_MAX_CHARS).join(''),
      music: asked.music_url == null ? null : toFileRef(asked.music_url),
      name_card: card == null ? null : { name: card.name, description: card.description ?? '' },
      sentences,
      pip_config: (pictures ?? []).map(({ media_url, begin_time, end_time }) => ({
        media: toFileRef(media_url),
        begin_time,
        end_time,
      })),
    },
  }
}

export const toFileRef = (url: string): FileRef => ({ from: 'url', url })

/** Parameters of a signature: a newly signed link leads to the same file. */
const SIGNS =
  /^(?:x-(?:amz|goog|oss)-|(?:expires|signature|policy|key-pair-id|security-token)$|\w+accessid$|\w+accesskeyid$)/i

function withoutSignature(link: string): string {
  const url = new URL(link)
  for (const name of [...url.searchParams.keys()]) if (SIGNS.test(name)) url.searchParams.delete(name)
  url.searchParams.sort()
  url.hash = ''
  return url.href
}

const isSameVideo = (link: string, { video }: JobOf<'subtitle'>): boolean =>
  video.from === 'url' && withoutSignature(link) === withoutSignature(video.url)

const refuseRecognition = (why: string) => invalidField('asr_id', `${why}: recognise the subtitles again`)

interface Recognition {
  /** Its id at the channel. */
  readonly upstreamId: string
  readonly channelId: string | null
  readonly segments: readonly SubtitleLine[]
  readonly job: JobOf<'subtitle'>
}

/** Finds the recognition by the id of its task. */
async function findRecognition({ tasks, now = Date.now }: ClipSources, { known }: Caller, id: string) {
  const task = await tasks.find(known.account.id, 'subtitle', id).catch(throwUnavailable)
  if (task === null) throw refuseRecognition('there is no such recognition')
  if (!isFinal(task.state)) throw invalidField('asr_id', 'the recognition has not finished')
  const recognition = readRecognition(task)
  if (recognition === null) throw refuseRecognition('the recognition failed')
  if (task.endedAt !== null && now() >= task.endedAt + RECOGNITION_KEPT_MS)
    throw refuseRecognition('it has expired')
  return recognition
}

function readRecognition({ state, result, channelId, job }: Task): Recognition | null {
  if (state !== 'succeeded' || result === null || result.made_id === null) return null
  if (job.work !== 'subtitle') return null
  return { upstreamId: result.made_id, channelId, segments: result.segments ?? [], job }
}

/** Returns the recognized lines with the client's words. */
function readLines(
  { sentences }: ClipComposeRequest,
  segments: readonly SubtitleLine[],
): SubtitleLine[] | null {
  if (sentences == null) return null
  if (sentences.length === segments.length)
    return segments.map(({ showRange }, index) => ({ showRange, content: sentences[index]!.content }))
  const countLines = (count: number) => `${count} ${count === 1 ? 'line' : 'lines'}`
  throw invalidField(
    'sentences',
    `${countLines(segments.length)} expected, as many as were recognised; there are ${sentences.length}`,
  )
}

async function assertListed(
  { lists }: ClipSources,
  { channel }: Route,
  styleId: string | null,
): Promise<void> {
  if (styleId === null) return
  const templates = await lists.clipTemplates(channel, null)
  if (!templates.some(({ style_id }) => style_id === styleId))
    throw invalidField('video_style_id', 'there is no such template, or it was withdrawn')
}
