/** The queue of fal: a request is submitted at a model's path, and followed at the path of its application. */
import { type Call, type Desk, type Dialect, type Job, KEY, type Reply, reply } from './provider.ts'

const detail = (type: string, msg: string) => ({
  detail: [{ loc: ['body', 'prompt'], msg, type, url: `https://docs.fal.ai/errors/#${type}`, input: '' }],
})

const REQUEST = /^\/([^/]+\/[^/]+)\/requests\/([^/]+)(\/status|\/cancel)?$/

function submit(call: Call, desk: Desk): Reply {
  const { prompt } = call.body
  if (typeof prompt !== 'string') return reply(422, detail('missing', 'Field required'))
  const { id } = desk.take(call, prompt)
  const app = call.path.split('/').slice(1, 3).join('/')
  const response_url = `${desk.url}/${app}/requests/${id}`
  return reply(200, {
    status: 'IN_QUEUE',
    request_id: id,
    response_url,
    status_url: `${response_url}/status`,
    cancel_url: `${response_url}/cancel`,
    queue_position: 0,
  })
}

function statusOf(job: Job, desk: Desk): Reply {
  const stage = desk.look(job)
  // A cancelled one is where it was until fal has taken it out.
  if (stage === 'queued' || stage === 'cancelled')
    return reply(202, { status: 'IN_QUEUE', queue_position: 1 })
  if (stage === 'running') return reply(202, { status: 'IN_PROGRESS', logs: null })
  if (stage === 'strange') return reply(200, { status: 'ON_HOLD' })
  const end = { status: 'COMPLETED', logs: null, metrics: { inference_time: 3.2 } }
  return reply(
    200,
    stage === 'late' ? { ...end, error: 'Request timed out', error_type: 'request_timeout' } : end,
  )
}

function resultOf(job: Job, desk: Desk): Reply {
  const isFilm = job.call.body.duration !== undefined
  switch (job.fate) {
    case 'broken':
      return reply(500, detail('internal_server_error', 'The runner ran out of memory.'))
    case 'improper':
      return reply(422, detail('content_policy_violation', 'The prompt was flagged.'))
    case 'late':
      return reply(504, { detail: 'Request timed out' })
    default: {
      if (!isFilm) {
        const images = Array.from({ length: job.call.body.num_images ?? 1 }, (_, index) => ({
          url: desk.file(job, 'png', index + 1),
          width: 1024,
          height: 1024,
          content_type: 'image/png',
        }))
        return reply(200, { images, seed: 7, prompt: job.prompt, has_nsfw_concepts: images.map(() => false) })
      }
      const video = {
        url: desk.file(job, 'mp4'),
        content_type: 'video/mp4',
        file_name: 'out.mp4',
        file_size: 512,
        width: 1280,
        height: 720,
        fps: 24,
        duration: 4,
        num_frames: 96,
      }
      return reply(200, { video, seed: 7 })
    }
  }
}

export const falDialect: Dialect = {
  isAuthorized: ({ header }) => header('authorization') === `Key ${KEY}`,
  unauthorized: reply(401, { detail: 'Cannot access application. Authentication is required.' }),
  busy: reply(429, { detail: 'Too many requests' }),
  improper: null,
  answer(call, desk) {
    const [, , id, rest] = REQUEST.exec(call.path) ?? []
    if (id === undefined) return call.method === 'POST' ? submit(call, desk) : reply(405)
    const job = desk.find(id)
    if (job === undefined) return reply(404, { detail: 'Request not found' })
    if (rest === '/status') return statusOf(job, desk)
    if (rest === undefined) return resultOf(job, desk)
    if (call.method !== 'PUT') return reply(405, { detail: 'Method Not Allowed' })
    job.isCancelled = true
    return reply(202, { status: 'CANCELLATION_REQUESTED' })
  },
}
