/** Our own contract, by which any provider is connected that has no adapter. See docs/upstream-task.md. */
import { z } from 'zod'
import type { JobOf, MediaJob, MediaWork } from '../../../../schemas/media/job.ts'
import type { MediaAdapter, MediaAnswer, PollOutcome, SubmitOutcome } from '../adapter.ts'
import {
  anything,
  isSuccess,
  looseId,
  looseText,
  looseWord,
  makeAccepted,
  makeRefused,
  makeUnknown,
  pollError,
  readAsyncRefusal,
  readFields,
  readMessage,
  readPlainRefusal,
  toFields,
} from '../answer.ts'
import { findMediaFailureStatus, toMediaFailureCode } from '../failure.ts'
import { bareRequest, getRequest, jsonRequest, pathPart, throwNotServed } from '../request.ts'
import { taskPresets } from './catalog.ts'
import { makeTaskInput } from './input.ts'
import { readTaskResult } from './result.ts'

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
function parseTask(answer: MediaAnswer): Task | null {
  const body = isSuccess(answer) ? readFields(answer) : null
  return body === null ? null : upstreamTask.parse(body)
}

const readCode = (error: unknown) => toMediaFailureCode(looseText.parse(toFields(error)?.code))

function readState({ state, result, error }: Task, work: MediaWork): PollOutcome {
  const upstreamState = state ?? ''
  switch (state) {
    case 'queued':
    case 'running':
    case 'cancelled':
      return { type: state, upstreamState }
    case 'expired':
      return { type: 'lapsed', upstreamState }
    case 'succeeded': {
      const done = readTaskResult(work, result)
      const message = 'The upstream finished the task without its result.'
      if (done === null) return { type: 'failed', upstreamState, code: 'generation_failed', message }
      return { ...done, upstreamState }
    }
    case 'failed':
      return {
        type: 'failed',
        upstreamState,
        code: readCode(error),
        message: readMessage(error, 'The task failed.'),
      }
    default:
      return { type: 'unmapped', upstreamState }
  }
}

/** Returns an accepted task. Its first poll reads its final state, if it has one already. */
function readAccepted({ id, state }: Task): SubmitOutcome {
  return id === null ? makeUnknown('The answer names no task.') : makeAccepted(id, state ?? '', 'running')
}

/** The contract's codes of failures behind the upstream, each with its status and with ours. */
const OF_CONNECTION = {
  connection_failed: { status: 502, code: 'upstream_unreachable' },
  timeout: { status: 504, code: 'upstream_timeout' },
} as const

const isAboutConnection = (code: unknown) =>
  code === 'connection_failed' || code === 'timeout' ? OF_CONNECTION[code] : null

/** Reads a refusal by its text: a proxy has the same statuses, but other texts. */
function readRefusal(answer: MediaAnswer): SubmitOutcome {
  const named = isAboutConnection(toFields(readFields(answer)?.error)?.code)
  return named?.status === answer.status
    ? { ...readPlainRefusal(answer, answer.status), code: named.code }
    : readAsyncRefusal(answer)
}

function readSubmit(answer: MediaAnswer, work: MediaWork): SubmitOutcome {
  if (!isSuccess(answer)) return readRefusal(answer)
  const read = parseTask(answer)
  if (read === null) return makeUnknown('The answer is no JSON object.')
  const now = readState(read, work)
  if (now.type === 'produced') return { type: 'produced', result: now.result, inline: now.inline }
  if (now.type !== 'failed') return readAccepted(read)
  const named = isAboutConnection(now.code)
  return {
    ...makeRefused(findMediaFailureStatus(now.code), now.message),
    ...(named !== null && { code: named.code }),
  }
}

/**
 * Reads the answer to a query for an unconfirmed task. Only the contract's own 404 proves that no work was accepted: any other server may lack
 * the path. To the client it is the upstream's failure, not a missing resource.
 */
function readFound(answer: MediaAnswer): SubmitOutcome {
  const read = parseTask(answer)
  if (read !== null) return readAccepted(read)
  const error = readFields(answer)?.error
  const isAbsent = answer.status === 404 && toFields(error)?.code === 'not_found'
  if (isAbsent) return makeRefused(502, 'The upstream did not take the work on.')
  return makeUnknown(readMessage(error, `status ${answer.status}`))
}

function readPoll(answer: MediaAnswer, work: MediaWork): PollOutcome {
  const read = parseTask(answer)
  return read === null || read.state === null ? pollError(answer) : readState(read, work)
}

/** Throws for a job that is none of media: routing was wrong. */
const requireMediaJob = (job: MediaJob): JobOf<MediaWork> =>
  job.work === 'response' ? throwNotServed(job) : job

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
      input: makeTaskInput(requireMediaJob(job), resolveUrl),
    }),
  readSubmit: (answer, { job }) => readSubmit(answer, requireMediaJob(job).work),
  follow: {
    poll: (channel, { upstreamId }) => getRequest(channel, `${TASKS}/${pathPart(upstreamId)}`),
    readPoll: (answer, { job }) => readPoll(answer, requireMediaJob(job).work),
    cancel: (channel, { upstreamId }) =>
      bareRequest(channel, 'POST', `${TASKS}/${pathPart(upstreamId)}/cancel`),
    find: {
      request: (channel, reference) =>
        getRequest(channel, `${TASKS}?reference=${encodeURIComponent(reference)}`),
      read: readFound,
    },
  },
}
