/** Operations of Veo in the Gemini API; a video is a file that opens with the key alone. */
import { type Call, type Desk, type Dialect, type Job, KEY, type Reply, reply } from './provider.ts'

const problem = (status: number, word: string, message: string): Reply =>
  reply(status, { error: { code: status, message, status: word } })

const SUBMIT = /^\/v1beta\/models\/([\w.-]+):predictLongRunning$/
const OPERATION = /^\/v1beta\/models\/[\w.-]+\/operations\/([\w-]+)$/

function submit(call: Call, desk: Desk, model: string): Reply {
  const [instance] = call.body.instances ?? []
  const { durationSeconds } = call.body.parameters ?? {}
  if (typeof instance?.prompt !== 'string') return problem(400, 'INVALID_ARGUMENT', 'prompt is missing')
  if (durationSeconds !== undefined && typeof durationSeconds !== 'number')
    return problem(400, 'INVALID_ARGUMENT', 'durationSeconds needs to be a number')
  const job = desk.take(call, instance.prompt)
  return reply(200, { name: `models/${model}/operations/${job.id}` })
}

function operationOf(job: Job, desk: Desk, name: string): unknown {
  const stage = desk.look(job)
  if (stage === 'queued' || stage === 'running' || stage === 'strange') return { name }
  if (stage === 'broken')
    return { name, done: true, error: { code: 13, message: 'Video generation failed.' } }
  const type = 'type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse'
  const generateVideoResponse =
    stage === 'improper'
      ? { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ['The prompt violates usage guidelines.'] }
      : { generatedSamples: [{ video: { uri: desk.file(job, 'mp4') } }] }
  return { name, done: true, response: { '@type': type, generateVideoResponse } }
}

export const veoDialect: Dialect = {
  areFilesClosed: true,
  isAuthorized: ({ header }) => header('x-goog-api-key') === KEY,
  unauthorized: problem(403, 'PERMISSION_DENIED', 'Method does not allow unregistered callers.'),
  busy: problem(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.'),
  improper: null,
  answer(call, desk) {
    const [, model] = SUBMIT.exec(call.path) ?? []
    if (model !== undefined && call.method === 'POST') return submit(call, desk, model)
    const job = desk.find(OPERATION.exec(call.path)?.[1])
    if (job === undefined) return problem(404, 'NOT_FOUND', 'Operation not found.')
    return reply(200, operationOf(job, desk, call.path.replace('/v1beta/', '')))
  },
}
