/** What tasks look like to polling clients. */
import { lastValueFrom, throwError } from 'rxjs'
import t from 'tap'
import { addReplyHeaders } from '../../../pipelines/calls/replies.ts'
import { failureOf } from '../../../pipelines/media/failed-task.ts'
import { printAvatar } from '../../../pipelines/media/videos/avatars.ts'
import { printSubtitles, printSubtitleTask } from '../../../pipelines/media/videos/clips.ts'
import { printSubmittedVideo, printVideo, VIDEO_LINK_MS } from '../../../pipelines/media/videos/task.ts'
import { avatarRecord } from '../../../schemas/media/avatars.ts'
import { clipSubtitles, clipSubtitleTask } from '../../../schemas/media/clips.ts'
import { videoSubmitted, videoTask } from '../../../schemas/media/videos.ts'
import { TASK_STATES } from '../../../schemas/tasks/task.ts'
import { fileOf, resultOf, STATUSES, SUBMITTED_AT, taskOf } from './support.ts'

const CREATED_AT = Math.floor(SUBMITTED_AT / 1000)
const NOW = SUBMITTED_AT + 3_600_000
const files = {
  link: async (key: string, expiresAt: number) => `https://files.test/${key}?until=${expiresAt}`,
}

t.test('a video in each state', async (t) => {
  for (const state of TASK_STATES) {
    const printed = await printVideo(files, taskOf({ state }), NOW)
    t.equal(printed.status, STATUSES[state] ?? state, state)
    t.strictSame(videoTask.parse(printed), printed, 'as the reference says, to the last field')
  }
  const submitted = printSubmittedVideo(taskOf({ state: 'running' }))
  t.match(submitted, { status: 'queued', created_at: CREATED_AT }, 'a submit is answered as one')
  t.strictSame(videoSubmitted.parse(submitted), submitted)
})

t.test('a video that is done: its link is signed when it is asked for', async (t) => {
  const video = fileOf({ key: 'videos/vid_1.mp4', seconds: 5 })
  const task = taskOf({
    state: 'succeeded',
    result: resultOf({ files: [video], seconds: 4.5, input_seconds: 6 }),
  })
  const { id } = task
  const facts = { id, status: 'succeeded' as const, model: 'film', created_at: CREATED_AT }
  const printed = await printVideo(files, task, NOW)
  t.strictSame(printed, {
    ...facts,
    video_url: `https://files.test/videos/vid_1.mp4?until=${NOW + VIDEO_LINK_MS}`,
    expires_at: Math.floor((NOW + VIDEO_LINK_MS) / 1000),
    duration_sec: 4.5,
    input_video_duration_sec: 6,
  })
  const later = await printVideo(files, task, NOW + 8 * VIDEO_LINK_MS)
  t.ok(later.expires_at! > printed.expires_at!, 'with a fresh signature later')

  const link = 'https://upstream.example.com/out.mp4'
  const uncopied = resultOf({ files: [fileOf({ upstream_url: link })] })
  t.strictSame(
    await printVideo(files, taskOf({ ...task, result: uncopied }), NOW),
    { ...facts, video_url: link, expires_at: null },
    "the upstream's own link, for as long as that may open",
  )
})

t.test('why there is no video', async (t) => {
  const words = { errorCode: 'content_policy', errorMessage: 'Not fit to be shown.' }
  const error = { code: 'content_policy', message: 'Not fit to be shown.' }
  t.match(await printVideo(files, taskOf({ state: 'failed', ...words }), NOW), { status: 'failed', error })
  for (const state of ['failed', 'expired', 'cancelled'] as const)
    t.match(await printVideo(files, taskOf({ state }), NOW), {
      error: { code: `task_${state}`, message: String },
    })
})

t.test('an avatar', async (t) => {
  const source = { from: 'url', url: 'https://example.com/ada.png' } as const
  const job = { work: 'avatar', name: 'Ada', source, source_kind: 'image' } as const
  const print = (more: object) => printAvatar(taskOf({ kind: 'avatar', job, ...more }))
  t.strictSame(print({ id: 'ava_1', state: 'running' }), {
    id: 'ava_1',
    name: 'Ada',
    source_kind: 'image',
    status: 'pending',
    error: null,
    created_at: '2026-01-02T03:04:05.678Z',
  })
  t.match(print({ state: 'succeeded' }), { status: 'ready', error: null })
  const failed = print({ state: 'failed', errorCode: 'invalid_input', errorMessage: 'No face is in it.' })
  t.match(failed, { status: 'failed', error: 'No face is in it.' })
  t.strictSame(avatarRecord.parse(failed), failed)
  t.throws(() => printAvatar(taskOf()), /makes no avatar/)
})

t.test('a recognition', async (t) => {
  const segments = [{ content: 'Good morning.', showRange: [0, 1840] as [number, number] }]
  const facts = { id: 'asr_1', kind: 'subtitle', model: 'clip-subtitle' } as const
  const done = taskOf({ ...facts, state: 'succeeded', result: resultOf({ segments, made_id: 'asr-5512' }) })
  const answer = printSubtitles(done)
  t.strictSame(answer, {
    model: 'clip-subtitle',
    api_version: 'old',
    asr_id: 'asr_1',
    segments,
    sentences: segments,
  })
  t.strictSame(clipSubtitles.parse(answer), answer)
  t.match(printSubtitleTask(done), {
    id: 'asr_1',
    status: 'succeeded',
    asr_id: 'asr_1',
    segments,
    error: null,
  })
  const running = printSubtitleTask(taskOf({ ...facts, state: 'queued' }))
  t.match(running, { status: 'running', segments: { length: 0 }, sentences: { length: 0 }, error: null })
  const failed = printSubtitleTask(taskOf({ ...facts, state: 'failed' }))
  t.match(failed, { status: 'failed', error: { code: 'task_failed' } })
  for (const printed of [running, failed]) t.strictSame(clipSubtitleTask.parse(printed), printed)
})

t.test('a client that waited for a failed task gets the error in the status', async (t) => {
  const failure = (more: object) => failureOf(taskOf({ state: 'failed', endedAt: NOW, ...more }))
  const deadlineAt = NOW
  t.match(failure({ deadlineAt }), { status: 504, code: 'upstream_timeout' })
  t.match(failure({ state: 'expired' }), { status: 504, code: 'upstream_timeout' })
  const early = { deadlineAt: NOW + 1 }
  for (const [errorCode, status, code] of [
    ['no_speech', 400, 'invalid_request'],
    ['content_policy', 400, 'invalid_request'],
    ['rate_limited', 429, 'rate_limit_exceeded'],
    ['generation_failed', 502, 'upstream_error'],
    ['something_else', 502, 'upstream_error'],
    ['quota_exhausted', 503, 'service_unavailable'],
    ['timeout', 504, 'upstream_timeout'],
  ] as const)
    t.match(
      failure({ ...early, errorCode, errorMessage: 'Words.' }),
      { status, code, message: 'Words.' },
      errorCode,
    )
  const limited = failure({ ...early, errorCode: 'rate_limited', errorMessage: 'Busy.' })
  await t.rejects(
    lastValueFrom(throwError(() => limited).pipe(addReplyHeaders([['x-ratelimit-remaining', '7']]))),
    limited,
    "a limit of the upstream has no headers of the account's",
  )
  t.match(
    failure({ deadlineAt, errorCode: 'no_speech' }),
    { status: 400 },
    'a reason counts more than the hour',
  )
})
