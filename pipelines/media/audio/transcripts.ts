/** `/v1/transcripts/extract`: the words of a video. See docs/api-rules.md, "Music, voices, avatars, transcripts". */
import { isGiven } from '../../../schemas/media/fields.ts'
import {
  TRANSCRIPT_MODEL,
  type Transcript,
  type TranscriptRequest,
  transcriptRequest,
} from '../../../schemas/media/transcripts.ts'
import type { Handler } from '../../../src/http/handler.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { readJsonBody } from '../../../src/protocols/request/client-json.ts'
import type { FileLinks } from '../../../src/storage/store.ts'
import { jsonReply } from '../../calls/replies.ts'
import { isThere } from '../../tasks/store/result-files.ts'
import { toTaskFailure } from '../failed-task.ts'
import { type MediaOrders, mediaCall } from '../media-call.ts'
import { priceOrder } from '../priced-job.ts'

const COVER_LINK_MS = 24 * 60 * 60 * 1000

async function linkToCover(files: FileLinks, { result }: Task, now: number): Promise<string> {
  const cover = result?.files.find(({ role }) => role === 'cover')
  if (cover === undefined || !isThere(cover, now)) return ''
  return cover.key === null ? (cover.upstream_url ?? '') : files.makeLink(cover.key, now + COVER_LINK_MS)
}

/** @param now epoch milliseconds @throws Failure for a task that failed or was cancelled */
export async function printTranscript(files: FileLinks, task: Task, now: number): Promise<Transcript> {
  const found = task.result?.transcript ?? null
  if (task.state !== 'succeeded' || found === null) throw toTaskFailure(task)
  return {
    model: task.model,
    content: found.content,
    title: found.title ?? '',
    cover: await linkToCover(files, task, now),
    platform: found.platform ?? '',
    duration_sec: found.seconds,
    origin_link: found.origin_link ?? '',
  }
}

const readLink = ({ url, input }: TranscriptRequest): string => (isGiven(url) ? url : (input ?? '')).trim()

export const extractTranscript = (orders: MediaOrders, files: FileLinks): Handler =>
  mediaCall<TranscriptRequest>(orders, {
    kind: 'transcript',
    protocol: 'transcripts',
    read: ({ body }) => readJsonBody(transcriptRequest, body),
    model: TRANSCRIPT_MODEL,
    meaning: (params) => ({ ...params, url: readLink(params), input: null }),
    order: (call) =>
      priceOrder(call, 'transcripts_extract', { work: 'transcript', url: readLink(call.params) }, 'ended'),
    reply: async (task) => jsonReply(await printTranscript(files, task, Date.now())),
  })
