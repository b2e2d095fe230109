/** `/v1/music/generations`: create, get, list and cancel. See docs/api-rules.md, "Music, voices, avatars, transcripts". */
import type { z } from 'zod'
import { isGiven } from '../../../schemas/media/fields.ts'
import type { JobOf, ResultFile, TrackFacts } from '../../../schemas/media/job.ts'
import {
  type MusicRequest,
  type MusicTask,
  musicRequest,
  type musicSubmitted,
} from '../../../schemas/media/music.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Handler } from '../../../src/http/handler.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { readJsonBody } from '../../../src/protocols/request/client-json.ts'
import type { FileLinks } from '../../../src/storage/store.ts'
import type { CallAccess } from '../../calls/authenticate.ts'
import { jsonReply } from '../../calls/replies.ts'
import { readEnding } from '../../tasks/end/settlement.ts'
import { isThere } from '../../tasks/store/result-files.ts'
import { type MediaOrders, mediaCall } from '../media-call.ts'
import { priceOrder } from '../priced-job.ts'
import { type MediaTasks, taskEndpoints } from '../task-endpoints.ts'

/** From the instant at which the link is requested. See docs/api-rules.md, "Files and link lifetimes". */
const MUSIC_LINK_MS = 7 * 24 * 60 * 60 * 1000

const omitBlank = (text: string | null | undefined): string | null => (isGiven(text) ? text : null)

/** Lyrics count only for vocal music, and replace the prompt. */
export function buildMusicJob(asked: MusicRequest): JobOf<'music'> {
  const instrumental = asked.instrumental === true
  const lyrics = instrumental ? null : omitBlank(asked.lyrics)
  return {
    work: 'music',
    prompt: lyrics === null ? omitBlank(asked.prompt) : null,
    lyrics,
    title: omitBlank(asked.title),
    tags: omitBlank(asked.tags),
    negative_tags: omitBlank(asked.negative_tags),
    instrumental,
  }
}

/** Prints the answer to a submit: always `queued`, whatever has happened to the task since. */
export const printSubmittedMusic = ({ id, model, submittedAt }: Task): z.infer<typeof musicSubmitted> => ({
  id,
  status: 'queued',
  model,
  created_at: new Date(submittedAt).toISOString(),
})

export const makeMusic = (orders: MediaOrders): Handler =>
  mediaCall<MusicRequest>(orders, {
    kind: 'music',
    protocol: 'music',
    read: ({ body }) => readJsonBody(musicRequest, body),
    model: ({ model }) => model,
    order: (call) => priceOrder(call, 'music_generations', buildMusicJob(call.params)),
    reply: (task) => jsonReply(printSubmittedMusic(task)),
  })

type Track = MusicTask['tracks'][number]

/** Returns a link to the file; the upstream's own if the file could not be copied. */
async function findLink(files: FileLinks, file: ResultFile, now: number): Promise<string | null> {
  const { key, upstream_url, kept_until } = file
  if (!isThere(file, now)) return null
  if (key === null) return upstream_url
  return files.makeLink(key, Math.min(now + MUSIC_LINK_MS, kept_until ?? Number.POSITIVE_INFINITY))
}

async function printTracks(files: FileLinks, { result }: Task, now: number): Promise<Track[]> {
  if (result === null) return []
  const linkTo = async (role: ResultFile['role'], index: number) => {
    const file = result.files.find((each) => each.role === role && each.track === index)
    return file === undefined ? null : findLink(files, file, now)
  }
  const printTrack = async (
    { clip_id, title, lyrics, seconds }: TrackFacts,
    index: number,
  ): Promise<Track[]> => {
    const [audio_url, image_url] = await Promise.all([linkTo('audio', index), linkTo('cover', index)])
    return audio_url === null ? [] : [{ clip_id, title, duration_sec: seconds, audio_url, image_url, lyrics }]
  }
  return (await Promise.all(result.tracks.map(printTrack))).flat()
}

/** `now` is in epoch milliseconds. */
export async function printMusic(files: FileLinks, task: Task, now: number): Promise<MusicTask> {
  const { id, kind, model, state, upstreamState, submittedAt, endedAt } = task
  const { code, message } = readEnding(task)
  return {
    id,
    model,
    status: TASK_RULES[kind].outward[state] as MusicTask['status'],
    upstream_status: upstreamState,
    tracks: state === 'succeeded' ? await printTracks(files, task, now) : [],
    error_code: code,
    error_message: message,
    created_at: new Date(submittedAt).toISOString(),
    completed_at: endedAt === null ? null : new Date(endedAt).toISOString(),
  }
}

export const musicTasks = (access: CallAccess, tasks: MediaTasks, files: FileLinks) =>
  taskEndpoints(access, tasks, 'music', (task) => printMusic(files, task, Date.now()))
