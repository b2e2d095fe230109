/** Operations of Veo at Vertex AI; a video is in the answer, or an object of the bucket that the request names. */
import { type Call, type Desk, type Dialect, FILM, type Job, KEY, type Reply, reply } from './provider.ts'

export const PROJECT = '/v1/projects/p/locations/us-central1'
export const BUCKET = 'gs://bucket-of-films'

const problem = (status: number, word: string, message: string): Reply =>
  reply(status, { error: { code: status, message, status: word } })

const METHOD = new RegExp(
  `^${PROJECT}/publishers/google/models/([\\w.-]+):(predictLongRunning|fetchPredictOperation)$`,
)

const nameOf = ({ id }: Job, model: string): string =>
  `${PROJECT.slice('/v1/'.length)}/publishers/google/models/${model}/operations/${id}`

function submit(call: Call, desk: Desk, model: string): Reply {
  const [instance] = call.body.instances ?? []
  const { durationSeconds, sampleCount, storageUri } = call.body.parameters ?? {}
  if (typeof instance?.prompt !== 'string') return problem(400, 'INVALID_ARGUMENT', 'prompt is missing')
  if (typeof durationSeconds !== 'number' || sampleCount !== 1)
    return problem(400, 'INVALID_ARGUMENT', 'durationSeconds and sampleCount need to be numbers')
  if (storageUri !== undefined && !String(storageUri).startsWith(BUCKET))
    return problem(400, 'INVALID_ARGUMENT', 'storageUri needs to name a bucket')
  return reply(200, { name: nameOf(desk.take(call, instance.prompt), model) })
}

function videoOf({ id, call }: Job): object {
  return call.body.parameters.storageUri === undefined
    ? { bytesBase64Encoded: FILM.toString('base64'), mimeType: 'video/mp4' }
    : { gcsUri: `${BUCKET}/films/${id}-1.mp4`, mimeType: 'video/mp4' }
}

function operationOf(job: Job, desk: Desk, name: string): unknown {
  const stage = desk.look(job)
  if (stage === 'queued' || stage === 'running' || stage === 'strange') return { name }
  if (stage === 'broken')
    return { name, done: true, error: { code: 13, message: 'Video generation failed.' } }
  const type = 'type.googleapis.com/cloud.ai.large_models.vision.GenerateVideoResponse'
  const made =
    stage === 'improper'
      ? { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ['The prompt violates usage guidelines.'] }
      : { raiMediaFilteredCount: 0, videos: [videoOf(job)] }
  return { name, done: true, response: { '@type': type, ...made } }
}

export const vertexDialect: Dialect = {
  areFilesClosed: true,
  isAuthorized: ({ header }) => header('authorization') === `Bearer ${KEY}`,
  unauthorized: problem(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.'),
  busy: problem(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.'),
  improper: null,
  answer(call, desk) {
    const [, model = '', method] = METHOD.exec(call.path) ?? []
    if (call.method !== 'POST' || method === undefined) return problem(404, 'NOT_FOUND', 'Not found.')
    if (method === 'predictLongRunning') return submit(call, desk, model)
    const { operationName } = call.body
    const job = desk.jobs.find((each) => operationName === nameOf(each, model))
    if (job === undefined) return problem(404, 'NOT_FOUND', 'Operation not found.')
    return reply(200, operationOf(job, desk, operationName))
  },
}
