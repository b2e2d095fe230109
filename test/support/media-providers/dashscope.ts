/** Tasks of DashScope. */
import { type Call, type Desk, type Dialect, type Job, KEY, type Reply, reply } from './provider.ts'

const problem = (status: number, code: string, message: string): Reply =>
  reply(status, { code, message, request_id: 'r-1' })

const STATUS = {
  queued: 'PENDING',
  running: 'RUNNING',
  done: 'SUCCEEDED',
  strange: 'PAUSED',
  cancelled: 'CANCELED',
} as const
const ERRORS = {
  broken: { code: 'InternalError', message: 'An internal error has occurred.' },
  improper: { code: 'DataInspectionFailed', message: 'Output data may contain inappropriate content.' },
}

function submit(call: Call, desk: Desk): Reply {
  const { model, input, parameters } = call.body
  if (call.header('x-dashscope-async') !== 'enable')
    return problem(403, 'AccessDenied', 'current user api does not support synchronous calls.')
  if (typeof model !== 'string' || typeof input !== 'object' || typeof parameters !== 'object')
    return problem(400, 'InvalidParameter', 'Required parameter is missing.')
  const prompt = input.prompt ?? input.messages[0].content[0].text
  const job = desk.take(call, prompt)
  return reply(200, { output: { task_status: 'PENDING', task_id: job.id }, request_id: 'r-1' })
}

function taskOf(job: Job, desk: Desk): unknown {
  const stage = desk.look(job)
  const task_status = stage in STATUS ? STATUS[stage as keyof typeof STATUS] : 'FAILED'
  const output = { task_id: job.id, task_status, submit_time: '2026-01-01 00:00:00.000' }
  if (task_status === 'FAILED')
    return {
      request_id: 'r-2',
      output: { ...output, ...ERRORS[stage === 'improper' ? 'improper' : 'broken'] },
    }
  if (task_status !== 'SUCCEEDED') return { request_id: 'r-2', output }
  const { input, parameters } = job.call.body
  if (job.call.path.endsWith('/video-synthesis')) {
    const usage = { duration: 4, output_video_duration: 4, input_video_duration: 0, video_count: 1, SR: 720 }
    return { request_id: 'r-2', output: { ...output, video_url: desk.file(job, 'mp4') }, usage }
  }
  const urls = Array.from({ length: parameters.n ?? 1 }, (_, index) => desk.file(job, 'png', index + 1))
  const usage = { image_count: urls.length }
  if (input.messages !== undefined) {
    const choices = urls.map((image) => ({
      finish_reason: 'stop',
      message: { role: 'assistant', content: [{ image, type: 'image' }] },
    }))
    return { request_id: 'r-2', output: { ...output, choices, finished: true }, usage }
  }
  const failed = { code: 'InternalError.FileUpload', message: 'oss upload error' }
  const results = [...urls.map((url) => ({ orig_prompt: input.prompt, url })), failed]
  return { request_id: 'r-2', output: { ...output, results, task_metrics: { TOTAL: results.length } }, usage }
}

export const dashscopeDialect: Dialect = {
  isAuthorized: ({ header }) => header('authorization') === `Bearer ${KEY}`,
  unauthorized: problem(401, 'InvalidApiKey', 'Invalid API-key provided.'),
  busy: problem(429, 'Throttling.RateQuota', 'Requests rate limit exceeded, please try again later.'),
  improper: problem(400, 'DataInspectionFailed', 'Input data may contain inappropriate content.'),
  answer(call, desk) {
    if (call.method === 'POST' && call.path.startsWith('/api/v1/services/aigc/')) return submit(call, desk)
    const [, id, rest] = /^\/api\/v1\/tasks\/([^/]+)(\/cancel)?$/.exec(call.path) ?? []
    const job = desk.find(id)
    if (job === undefined)
      return reply(200, { request_id: 'r-3', output: { task_id: id, task_status: 'UNKNOWN' } })
    if (rest === undefined) return reply(200, taskOf(job, desk))
    job.isCancelled = true
    return reply(200, { request_id: 'r-4' })
  },
}
