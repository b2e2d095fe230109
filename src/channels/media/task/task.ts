/** Our own contract, by which any provider is connected that has no adapter. See docs/upstream-task.md. */
import { z } from 'zod'
import type { JobOf, MediaJob, MediaWork } from '../../../../schemas/media/job.ts'
import type { MediaAdapter, MediaAnswer, PollOutcome, SubmitOutcome } from '../adapter.ts'
import {
  acceptedAs,
  anything,
  asyncRefusal,
  fieldsIn,
  fieldsOf,
  isSuccess,
  looseId,
  looseText,
  looseWord,
  messageOf,
  pollError,
  refusal,
  refused,
  unknown,
} from '../answer.ts'
import { mediaFailureCode, mediaFailureStatus } from '../failure.ts'
import { bareRequest, getRequest, jsonRequest, notServed, pathPart } from '../request.ts'
import { taskPresets } from './catalog.ts'
import { taskInput } from './input.ts'
import { taskResult } from './result.ts'

const TASKS = '/tasks'

const WORKS: readonly MediaWork[] = [
  'image',
  'image_edit',
  'video',
  'avatar_video',
  'lipsync',
  'motion',
  'clip_compose',
  'music',
  'speech',
  'voice',
  'avatar',
  'transcript',
  'subtitle',
]

const upstreamTask = z.looseObject({ id: looseId, state: looseWord, result: anything, error: anything })
type Task = z.infer<typeof upstreamTask>

/** Returns the task; null for an answer without one. */
function taskIn(answer: MediaAnswer): Task | null {
  const body = isSuccess(answer) ? fieldsIn(answer) : null
  return body === null ? null : upstreamTask.parse(body)
}

const codeIn = (error: unknown) => mediaFailureCode(looseText.parse(fieldsOf(error)?.code))

function stateOf({ state, result, error }: Task, work: MediaWork): PollOutcome {
  const upstreamState = state ?? ''
  switch (state) {
    case 'queued':
    case 'running':
    case 'cancelled':
      return { type: state, upstreamState }
    case 'expired':
      return { type: 'lapsed', upstreamState }
    case 'succeeded': {
      const done = taskResult(work, result)
      const message = 'The upstream finished the task without its result.'
      if (done === null) return { type: 'failed', upstreamState, code: 'generation_failed', message }
      return { ...done, upstreamState }
    }
    case 'failed':
      return {
        type: 'failed',
        upstreamState,
        code: codeIn(error),
        message: messageOf(error, 'The task failed.'),
      }
    default:
      return { type: 'unmapped', upstreamState }
  }
}

/** Returns an accepted task. Its first poll reads its final state, if it has one already. */
function accepted({ id, state }: Task): SubmitOutcome {
  return id === null ? unknown('The answer names no task.') : acceptedAs(id, state ?? '', 'running')
}

/** The contract's codes of failures behind the upstream, each with its status and with ours. */
const OF_CONNECTION = {
  connection_failed: { status: 502, code: 'upstream_unreachable' },
  timeout: { status: 504, code: 'upstream_timeout' },
} as const

const ofConnection = (code: unknown) =>
  code === 'connection_failed' || code === 'timeout' ? OF_CONNECTION[code] : null

/** Reads a refusal by its text: a proxy has the same statuses, but other texts. */
function readRefusal(answer: MediaAnswer): SubmitOutcome {
  const named = ofConnection(fieldsOf(fieldsIn(answer)?.error)?.code)
  return named?.status === answer.status
    ? { ...refusal(answer, answer.status), code: named.code }
    : asyncRefusal(answer)
}

function readSubmit(answer: MediaAnswer, work: MediaWork): SubmitOutcome {
  if (!isSuccess(answer)) return readRefusal(answer)
  const read = taskIn(answer)
  if (read === null) return unknown('The answer is no JSON object.')
  const now = stateOf(read, work)
  if (now.type === 'produced') return { type: 'produced', result: now.result, inline: now.inline }
  if (now.type !== 'failed') return accepted(read)
  const named = ofConnection(now.code)
  return {
    ...refused(mediaFailureStatus(now.code), now.message),
    ...(named !== null && { code: named.code }),
  }
}

/**
 * Reads the answer to a query for an unconfirmed task. Only the contract's own 404 proves that no work was accepted: any other server may lack
 * the path. To the client it is the upstream's failure, not a missing resource.
 */
function readFound(answer: MediaAnswer): SubmitOutcome {
  const read = taskIn(answer)
  if (read !== null) return accepted(read)
  const error = fieldsIn(answer)?.error
  const isAbsent = answer.status === 404 && fieldsOf(error)?.code === 'not_found'
  if (isAbsent) return refused(502, 'The upstream did not take the work on.')
  return unknown(messageOf(error, `status ${answer.status}`))
}

function readPoll(answer: MediaAnswer, work: MediaWork): PollOutcome {
  const read = taskIn(answer)
  return read === null || read.state === null ? pollError(answer) : stateOf(read, work)
}

/** Throws for a job that is none of media: routing was wrong. */
const ofMedia = (job: MediaJob): JobOf<MediaWork> => (job.work === 'response' ? notServed(job) : job)

export const task: MediaAdapter = {
  baseUrl: 'any',
  works: WORKS,
  inlines: true,
  presets: {
    avatar: { type: 'asked', source: taskPresets('avatar') },
    voice: { type: 'asked', source: taskPresets('voice') },
  },
  submit: (channel, { job, upstreamModel, reference, resolveUrl }) =>
    jsonRequest(channel, TASKS, {
      reference,
      kind: job.work,
      model: upstreamModel,
      input: taskInput(ofMedia(job), resolveUrl),
    }),
  readSubmit: (answer, { job }) => readSubmit(answer, ofMedia(job).work),
  follow: {
    poll: (channel, { upstreamId }) => getRequest(channel, `${TASKS}/${pathPart(upstreamId)}`),
    readPoll: (answer, { job }) => readPoll(answer, ofMedia(job).work),
    cancel: (channel, { upstreamId }) =>
      bareRequest(channel, 'POST', `${TASKS}/${pathPart(upstreamId)}/cancel`),
    find: {
      request: (channel, reference) =>
        getRequest(channel, `${TASKS}?reference=${encodeURIComponent(reference)}`),
      read: readFound,
    },
  },
}
