import t from 'tap'
import { task } from '../../../src/channels/media/task/task.ts'
import {
  answerOf,
  channelOf,
  fileWith,
  followOf,
  headerOf,
  jsonOf,
  pollOf,
  REFERENCE,
  stored,
  submitOf,
} from './support.ts'

const channel = channelOf('task', 'https://studio.example/gateway')
const follow = followOf(task)
const { find } = follow
if (find === undefined) throw new Error('cannot be looked up')
const link = { work: 'transcript', url: 'https://v.example/1' }
const lipsync = {
  work: 'lipsync',
  source_video: stored('face.mp4', 'video/mp4'),
  audio: stored('words.mp3', 'audio/mpeg'),
  duration: 12,
}

t.test('a submit names the reference, and has files of the store as data URIs', async (t) => {
  const request = task.submit(channel, submitOf(lipsync))
  t.equal(request.url, 'https://studio.example/gateway/tasks')
  t.equal(headerOf(request, 'authorization'), 'Bearer k-1')
  t.equal(headerOf(request, 'accept'), 'application/json')
  t.strictSame(jsonOf(request), {
    reference: REFERENCE,
    kind: 'lipsync',
    model: 'model-1',
    input: {
      source_video: 'data:video/mp4;base64,inputs/face.mp4',
      audio: 'data:audio/mpeg;base64,inputs/words.mp3',
      duration: 12,
    },
  })
  t.equal(task.inlines, true)
})

t.test('a submit is accepted, done at once, refused, or nobody knows', async (t) => {
  const read = (status: number, body: unknown, job: object = link) =>
    task.readSubmit(answerOf(status, body), submitOf(job))
  for (const [state, isRunning] of [
    ['queued', false],
    ['running', true],
    ['cancelled', false],
    ['expired', false],
    ['resting', false],
  ] as const) {
    const accepted = { type: 'accepted', upstreamId: 't-1', isRunning, upstreamState: state }
    t.strictSame(read(200, { id: 't-1', state }), accepted)
  }
  t.match(read(200, { id: 't-1', state: 'succeeded', result: { content: 'Bread.' } }), {
    type: 'produced',
    result: { transcript: { content: 'Bread.', title: null } },
  })
  for (const [code, status, named] of [
    ['invalid_link', 400],
    ['unsupported_video', 400],
    ['no_speech', 400],
    ['asr_expired', 400],
    ['template_withdrawn', 400],
    ['content_policy', 400],
    ['quota_exhausted', 503],
    ['timeout', 504, { code: 'upstream_timeout' }],
    ['connection_failed', 502, { code: 'upstream_unreachable' }],
    ['constructor', 502],
    [7, 502],
  ] as const) {
    const body = { id: 't-1', state: 'failed', error: { code, message: 'No.' } }
    t.strictSame(read(200, body), { type: 'refused', status, message: 'No.', ...named })
  }
  t.strictSame(read(503, { error: { code: 'quota_exhausted', message: 'Later.' } }), {
    type: 'refused',
    status: 503,
    message: 'Later.',
  })
  for (const [status, code, named] of [
    [502, 'connection_failed', { code: 'upstream_unreachable' }],
    [504, 'timeout', { code: 'upstream_timeout' }],
    [500, 'generation_failed'],
  ] as const) {
    const refused = { type: 'refused', status, message: 'No.', ...named }
    t.strictSame(read(status, { error: { code, message: 'No.' } }), refused)
  }
  for (const [status, body] of [
    [200, ''],
    [200, '[]'],
    [502, { error: { code: 'timeout', message: 'bad gateway' } }],
    [504, { error: { code: 'generation_failed', message: 'gateway timeout' } }],
    [200, { state: 'queued' }],
    [200, { id: '', state: 'queued' }],
    [200, { id: 'x'.repeat(201), state: 'queued' }],
    [502, { error: { message: 'bad gateway' } }],
    [503, '<html>'],
  ] as const) {
    t.equal(read(status, body).type, 'unknown', JSON.stringify(body))
  }
})

t.test('every state is mapped, and an unknown one is recognised', async (t) => {
  const read = (body: unknown, status = 200) => follow.readPoll(answerOf(status, body), pollOf(lipsync))
  for (const [state, type] of [
    ['queued', 'queued'],
    ['running', 'running'],
    ['cancelled', 'cancelled'],
    ['expired', 'lapsed'],
    ['SUCCEEDED', 'unmapped'],
  ] as const) {
    t.strictSame(read({ id: 't-1', state }), { type, upstreamState: state })
  }
  const failed = { type: 'failed', upstreamState: 'failed' }
  t.strictSame(read({ state: 'failed', error: { code: 'no_speech', message: 'Nobody speaks.' } }), {
    ...failed,
    code: 'no_speech',
    message: 'Nobody speaks.',
  })
  t.strictSame(read({ state: 'failed' }), {
    ...failed,
    code: 'generation_failed',
    message: 'The task failed.',
  })
  const result = { video_url: 'https://studio.example/4.mp4', duration_sec: 11.64, width: 720, height: 1280 }
  t.match(read({ state: 'succeeded', result }), {
    type: 'produced',
    upstreamState: 'succeeded',
    result: {
      seconds: 11.64,
      files: [
        fileWith({ role: 'video', upstream_url: result.video_url, width: 720, height: 1280, seconds: 11.64 }),
      ],
    },
  })
  t.match(read({ state: 'succeeded', result: {} }), { type: 'failed', code: 'generation_failed' })
  for (const [body, status] of [
    [{ error: { code: 'not_found', message: 'x' } }, 404],
    [{ id: 't-1' }, 200],
    ['', 200],
    [{ state: 'failed', error: {} }, 500],
  ] as const) {
    t.equal(read(body, status).type, 'error', JSON.stringify(body))
  }
})

t.test('only the contract’s own 404 says that nothing was taken on', async (t) => {
  t.equal(
    find.request(channel, 'vid_1', pollOf({ work: 'video', content: [] }).job).url,
    'https://studio.example/gateway/tasks?reference=vid_1',
  )
  const read = (status: number, body: unknown) => find.read(answerOf(status, body))
  t.strictSame(read(404, { error: { code: 'not_found', message: 'None.' } }), {
    type: 'refused',
    status: 502,
    message: 'The upstream did not take the work on.',
  })
  t.match(read(200, { id: 't-1', state: 'running' }), {
    type: 'accepted',
    upstreamId: 't-1',
    isRunning: true,
  })
  t.match(read(200, { id: 't-1', state: 'failed', error: { code: 'timeout' } }), { type: 'accepted' })
  t.match(read(200, { id: 't-1', state: 'succeeded', result: { content: 'x' } }), { type: 'accepted' })
  for (const [status, body] of [
    [404, '<html>'],
    [404, { error: { message: 'no route' } }],
    [404, { error: 'not_found' }],
    [501, ''],
    [503, { error: { code: 'not_found' } }],
    [200, {}],
  ] as const) {
    t.equal(read(status, body).type, 'unknown', `${status} ${JSON.stringify(body)}`)
  }
})

t.test('a task is cancelled by a post without a body', async (t) => {
  t.match(follow.cancel?.(channel, pollOf(lipsync, 'a/b')), {
    method: 'POST',
    url: 'https://studio.example/gateway/tasks/a%2Fb/cancel',
    body: null,
  })
})
