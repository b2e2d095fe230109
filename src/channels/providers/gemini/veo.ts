/**
 * Veo by the Gemini API and by Vertex AI: operations of a model, polled by their names. Frames are sent as bytes. A video
 * opens only with the channel's access, at the API or in a bucket; Vertex answers with its bytes where no bucket is
 * configured.
 */
import { z } from 'zod'
import type { ChannelEntry } from '../../../../schemas/config/catalog.ts'
import type { FileRef, JobOf } from '../../../../schemas/media/job.ts'
import type {
  MediaAdapter,
  MediaAnswer,
  MediaPoll,
  MediaRequest,
  MediaSubmit,
  PollOutcome,
  SubmitOutcome,
} from '../../media/adapter.ts'
import {
  anything,
  clipMessage,
  isSuccess,
  looseId,
  looseList,
  looseText,
  makeAccepted,
  makeUnknown,
  pollError,
  readAsyncRefusal,
  readFields,
  readMessage,
  toFields,
} from '../../media/answer.ts'
import type { MediaFailureCode } from '../../media/failure.ts'
import { decodeSource, type FileSource, makeProduced, toSource } from '../../media/files.ts'
import {
  fileRequest,
  getRequest,
  isLink,
  jsonRequest,
  type KeyHeader,
  omitUndefined,
  pathPart,
  pathParts,
  throwNotServed,
} from '../../media/request.ts'
import { sortVideoParts } from '../../media/video-parts.ts'

const key: KeyHeader = (channel) => [['x-goog-api-key', channel.api_key]]

const isVertex = ({ provider }: ChannelEntry): boolean => provider === 'vertex'

/** The API of Cloud Storage, at which an object of a bucket opens. */
const STORAGE_ORIGIN = 'https://storage.googleapis.com'
const OBJECT = /^gs:\/\/([a-z0-9][\w.-]+\/.+)$/

/** Returns the link to an object of Cloud Storage; null for another text. */
function toObjectLink(uri: string | null): string | null {
  const [, path] = OBJECT.exec(uri ?? '') ?? []
  return path === undefined ? null : `${STORAGE_ORIGIN}/${pathParts(path)}`
}

const DATA_URI = /^data:([^;,]+)[^,]*,/

/** Returns a file as bytes in base64 with their type; null for a link, which the upstream would refuse. */
function toMedia(file: FileRef | null, resolveUrl: MediaSubmit['resolveUrl']) {
  const text = file === null ? '' : resolveUrl(file)
  const [head, mimeType] = DATA_URI.exec(text) ?? []
  return head === undefined ? null : { bytesBase64Encoded: text.slice(head.length), mimeType }
}

/** Returns a video to continue. The Gemini API names its bytes otherwise than those of an image, Vertex AI does not. */
function toVideo(channel: ChannelEntry, file: FileRef | null, resolveUrl: MediaSubmit['resolveUrl']) {
  const media = toMedia(file, resolveUrl)
  if (media === null || isVertex(channel)) return media
  return { encodedVideo: media.bytesBase64Encoded, encoding: media.mimeType }
}

/** Parameters that the Gemini API does not have. Each video is charged by the provider: one is asked for. */
const vertexParameters = (channel: ChannelEntry, { generate_audio }: JobOf<'video'>) =>
  isVertex(channel) ? { sampleCount: 1, generateAudio: generate_audio, storageUri: channel.storage_uri } : {}

function makeBody(
  channel: ChannelEntry,
  job: JobOf<'video'>,
  resolveUrl: MediaSubmit['resolveUrl'],
): Record<string, unknown> {
  const { prompt, firstFrame, lastFrame, references, videos } = sortVideoParts(job)
  const referenceImages = references.flatMap((file) => {
    const image = toMedia(file, resolveUrl)
    return image === null ? [] : [{ image, referenceType: 'asset' }]
  })
  return {
    instances: [
      omitUndefined({
        prompt,
        image: toMedia(firstFrame, resolveUrl),
        lastFrame: toMedia(lastFrame, resolveUrl),
        referenceImages: referenceImages.length === 0 ? null : referenceImages,
        video: toVideo(channel, videos[0] ?? null, resolveUrl),
      }),
    ],
    parameters: omitUndefined({
      aspectRatio: job.ratio,
      durationSeconds: job.duration,
      resolution: job.resolution,
      seed: job.seed,
      ...vertexParameters(channel, job),
    }),
  }
}

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return readAsyncRefusal(answer)
  const body = readFields(answer)
  if (body === null) return makeUnknown('The answer is no JSON object.')
  const name = looseId.parse(body.name)
  if (name === null) return makeUnknown('The answer names no operation.')
  return makeAccepted(name, 'running', 'running')
}

const operation = z.looseObject({ done: z.boolean().catch(false).default(false), response: anything })
const generated = z.looseObject({
  /** Of the Gemini API: each holds a `video`. */
  generatedSamples: looseList,
  /** Of Vertex AI. */
  videos: looseList,
  raiMediaFilteredReasons: looseList,
  raiMediaFilteredCount: anything,
})
const video = z.looseObject({
  uri: looseText,
  gcsUri: looseText,
  encodedVideo: looseText,
  bytesBase64Encoded: looseText,
})

function findVideo({ generatedSamples, videos }: z.infer<typeof generated>): FileSource | null {
  for (const each of [...generatedSamples.map((sample) => toFields(sample)?.video), ...videos]) {
    const read = video.safeParse(each).data
    if (read === undefined) continue
    const { uri, gcsUri, encodedVideo, bytesBase64Encoded } = read
    const source =
      toSource(toObjectLink(gcsUri) ?? uri) ??
      decodeSource(encodedVideo ?? bytesBase64Encoded ?? '', 'video/mp4')
    if (source !== null) return source
  }
  return null
}

const POLICY = /safety|polic|sensitive|violat|prohibit|celebrit|blocked/i
const CODES: Readonly<Record<number, MediaFailureCode>> = {
  3: 'invalid_input',
  4: 'timeout',
  8: 'quota_exhausted',
}

/** Returns our code of a status of gRPC with its text. */
function chooseCode(code: unknown, message: string): MediaFailureCode {
  if (POLICY.test(message)) return 'content_policy'
  return (typeof code === 'number' ? CODES[code] : undefined) ?? 'generation_failed'
}

function readEnded(response: unknown): PollOutcome {
  const upstreamState = 'done'
  const read = generated.safeParse(toFields(response)?.generateVideoResponse ?? response).data
  const source = read === undefined ? null : findVideo(read)
  if (source !== null) {
    // How long it is the upstream does not report.
    return { ...makeProduced([{ role: 'video', source, facts: {} }]), upstreamState }
  }
  const [reason] = read?.raiMediaFilteredReasons ?? []
  const isFiltered = reason !== undefined || Number(read?.raiMediaFilteredCount) > 0
  if (isFiltered) {
    const message = clipMessage(looseText.parse(reason) ?? 'The upstream filtered the video.')
    return { type: 'failed', upstreamState, code: 'content_policy', message }
  }
  const message = 'The upstream finished the operation and named no video.'
  return { type: 'failed', upstreamState, code: 'generation_failed', message }
}

function readPoll(answer: MediaAnswer): PollOutcome {
  const body = isSuccess(answer) ? readFields(answer) : null
  if (body === null || looseText.parse(body.name) === null) return pollError(answer)
  const { done, response } = operation.parse(body)
  if (!done) return { type: 'running', upstreamState: 'running' }
  const error = toFields(body.error)
  if (error === null) return readEnded(response)
  const message = readMessage(error, 'The operation failed.')
  return { type: 'failed', upstreamState: 'done', code: chooseCode(error.code, message), message }
}

const OPERATION_MODEL = /\/models\/([^/]+)\/operations\//

/** Vertex is asked for an operation by the model that has it. */
function pollRequest(channel: ChannelEntry, { upstreamId, upstreamModel }: MediaPoll): MediaRequest {
  if (!isVertex(channel)) return getRequest(channel, `/v1beta/${pathParts(upstreamId)}`, { key })
  const model = OPERATION_MODEL.exec(upstreamId)?.[1] ?? upstreamModel
  const path = `/publishers/google/models/${pathPart(model)}:fetchPredictOperation`
  return jsonRequest(channel, path, { operationName: upstreamId }, { key })
}

export const veo: MediaAdapter = {
  baseUrl: { end: null, appended: '/v1beta/models' },
  works: ['video'],
  inlines: true,
  // The Gemini API refuses `generateAudio`.
  fixesSound: (channel) => !isVertex(channel),
  takesIn(job) {
    if (job.work !== 'video') return []
    return job.content.flatMap((part) => (part.type === 'text' ? [] : [part.file])).filter(isLink)
  },
  submit(channel, { job, upstreamModel, resolveUrl }) {
    if (job.work !== 'video') return throwNotServed(job)
    const models = isVertex(channel) ? '/publishers/google/models' : '/v1beta/models'
    const path = `${models}/${pathPart(upstreamModel)}:predictLongRunning`
    return jsonRequest(channel, path, makeBody(channel, job, resolveUrl), { key })
  },
  readSubmit,
  fileRequest(channel, url) {
    const origin = isVertex(channel) ? STORAGE_ORIGIN : new URL(channel.base_url).origin
    return new URL(url).origin === origin ? fileRequest(channel, url, key) : null
  },
  follow: {
    poll: pollRequest,
    readPoll,
  },
}
