/**
 * Veo by the Gemini API: operations of a model, polled by their names. Frames are sent as bytes, and a video opens with
 * the channel's key alone.
 */
import { z } from 'zod'
import type { FileRef, JobOf } from '../../../schemas/media/job.ts'
import type { MediaAdapter, MediaAnswer, MediaSubmit, PollOutcome, SubmitOutcome } from './adapter.ts'
import {
  anything,
  asyncRefusal,
  clipped,
  fieldsOf,
  isSuccess,
  jsonIn,
  looseId,
  looseText,
  messageOf,
  pollError,
  unknown,
} from './answer.ts'
import type { MediaFailureCode } from './failure.ts'
import { type FileSource, produced, sourceOf, sourceOfBase64 } from './files.ts'
import {
  definedFields,
  getRequest,
  isLink,
  jsonRequest,
  type KeyHeader,
  notServed,
  pathPart,
  pathParts,
} from './request.ts'
import { videoParts } from './video-parts.ts'

const key: KeyHeader = (channel) => [['x-goog-api-key', channel.api_key]]

const DATA_URI = /^data:([^;,]+)[^,]*,/

/** Returns a file as bytes in base64 with their type; null for a link, which the upstream would refuse. */
function mediaOf(file: FileRef | null, urlOf: MediaSubmit['urlOf']): Record<string, unknown> | null {
  const text = file === null ? '' : urlOf(file)
  const [head, mimeType] = DATA_URI.exec(text) ?? []
  return head === undefined ? null : { bytesBase64Encoded: text.slice(head.length), mimeType }
}

function bodyOf(job: JobOf<'video'>, urlOf: MediaSubmit['urlOf']): Record<string, unknown> {
  const { prompt, firstFrame, lastFrame, references, videos } = videoParts(job)
  const referenceImages = references.flatMap((file) => {
    const image = mediaOf(file, urlOf)
    return image === null ? [] : [{ image, referenceType: 'asset' }]
  })
  return {
    instances: [
      definedFields({
        prompt,
        image: mediaOf(firstFrame, urlOf),
        lastFrame: mediaOf(lastFrame, urlOf),
        referenceImages: referenceImages.length === 0 ? null : referenceImages,
        video: mediaOf(videos[0] ?? null, urlOf),
      }),
    ],
    parameters: definedFields({
      aspectRatio: job.ratio,
      durationSeconds: job.duration,
      resolution: job.resolution,
      seed: job.seed,
    }),
  }
}

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return asyncRefusal(answer)
  const body = fieldsOf(jsonIn(answer))
  if (body === null) return unknown('The answer is no JSON object.')
  const name = looseId.parse(body.name)
  if (name === null) return unknown('The answer names no operation.')
  return { type: 'accepted', upstreamId: name, isRunning: true, upstreamState: 'running' }
}

const operation = z.looseObject({ done: z.boolean().catch(false).default(false), response: anything })
const generated = z.looseObject({
  generatedSamples: z.array(z.unknown()).catch([]).default([]),
  raiMediaFilteredReasons: z.array(z.unknown()).catch([]).default([]),
  raiMediaFilteredCount: anything,
})
const sample = z.looseObject({
  video: z.looseObject({ uri: looseText, encodedVideo: looseText }).nullable().catch(null).default(null),
})

function videoIn(samples: readonly unknown[]): FileSource | null {
  for (const each of samples) {
    const video = sample.safeParse(each).data?.video ?? null
    const source = sourceOf(video?.uri ?? null) ?? sourceOfBase64(video?.encodedVideo ?? '', 'video/mp4')
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
  const read = generated.safeParse(fieldsOf(response)?.generateVideoResponse).data
  const source = videoIn(read?.generatedSamples ?? [])
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
  const body = isSuccess(answer) ? fieldsOf(jsonIn(answer)) : null
  if (body === null || looseText.parse(body.name) === null) return pollError(answer)
  const { done, response } = operation.parse(body)
  if (!done) return { type: 'running', upstreamState: 'running' }
  const error = fieldsOf(body.error)
  if (error === null) return ended(response)
  const message = messageOf(error, 'The operation failed.')
  return { type: 'failed', upstreamState: 'done', code: codeOf(error.code, message), message }
}

export const veo: MediaAdapter = {
  works: ['video'],
  inlines: () => true,
  takesIn(job) {
    if (job.work !== 'video') return []
    return job.content.flatMap((part) => (part.type === 'text' ? [] : [part.file])).filter(isLink)
  },
  submit(channel, { job, upstreamModel, urlOf }) {
    if (job.work !== 'video') return notServed(job)
    const path = `/v1beta/models/${pathPart(upstreamModel)}:predictLongRunning`
    return jsonRequest(channel, path, bodyOf(job, urlOf), { key })
  },
  readSubmit,
  fileHeaders: key,
  follow: {
    poll: (channel, { upstreamId }) => getRequest(channel, `/v1beta/${pathParts(upstreamId)}`, { key }),
    readPoll,
    cancel: null,
    find: null,
  },
}
