/** Channels, jobs and answers for the tests of media adapters. */
import { readFileSync } from 'node:fs'
import { type ChannelEntry, type ChannelProtocol, channelEntry } from '../../../schemas/config/catalog.ts'
import { type FileRef, type MediaJob, mediaJob } from '../../../schemas/media/job.ts'
import type {
  MediaAdapter,
  MediaAnswer,
  MediaPoll,
  MediaRequest,
  MediaSubmit,
} from '../../../src/channels/media/adapter.ts'

export const channelOf = (protocol: ChannelProtocol, base_url: string, headers = {}): ChannelEntry =>
  channelEntry.parse({ id: 'upstream', protocol, base_url, api_key: 'k-1', models: {}, headers })

export const linked = (url: string): FileRef => ({ from: 'url', url })
export const stored = (name: string, media_type: string): FileRef => ({
  from: 'store',
  key: `inputs/${name}`,
  media_type,
  bytes: 3,
  name,
})

/** Links as they are; a data URI that names its key for what is in the store. */
export const resolveUrl = (file: FileRef): string =>
  file.from === 'url' ? file.url : `data:${file.media_type};base64,${file.key}`

/** A job with its defaults filled in. */
export const jobOf = (job: unknown): MediaJob => mediaJob.parse(job)

export const REFERENCE = 'vid_01K9F3Q4T5V6W7X8Y9Z0A1B2C3'

export const submitOf = (job: unknown, upstreamModel = 'model-1'): MediaSubmit => ({
  job: jobOf(job),
  upstreamModel,
  reference: REFERENCE,
  resolveUrl,
})

export const pollOf = (job: unknown, upstreamId = 't-1'): MediaPoll => ({
  upstreamId,
  upstreamModel: 'model-1',
  job: jobOf(job),
})

export function answerOf(status: number, body: unknown, headers: Record<string, string> = {}): MediaAnswer {
  const isRaw = Buffer.isBuffer(body) || typeof body === 'string'
  return {
    status,
    header: (name) => headers[name] ?? null,
    body: Buffer.from(isRaw ? body : JSON.stringify(body)),
  }
}

export const headerOf = ({ headers }: MediaRequest, name: string): string | undefined =>
  headers.find(([each]) => each === name)?.[1]

/** The body of a request in JSON, as it goes out. */
export function jsonOf({ body }: MediaRequest): unknown {
  if (body?.type !== 'json') throw new Error('no JSON')
  return JSON.parse(JSON.stringify(body.value))
}

/** The parts of a form: texts as they are, files by their key. */
export function formOf({ body }: MediaRequest): readonly (readonly [string, string])[] {
  if (body?.type !== 'form') throw new Error('no form')
  return body.parts.map((part) => [part.name, 'value' in part ? part.value : part.file.key])
}

export function followOf(adapter: MediaAdapter): NonNullable<MediaAdapter['follow']> {
  if (adapter.follow === null) throw new Error('answers with the result itself')
  return adapter.follow
}

/** A file of a result, with what was not said. */
export const fileWith = (facts: object) => ({
  upstream_url: null,
  key: null,
  media_type: null,
  width: null,
  height: null,
  seconds: null,
  track: null,
  ...facts,
})

/** The result that an answer brought. */
export function producedIn<Outcome extends { type: string }>(
  outcome: Outcome,
): Extract<Outcome, { type: 'produced' }> {
  if (outcome.type !== 'produced') throw new Error(`nothing produced: ${JSON.stringify(outcome)}`)
  return outcome as Extract<Outcome, { type: 'produced' }>
}

/** What stands for every file of the store: a picture. */
const STORED_BYTES = readFileSync(new URL('../../fixtures/media/picture.png', import.meta.url))

function bodyOf({ body }: MediaRequest): { content: string | FormData | null; type: Record<string, string> } {
  if (body === null) return { content: null, type: {} }
  if (body.type === 'json_text')
    return { content: body.bytes.toString(), type: { 'content-type': 'application/json' } }
  if (body.type === 'json') {
    return { content: JSON.stringify(body.value), type: { 'content-type': 'application/json' } }
  }
  const form = new FormData()
  for (const part of body.parts) {
    if ('value' in part) form.append(part.name, part.value)
    else form.append(part.name, new Blob([STORED_BYTES], { type: part.file.mediaType }), part.file.name)
  }
  return { content: form, type: {} }
}

/** The whole answer to a request of an adapter. */
export async function sent(request: MediaRequest): Promise<MediaAnswer> {
  const { content, type } = bodyOf(request)
  const headers = { ...Object.fromEntries(request.headers), ...type }
  const response = await fetch(request.url, { method: request.method, headers, body: content })
  const answered = Object.fromEntries(response.headers)
  return answerOf(response.status, Buffer.from(await response.arrayBuffer()), answered)
}
