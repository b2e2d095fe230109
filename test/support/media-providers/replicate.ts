/** Predictions of Replicate. */
import { type Call, type Desk, type Dialect, type Job, KEY, type Reply, reply } from './provider.ts'

const problem = (status: number, title: string, text: string): Reply =>
  reply(status, { title, detail: text, status })

const STATUS = {
  queued: 'starting',
  running: 'processing',
  done: 'succeeded',
  broken: 'failed',
  improper: 'failed',
  strange: 'paused',
  late: 'aborted',
  cancelled: 'canceled',
} as const
const ERRORS: Readonly<Record<string, string>> = {
  broken: 'CUDA out of memory',
  improper: 'The input or output was flagged as sensitive. Please try again with different inputs. (E005)',
}

function prediction(job: Job, desk: Desk): unknown {
  const status = STATUS[desk.look(job)]
  const { input } = job.call.body
  const isFilm = input.duration !== undefined
  const images = Array.from({ length: input.num_outputs ?? 1 }, (_, index) =>
    desk.file(job, 'png', index + 1),
  )
  return {
    id: job.id,
    model: 'owner/model',
    version: 'hidden',
    input,
    logs: '',
    output: status === 'succeeded' ? (isFilm ? desk.file(job, 'mp4') : images) : null,
    data_removed: false,
    error: status === 'failed' ? ERRORS[job.fate] : null,
    status,
    metrics: { predict_time: 3.1, total_time: 4, ...(isFilm && { video_output_duration_seconds: 4 }) },
  }
}

function submit(call: Call, desk: Desk): Reply {
  const isVersioned = call.path === '/v1/predictions'
  if (isVersioned !== (call.body.version !== undefined))
    return problem(422, 'Input validation failed', '- version is required')
  const job = desk.take(call, call.body.input.prompt)
  return reply(201, { id: job.id, status: 'starting', input: call.body.input, output: null, error: null })
}

export const replicateDialect: Dialect = {
  isAuthorized: ({ header }) => header('authorization') === `Bearer ${KEY}`,
  unauthorized: problem(401, 'Unauthenticated', 'You did not pass a valid authentication token'),
  busy: problem(429, 'Throttled', 'Request was throttled. Expected available in 5 seconds.'),
  improper: null,
  answer(call, desk) {
    const [, id, rest] = /^\/v1\/predictions\/([^/]+)(\/cancel)?$/.exec(call.path) ?? []
    if (id === undefined) {
      const isSubmit = /^\/v1\/(models\/[^/]+\/[^/]+\/|deployments\/[^/]+\/[^/]+\/)?predictions$/
      return call.method === 'POST' && isSubmit.test(call.path)
        ? submit(call, desk)
        : problem(404, 'Not found', 'No such endpoint')
    }
    const job = desk.find(id)
    if (job === undefined) return problem(404, 'Not found', 'The requested resource could not be found.')
    if (rest === '/cancel') job.isCancelled = true
    return reply(200, prediction(job, desk))
  },
}
