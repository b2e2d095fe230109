/** What the log shows of work that outlives its request, and what it never shows. */
import t from 'tap'
import { type CallWithDetail, logDetail } from '../../../schemas/call-log/detail.ts'
import { type MediaJob, mediaJob, type TaskResult, taskResult } from '../../../schemas/media/job.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import { detailView } from '../../../src/core/call-log/detail.ts'
import { endpointOfJob, jobLines, resultLines } from '../../../src/core/media/job-facts.ts'
import { loggedCall } from './logged-call.ts'

const SECRET = 'nobody-reads-this'
const file = { from: 'url', url: `https://example.com/${SECRET}` } as const
const line = { content: SECRET, showRange: [0, 10] } as const

/** One job of each kind of work, with the text in every place where a client or an upstream may put one. */
const JOBS: readonly unknown[] = [
  { work: 'image', prompt: SECRET, n: 3, size: '1024x768', extra: { style: SECRET } },
  { work: 'image_edit', prompt: SECRET, n: 1, images: [file, file], mask: file },
  {
    work: 'video',
    content: [
      { type: 'text', text: SECRET },
      { type: 'image', file, role: SECRET },
      { type: 'video', file },
    ],
    duration: 5,
    resolution: '720p',
    ratio: '16:9',
    extra: { style: SECRET },
  },
  { work: 'avatar_video', avatar: SECRET, voice: SECRET, text: SECRET, duration: 3 },
  { work: 'avatar_video', avatar: SECRET, audio: file, duration: 3 },
  { work: 'lipsync', source_video: file, audio: file, duration: 4.5 },
  { work: 'motion', source_video: file, portraits: [file], face_count: 1, resolution: 'max', duration: 8 },
  {
    work: 'clip_compose',
    video: file,
    asr_id: SECRET,
    video_style_id: SECRET,
    enable_title_effect: true,
    enable_caption_effect: true,
    enable_keyword_effect: false,
    title: SECRET,
    music: file,
    name_card: { name: SECRET, description: SECRET },
    sentences: [line, line],
    pip_config: [{ media: file, begin_time: 0, end_time: 1 }],
  },
  { work: 'music', prompt: null, lyrics: SECRET, title: SECRET, tags: SECRET, instrumental: false },
  { work: 'speech', input: SECRET, voice: SECRET, speed: 1.5 },
  { work: 'voice', name: SECRET, audio: file },
  { work: 'avatar', name: SECRET, source: file, source_kind: 'image' },
  { work: 'transcript', url: SECRET },
  { work: 'subtitle', video: file },
]

const RESULT: TaskResult = taskResult.parse({
  files: [
    { role: 'audio', key: 'music/mus_1-1.mp3', seconds: 120, track: 0 },
    { role: 'audio', upstream_url: `https://example.com/${SECRET}`, track: 1 },
    { role: 'cover', key: 'music/mus_1-1-cover.png', width: 512, height: 512, track: 0 },
  ],
  tracks: [{ clip_id: SECRET, title: SECRET, lyrics: SECRET }],
  made_id: SECRET,
  segments: [line],
  transcript: { content: SECRET, title: SECRET },
})

t.test('no text of a client, no name and no link is shown', async (t) => {
  for (const raw of JOBS) {
    const job: MediaJob = mediaJob.parse(raw)
    t.notMatch(JSON.stringify([endpointOfJob(job), jobLines(job)]), SECRET, job.work)
  }
  t.notMatch(JSON.stringify(resultLines(RESULT)), SECRET)
})

t.test('what shaped a job and its result are shown', async (t) => {
  const told = (raw: unknown) => Object.fromEntries(jobLines(mediaJob.parse(raw)))
  t.same(told(JOBS[0]), { images: '3', size: '1024x768', prompt_characters: String(SECRET.length) })
  t.same(told(JOBS[1]), { images: '1', input_images: '2', mask: 'true', prompt_characters: '17' })
  t.match(told(JOBS[2]), { duration_sec: '5', resolution: '720p', input_images: '1', input_videos: '1' })
  const film = (more: object = {}) => mediaJob.parse({ work: 'video', content: [], ...more })
  t.same(jobLines(film(), true), [['generate_audio', 'by default']])
  t.same(jobLines(film({ generate_audio: false })), [['generate_audio', 'false']])
  t.same(jobLines(film()), [])
  t.match(told(JOBS[9]), { characters: '17', speed: '1.5', voice: 'chosen' })
  t.equal(told({ work: 'image', prompt: '', n: 1, size: '9'.repeat(100) }).size?.length, 64, 'cut')
  t.same(Object.fromEntries(resultLines(RESULT)), {
    sounds: '2',
    covers: '1',
    lines: '1',
    not_copied: "1: the upstream's own links are handed out",
  })
  t.same(resultLines(null), [])
  const sums = taskResult.parse({ seconds: 0.07200000000000001, input_seconds: 12 })
  t.same(
    Object.fromEntries(resultLines(sums)),
    { seconds: '0.072', input_seconds: '12' },
    'to the millisecond',
  )
  t.equal(endpointOfJob(mediaJob.parse({ work: 'image', prompt: '', n: 1, images: [file] })), undefined)
})

const CALL = loggedCall({
  model: 'demo-music',
  unit_count: '1',
  unit_type: 'music',
  cost: '19.41',
  task_id: 'mus_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
  protocol: 'music',
  estimate: '19.41',
  detail: JSON.stringify({
    endpoint: '/v1/music/generations',
    request: [['instrumental', 'true']],
    result: [['sounds', '2']],
    before_upstream_us: 1500,
    waiting_for_upstream_us: 98_500,
    charge: '1 generation x 19.41 = 19.41',
  }),
})

t.test('a row of a task is laid out', async (t) => {
  const laid = (more: Partial<CallWithDetail> = {}) => logDetail.parse(detailView({ ...CALL, ...more }))
  t.same(laid(), {
    id: 7,
    kind: 'music',
    request: [
      { k: 'endpoint', v: 'POST /v1/music/generations' },
      { k: 'protocol', v: 'music' },
      { k: 'model', v: 'demo-music' },
      { k: 'instrumental', v: 'true' },
    ],
    upstream: [{ k: 'sounds', v: '2' }],
    gateway: [
      { k: 'request_id', v: CALL.request_id },
      { k: 'task_id', v: CALL.task_id },
      { k: 'status', v: 'success' },
      { k: 'estimate', v: '19.41' },
      { k: 'unit_type', v: 'music' },
      { k: 'unit_count', v: '1' },
      { k: 'charge', v: '1 generation x 19.41 = 19.41' },
      { k: 'cost', v: '19.41' },
      { k: 'time_before_submit_ms', v: '1.5' },
      { k: 'time_submitting_ms', v: '98.5' },
      { k: 'time_from_submit_to_end_ms', v: '1900' },
      { k: 'time_total_ms', v: '2000' },
    ],
    request_note: '',
  })
  const attempt = (seq: number, error: string | null) => ({
    seq,
    created_at: CALL.created_at,
    latency_ms: 10,
    error_code: error,
    error_message: error && 'busy at acme-eu',
  })
  const refused = laid({
    status: 'rejected',
    cost: '0',
    error_code: 'invalid_request',
    error_message: 'No such style',
    attempts_count: 2,
    attempts: [attempt(1, 'upstream_error'), attempt(2, 'invalid_request')],
  })
  t.match(refused.upstream, [
    { k: 'attempts', v: '2' },
    { k: 'attempt_1', v: /^10 ms: upstream_error, busy at (?!acme)/ },
    { k: 'attempt_2', v: /^10 ms: invalid_request/ },
    { k: 'sounds' },
  ])
  t.equal(refused.request_note, 'Refused by the upstream (invalid_request): No such style. It cost nothing.')
  const failed = laid({
    status: 'error',
    cost: '0',
    error_code: 'task_failed',
    attempts: [attempt(1, 'upstream_error'), attempt(2, null)],
  })
  t.match(
    failed.upstream[2],
    { k: 'attempt_2', v: '10 ms: answered' },
    'the submit went well, the work did not',
  )
})

t.test('kinds are those of visible results', async (t) => {
  const kindOf = (kind: keyof typeof TASK_RULES) =>
    detailView({ ...CALL, unit_type: TASK_RULES[kind].unitType }).kind
  t.same(
    (['image', 'video', 'music', 'speech', 'avatar', 'voice', 'transcript', 'subtitle'] as const).map(kindOf),
    ['image', 'video', 'music', 'audio', null, null, null, null],
  )
})
