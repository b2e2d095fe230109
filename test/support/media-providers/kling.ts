/** Tasks of Kling: each kind of job has its own path, and a task answers to its own id and to the client's. */
import { createHmac } from 'node:crypto'
import { type Call, type Desk, type Dialect, type Job, KEY, type Reply, reply } from './provider.ts'

const envelope = (status: number, code: number, message: string, data?: unknown): Reply =>
  reply(status, { code, message, request_id: 'r-1', ...(data !== undefined && { data }) })

const PATH = /^(\/videos\/text2video|\/videos\/image2video|\/images\/generations)(?:\/([^/]+))?$/
const STATUS = { queued: 'submitted', running: 'processing', done: 'succeed', strange: 'paused' } as const

function submit(call: Call, desk: Desk): Reply {
  const { body } = call
  if (typeof body.prompt !== 'string') return envelope(400, 1201, 'prompt is required')
  if (body.duration !== undefined && typeof body.duration !== 'string')
    return envelope(400, 1201, 'duration value is invalid')
  if (desk.jobs.some(({ reference }) => reference === body.external_task_id))
    return envelope(400, 1201, 'external_task_id is used')
  const job = desk.take(call, body.prompt, body.external_task_id)
  return envelope(200, 0, 'SUCCEED', {
    task_id: job.id,
    task_info: { external_task_id: job.reference },
    task_status: 'submitted',
    created_at: 1_760_000_000_000,
    updated_at: 1_760_000_000_000,
  })
}

function taskOf(job: Job, desk: Desk): unknown {
  const stage = desk.look(job)
  const status = stage in STATUS ? STATUS[stage as keyof typeof STATUS] : 'failed'
  const isFilm = job.call.path.startsWith('/videos/')
  const words = {
    broken: 'Internal failure of the generation',
    improper: 'Failure to pass the risk control system',
  }
  const result = isFilm
    ? { videos: [{ id: `v-${job.id}`, url: desk.file(job, 'mp4'), duration: '4' }] }
    : {
        images: Array.from({ length: job.call.body.n ?? 1 }, (_, index) => ({
          index,
          url: desk.file(job, 'png', index + 1),
        })),
      }
  return {
    task_id: job.id,
    task_status: status,
    task_status_msg: status === 'failed' ? words[stage === 'improper' ? 'improper' : 'broken'] : '',
    task_info: { external_task_id: job.reference },
    ...(status === 'succeed' && { task_result: result }),
    created_at: 1_760_000_000_000,
    updated_at: 1_760_000_000_000,
  }
}

export const ACCESS_KEY = 'ak-test-kling-1'
export const SECRET_KEY = 'sk-test-kling-secret-1'
const MAX_TOKEN_SECONDS = 1800

/** Checks a token: signed by the secret key, issued by the access key, valid now and for half an hour at most. */
function isSigned(token: string): boolean {
  const [head = '', payload = '', signature] = token.split('.')
  const expected = createHmac('sha256', SECRET_KEY).update(`${head}.${payload}`).digest('base64url')
  if (signature !== expected) return false
  const { iss, exp, nbf } = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const now = Date.now() / 1000
  return iss === ACCESS_KEY && nbf <= now && exp > now && exp <= now + MAX_TOKEN_SECONDS + 1
}

export const klingDialect: Dialect = {
  isAuthorized({ header }) {
    const token = header('authorization').replace('Bearer ', '')
    return token === KEY || isSigned(token)
  },
  unauthorized: envelope(401, 1002, 'Authorization is invalid'),
  busy: envelope(429, 1303, 'parallel task over resource pack limit'),
  improper: null,
  answer(call, desk) {
    const [, kind, id] = PATH.exec(call.path.replace(/^\/v1/, '')) ?? []
    if (kind === undefined) return envelope(404, 1203, 'resource does not exist')
    if (id === undefined) return submit({ ...call, path: kind }, desk)
    const job = desk.jobs.find((each) => each.id === id || each.reference === id)
    if (job === undefined || job.call.path !== kind) return envelope(404, 1203, 'resource does not exist')
    return envelope(200, 0, 'SUCCEED', taskOf(job, desk))
  },
}
