/**
 * Veo by the Gemini API and by Vertex AI: operations of a model, polled by their names. Frames are sent as bytes. A video
 * opens with the channel's access alone, at the API or in a bucket; Vertex answers with its bytes where no bucket is
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
  acceptedAs,
  anything,
  asyncRefusal,
  clipped,
  fieldsIn,
  fieldsOf,
  isSuccess,
  looseId,
  looseList,
  looseText,
  messageOf,
  pollError,
  unknown,
} from '../../media/answer.ts'
import type { MediaFailureCode } from '../../media/failure.ts'
import { type FileSource, produced, sourceOf, sourceOfBase64 } from '../../media/files.ts'
import {
  definedFields,
  fileRequest,
  getRequest,
  isLink,
  jsonRequest,
  type KeyHeader,
  notServed,
  pathPart,
  pathParts,
} from '../../media/request.ts'
import { videoParts } from '../../media/video-parts.ts'

const key: KeyHeader = (channel) => [['x-goog-api-key', channel.api_key]]

const isVertex = ({ provider }: ChannelEntry): boolean => provider === 'vertex'

/** The API of Cloud Storage, at which an object of a bucket opens. */
const STORAGE_ORIGIN = 'https://storage.googleapis.com'
const OBJECT = /^gs:\/\/([a-z0-9][\w.-]+\/.+)$/

/** Returns the link to an object of Cloud Storage; null for another text. */
function objectLink(uri: string | null): string | null {
  const [, path] = OBJECT.exec(uri ?? '') ?? []
  return path === undefined ? null : `${STORAGE_ORIGIN}/${pathParts(path)}`
}

const DATA_URI = /^data:([^;,]+)[^,]*,/

/** Returns a file as bytes in base64 with their type; null for a link, which the upstream would refuse. */
function mediaOf(file: FileRef | null, resolveUrl: MediaSubmit['resolveUrl']) {
  const text = file === null ? '' : resolveUrl(file)
  const [head, mimeType] = DATA_URI.exec(text) ?? []
  return head === undefined ? null : { bytesBase64Encoded: text.slice(head.length), mimeType }
}

/** Returns a video to continue. The Gemini API names its bytes otherwise than those of an image, Vertex AI does not. */
function videoOf(channel: ChannelEntry, file: FileRef | null, resolveUrl: MediaSubmit['resolveUrl']) {
  const media = mediaOf(file, resolveUrl)
  if (media === null || isVertex(channel)) return media
  return { encodedVideo: media.bytesBase64Encoded, encoding: media.mimeType }
}

/** Parameters that the Gemini API does not have. Each video is charged by the provider: one is asked for. */
const vertexParameters = (channel: ChannelEntry, { generate_audio }: JobOf<'video'>) =>
  isVertex(channel) ? { sampleCount: 1, generateAudio: generate_audio, storageUri: channel.storage_uri } : {}

function bodyOf(
  channel: ChannelEntry,
  job: JobOf<'video'>,
  resolveUrl: MediaSubmit['resolveUrl'],
): Record<string, unknown> {
  const { prompt, firstFrame, lastFrame, references, videos } = videoParts(job)
  const referenceImages = references.flatMap((file) => {
    const image = mediaOf(file, resolveUrl)
    return image === null ? [] : [{ image, referenceType: 'asset' }]
  })
  return {
    instances: [
      definedFields({
        prompt,
        image: mediaOf(firstFrame, resolveUrl),
        lastFrame: mediaOf(lastFrame, resolveUrl),
        referenceImages: referenceImages.length === 0 ? null : referenceImages,
        video: videoOf(channel, videos[0] ?? null, resolveUrl),
      }),
    ],
    parameters: definedFields({
      aspectRatio: job.ratio,
      durationSeconds: job.duration,
      resolution: job.resolution,
      seed: job.seed,
      ...vertexParameters(channel, job),
    }),
  }
}

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return asyncRefusal(answer)
  const body = fieldsIn(answer)
  if (body === null) return unknown('The answer is no JSON object.')
  const name = looseId.parse(body.name)
  if (name === null) return unknown('The answer names no operation.')
  return acceptedAs(name, 'running', 'running')
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

function videoIn({ generatedSamples, videos }: z.infer<typeof generated>): FileSource | null {
  for (const each of [...generatedSamples.map((sample) => fieldsOf(sample)?.video), ...videos]) {
    const read = video.safeParse(each).data
    if (read === undefined) continue
    const { uri, gcsUri, encodedVideo, bytesBase64Encoded } = read
    const source =
      sourceOf(objectLink(gcsUri) ?? uri) ??
      sourceOfBase64(encodedVideo ?? bytesBase64Encoded ?? '', 'video/mp4')
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
function codeOf(code: unknown, message: string): MediaFailureCode {
  if (POLICY.test(message)) return 'content_policy'
  return (typeof code === 'number' ? CODES[code] : undefined) ?? 'generation_failed'
}

function ended(response: unknown): PollOutcome {
  const upstreamState = 'done'
  const read = generated.safeParse(fieldsOf(response)?.generateVideoResponse ?? response).data
  const source = read === undefined ? null : videoIn(read)
  if (source !== null) {
    // How long it is the upstream does not report.
    return { ...produced([{ role: 'video', source, facts: {} }]), upstreamState }
  }
  const [reason] = read?.raiMediaFilteredReasons ?? []
  const isFiltered = reason !== undefined || Number(read?.raiMediaFilteredCount) > 0
  if (isFiltered) {
    const message = clipped(looseText.parse(reason) ?? 'The upstream filtered the video.')
    return { type: 'failed', upstreamState, code: 'content_policy', message }
  }
  const message = 'The upstream finished the operation and named no video.'
  return { type: 'failed', upstreamState, code: 'generation_failed', message }
}

function readPoll(answer: MediaAnswer): PollOutcome {
  const body = isSuccess(answer) ? fieldsIn(answer) : null
  if (body === null || looseText.parse(body.name) === null) return pollError(answer)
  const { done, response } = operation.parse(body)
  if (!done) return { type: 'running', upstreamState: 'running' }
  const error = fieldsOf(body.error)
  if (error === null) return ended(response)
  const message = messageOf(error, 'The operation failed.')
  return { type: 'failed', upstreamState: 'done', code: codeOf(error.code, message), message }
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
    if (job.work !== 'video') return notServed(job)
    const models = isVertex(channel) ? '/publishers/google/models' : '/v1beta/models'
    const path = `${models}/${pathPart(upstreamModel)}:predictLongRunning`
    return jsonRequest(channel, path, bodyOf(channel, job, resolveUrl), { key })
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
