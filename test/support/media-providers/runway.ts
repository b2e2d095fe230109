/** Tasks of Runway. */
import { type Call, type Desk, type Dialect, type Job, KEY, type Reply, reply } from './provider.ts'

const VERSION = '2024-11-06'
const KINDS = /^\/v1\/(text_to_video|image_to_video|video_to_video|text_to_image)$/

const STATUS = {
  queued: 'PENDING',
  running: 'RUNNING',
  done: 'SUCCEEDED',
  strange: 'PAUSED',
  cancelled: 'CANCELLED',
} as const
const FAILURES = {
  broken: { failure: 'An unexpected error occurred.', failureCode: 'INTERNAL.BAD_OUTPUT.CODE01' },
  improper: { failure: 'The text did not pass moderation.', failureCode: 'SAFETY.INPUT.TEXT' },
}

function submit(call: Call, desk: Desk): Reply {
  const { promptText, ratio, duration } = call.body
  const isValid = /^\d+:\d+$/.test(ratio) && (duration === undefined || Number.isInteger(duration))
  if (!isValid) return reply(400, { error: 'Validation of body failed', issues: [{ path: ['ratio'] }] })
  return reply(200, { id: desk.take(call, promptText).id })
}

function taskOf(job: Job, desk: Desk): unknown {
  const stage = desk.look(job)
  const status = stage in STATUS ? STATUS[stage as keyof typeof STATUS] : 'FAILED'
  const kind = job.call.path.endsWith('image') ? 'png' : 'mp4'
  return {
    id: job.id,
    createdAt: '2026-01-01T00:00:00.000Z',
    status,
    ...(status === 'RUNNING' && { progress: 0.5 }),
    ...(status === 'SUCCEEDED' && { output: [desk.file(job, kind)] }),
    ...(status === 'FAILED' && FAILURES[stage === 'improper' ? 'improper' : 'broken']),
  }
}

export const runwayDialect: Dialect = {
  isAuthorized: ({ header }) =>
    header('authorization') === `Bearer ${KEY}` && header('x-runway-version') === VERSION,
  unauthorized: reply(401, { error: 'You must provide an API key.' }),
  busy: reply(429, { error: 'You have exceeded your daily task limit.' }),
  improper: null,
  answer(call, desk) {
    if (call.method === 'POST' && KINDS.test(call.path)) return submit(call, desk)
    const job = desk.find(/^\/v1\/tasks\/([^/]+)$/.exec(call.path)?.[1])
    if (job === undefined) return reply(404, { error: 'Not found' })
    if (call.method === 'GET') return reply(200, taskOf(job, desk))
    job.isCancelled = true
    return reply(204)
  },
}
