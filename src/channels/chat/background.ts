/**
 * Adapter for answers that an upstream of the responses protocol makes in the background: submitted, polled and
 * cancelled as the work of media is. The upstream names no way to find a submit whose answer was lost.
 */
import { Buffer } from 'node:buffer'
import { emptyResult } from '../../../schemas/media/job.ts'
import type { ResponseFacts } from '../../../schemas/tasks/response.ts'
import { scanFields } from '../../core/json/scanner/tape.ts'
import { applySplices } from '../../core/json/splice.ts'
import type { MediaAnswer, MediaPoll, PollState, SubmitOutcome, TaskAdapter } from '../media/adapter.ts'
import {
  isSuccess,
  parseAnswer,
  readFields,
  readMessage,
  readPlainRefusal,
  toFields,
} from '../media/answer.ts'
import { bareRequest, getRequest, jsonTextRequest, throwNotServed } from '../media/request.ts'
import { makeResponsePath, makeResponsesPath } from './responses.ts'

type ReadFacts = (body: Buffer, provider?: string) => ResponseFacts | null

const SERVER_ERROR = 500
const FAILED = 'The response failed at the upstream.'

/** Returns the request with the upstream's name of the model in place of the client's. */
function withModel(body: Buffer, upstreamModel: string): Buffer {
  const span = scanFields(body).fields.get('model')
  if (span === undefined) throw new Error('the request names no model')
  return applySplices(body, [{ start: span.start, end: span.end, text: JSON.stringify(upstreamModel) }])
}

const decodeDataUri = (dataUri: string): Buffer =>
  Buffer.from(dataUri.slice(dataUri.indexOf(',') + 1), 'base64')

/** An error that is not the upstream's own may be a proxy's: the upstream may have begun all the same. */
const isOwnError = (answer: MediaAnswer): boolean => toFields(readFields(answer)?.error) !== null

function readSubmit(read: ReadFacts, answer: MediaAnswer): SubmitOutcome {
  if (answer.status >= SERVER_ERROR && !isOwnError(answer))
    return { type: 'unknown', reason: `It answered with status ${answer.status}.` }
  if (!isSuccess(answer)) return readPlainRefusal(answer, 502)
  const facts = read(answer.body)
  if (facts === null) return { type: 'unknown', reason: 'It answered with something that is no response.' }
  const { id, status } = facts
  return { type: 'accepted', upstreamId: id, upstreamState: status, isRunning: status !== 'queued' }
}

function readPoll(read: ReadFacts, answer: MediaAnswer, { provider }: MediaPoll): PollState {
  const facts = isSuccess(answer) ? read(answer.body, provider) : null
  if (facts === null)
    return {
      type: 'error',
      reason: readMessage(parseAnswer(answer), `It answered with status ${answer.status}.`),
    }
  const upstreamState = facts.status
  const result = { ...emptyResult(), response: facts }
  switch (facts.status) {
    case 'queued':
      return { type: 'queued', upstreamState }
    case 'in_progress':
      return { type: 'running', upstreamState }
    // A limit ended it: it is an answer, and costs what one costs.
    case 'completed':
    case 'incomplete':
      return { type: 'produced', upstreamState, result, inline: [] }
    case 'cancelled':
      return { type: 'cancelled', upstreamState, result }
    case 'failed': {
      const { code, message } = facts.error ?? { code: '', message: '' }
      return {
        type: 'failed',
        upstreamState,
        code: code || 'generation_failed',
        message: message || FAILED,
        result,
      }
    }
    default:
      return { type: 'unmapped', upstreamState }
  }
}

/** @param read reads the facts of a whole response */
export const backgroundResponses = (read: ReadFacts): TaskAdapter => ({
  works: ['response'],
  inlines: true,
  submit(channel, { job, upstreamModel, resolveUrl }) {
    if (job.work !== 'response') return throwNotServed(job)
    return jsonTextRequest(
      channel,
      makeResponsesPath(channel),
      withModel(decodeDataUri(resolveUrl(job.body)), upstreamModel),
    )
  },
  readSubmit: (answer) => readSubmit(read, answer),
  follow: {
    poll: (channel, { upstreamId }) => getRequest(channel, makeResponsePath(channel, upstreamId)),
    readPoll: (answer, poll) => readPoll(read, answer, poll),
    cancel: (channel, { upstreamId }) =>
      bareRequest(channel, 'POST', makeResponsePath(channel, upstreamId, '/cancel')),
    cancelsRunning: true,
  },
})
