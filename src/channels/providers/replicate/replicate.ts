/** Replicate: predictions of models, of their versions and of deployments. */
import { z } from 'zod'
import type { MediaJob } from '../../../../schemas/media/job.ts'
import { findMediaType, isOfRole } from '../../../core/media/type.ts'
import type { MediaAdapter, MediaAnswer, PollOutcome, PollState, SubmitOutcome } from '../../media/adapter.ts'
import {
  anything,
  chooseOutcome,
  isSuccess,
  looseId,
  looseSeconds,
  looseText,
  looseWord,
  makeAccepted,
  makeUnknown,
  readAsyncRefusal,
  readFields,
  readMessage,
  toFields,
} from '../../media/answer.ts'
import type { MediaFailureCode } from '../../media/failure.ts'
import { type Delivered, type FileSource, makeProduced, toSource } from '../../media/files.ts'
import { type Host, leavesSoundOut, makeJobInput } from '../../media/hosted-input.ts'
import {
  bareRequest,
  getRequest,
  jsonRequest,
  pathPart,
  pathParts,
  throwNotServed,
} from '../../media/request.ts'
import type { Provider } from '../provider.ts'

const host: Host = {
  names: { images: 'image_input[]', n: 'num_outputs', ratio: 'aspect_ratio' },
  pixels: (width, height) => ({ width, height }),
  duration: (seconds) => seconds,
}

const PREDICTIONS = '/predictions'
const VERSION = /^[0-9a-f]{64}$/
const VERSIONED = /:([0-9a-f]{64})$/

/** `owner/name`, `owner/name:version`, only a version, or `deployments/owner/name`. */
function chooseTarget(model: string): { path: string; version?: string } {
  const version = VERSION.test(model) ? model : VERSIONED.exec(model)?.[1]
  if (version !== undefined) return { path: PREDICTIONS, version }
  const folder = model.startsWith('deployments/') ? '' : 'models/'
  return { path: `/${folder}${pathParts(model)}${PREDICTIONS}` }
}

const submitted = z.looseObject({ id: looseId, status: looseWord })

/** A prediction may be over already: its first poll reads how it ended. */
function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return readAsyncRefusal(answer)
  const body = readFields(answer)
  if (body === null) return makeUnknown('The answer is no JSON object.')
  const { id, status } = submitted.parse(body)
  if (id === null) return makeUnknown('The answer names no prediction.')
  return makeAccepted(id, status ?? 'starting', 'processing')
}

const prediction = z.looseObject({
  status: looseWord,
  output: anything,
  error: anything,
  metrics: anything,
})

const metrics = z.looseObject({ video_output_duration_seconds: looseSeconds })

/** Returns the links of an output: one, a list, or the fields of an object. */
function listLinks(output: unknown): readonly string[] {
  const items = Array.isArray(output) ? output : [output]
  return items.flatMap((item) => {
    const text = looseText.parse(item)
    if (text !== null) return [text]
    return Object.values(toFields(item) ?? {}).flatMap((value) => looseText.parse(value) ?? [])
  })
}

/** Returns false for a link whose name is that of a picture or a sound, such as a thumbnail beside its video. */
function mayBeVideo(source: FileSource): boolean {
  const named = source.type === 'link' ? findMediaType(new URL(source.url).pathname) : null
  return named === null || isOfRole('video', named)
}

function readMade(output: unknown, measured: unknown, { work }: MediaJob): PollState | null {
  const sources = listLinks(output).flatMap((link) => toSource(link) ?? [])
  const seconds = metrics.safeParse(measured).data?.video_output_duration_seconds ?? null
  const upstreamState = 'succeeded'
  const [first] = sources
  if (first === undefined) return null
  if (work === 'video') {
    const source = sources.find(mayBeVideo) ?? first
    return { ...makeProduced([{ role: 'video', source, facts: { seconds } }], { seconds }), upstreamState }
  }
  const images = sources.map((each): Delivered => ({ role: 'image', source: each, facts: {} }))
  return { ...makeProduced(images), upstreamState }
}

const POLICY = /nsfw|flagged|sensitive|safety|moderat|E005/i
const TIMEOUT = /timed? ?out/i
const INVALID = /invalid|must be|not supported|unsupported/i

/** An error is a text; only its words say of what kind it is. */
function chooseCode(message: string): MediaFailureCode {
  if (POLICY.test(message)) return 'content_policy'
  if (TIMEOUT.test(message)) return 'timeout'
  return INVALID.test(message) ? 'invalid_input' : 'generation_failed'
}

function readPoll(answer: MediaAnswer, job: MediaJob): PollOutcome {
  const body = isSuccess(answer) ? readFields(answer) : null
  const read = prediction.parse(body ?? {})
  const upstreamState = read.status
  const makeFailed = (message: string): PollState => {
    return { type: 'failed', upstreamState: upstreamState ?? '', code: chooseCode(message), message }
  }
  return chooseOutcome(answer, upstreamState, {
    starting: 'queued',
    processing: 'running',
    canceled: 'cancelled',
    // Its deadline came before it could begin.
    aborted: 'lapsed',
    succeeded: () =>
      readMade(read.output, read.metrics, job) ??
      makeFailed('The upstream finished the prediction and has no output of it.'),
    failed: () => makeFailed(readMessage(read.error, 'The prediction failed.')),
  })
}

const media: MediaAdapter = {
  baseUrl: { end: '/v1', appended: '/predictions' },
  works: ['image', 'image_edit', 'video'],
  inlines: true,
  fixesSound: leavesSoundOut,
  submit(channel, submit) {
    const input = makeJobInput(channel, submit, host)
    if (input === null) return throwNotServed(submit.job)
    const { path, ...version } = chooseTarget(submit.upstreamModel)
    return jsonRequest(channel, path, { ...version, input })
  },
  readSubmit,
  follow: {
    poll: (channel, { upstreamId }) => getRequest(channel, `${PREDICTIONS}/${pathPart(upstreamId)}`),
    readPoll: (answer, { job }) => readPoll(answer, job),
    cancel: (channel, { upstreamId }) =>
      bareRequest(channel, 'POST', `${PREDICTIONS}/${pathPart(upstreamId)}/cancel`),
  },
}

export const replicate: Provider = {
  title: 'Replicate',
  baseUrls: { replicate: 'https://api.replicate.com/v1' },
  media: { replicate: media },
}
