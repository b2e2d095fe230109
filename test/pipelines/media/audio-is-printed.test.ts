/** What music, speech, voices and transcripts look like to clients. */
import t from 'tap'
import { musicJob, printMusic, printSubmittedMusic } from '../../../pipelines/media/audio/music.ts'
import { printSpeech, printSpeechTask, printSubmittedSpeech } from '../../../pipelines/media/audio/speech.ts'
import { printTranscript } from '../../../pipelines/media/audio/transcripts.ts'
import { printVoice } from '../../../pipelines/media/audio/voices.ts'
import { failureOf } from '../../../pipelines/media/failed-task.ts'
import { mediaJob, resultFile } from '../../../schemas/media/job.ts'
import { musicRequest, musicSubmitted, musicTask } from '../../../schemas/media/music.ts'
import { speech, speechSubmitted, speechTask } from '../../../schemas/media/speech.ts'
import { transcript, transcriptRequest } from '../../../schemas/media/transcripts.ts'
import { voiceRecord } from '../../../schemas/media/voices.ts'
import { TASK_STATES } from '../../../schemas/tasks/task.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { resultOf, SUBMITTED_AT, taskOf } from './support.ts'

const CREATED_AT = '2026-01-02T03:04:05.678Z'
const NOW = SUBMITTED_AT + 3_600_000
const DAY_MS = 24 * 60 * 60 * 1000
const UPSTREAM = 'https://upstream.example.com'
const files = {
  link: async (key: string, expiresAt: number) => `https://files.test/${key}?until=${expiresAt}`,
  permanentLink: (key: string) => `https://files.test/${key}`,
}
const file = (more: object) => resultFile.parse(more)

const songs = (more: Partial<Task> = {}) =>
  taskOf({
    id: 'mus_1',
    kind: 'music',
    model: 'songs',
    job: mediaJob.parse({ work: 'music', prompt: 'a waltz', instrumental: false }),
    upstreamState: 'PENDING',
    ...more,
  })

t.test('music in each state', async (t) => {
  const words: Record<string, string> = {
    succeeded: 'succeeded',
    failed: 'failed',
    expired: 'expired',
    cancelled: 'cancelled',
    refused: 'failed',
  }
  for (const state of TASK_STATES) {
    const printed = await printMusic(files, songs({ state }), NOW)
    t.equal(printed.status, words[state] ?? 'processing', state)
    t.strictSame(musicTask.parse(printed), printed, 'as the reference says, to the last field')
  }
  t.match(await printMusic(files, songs({ state: 'expired', endedAt: NOW }), NOW), {
    error_code: 'task_expired',
    error_message: /\w/,
    completed_at: '2026-01-02T04:04:05.678Z',
  })
  const submitted = printSubmittedMusic(songs({ state: 'succeeded' }))
  t.strictSame(submitted, { id: 'mus_1', status: 'queued', model: 'songs', created_at: CREATED_AT })
  t.strictSame(musicSubmitted.parse(submitted), submitted)
})

t.test('songs with links: signed for seven days, or the upstream’s own where a copy failed', async (t) => {
  const result = resultOf({
    files: [
      file({ role: 'audio', key: 'music/mus_1-1.mp3', track: 0 }),
      file({ role: 'cover', key: 'music/mus_1-1-cover.png', track: 0 }),
      file({ role: 'audio', upstream_url: `${UPSTREAM}/2.mp3`, track: 1 }),
    ],
    tracks: [
      { clip_id: 'c-1', title: 'Bread', lyrics: 'la', seconds: 121.3 },
      { clip_id: 'c-2', title: null, lyrics: null, seconds: null },
    ],
  })
  const until = NOW + 7 * DAY_MS
  const { tracks } = await printMusic(files, songs({ state: 'succeeded', result }), NOW)
  t.strictSame(tracks, [
    {
      clip_id: 'c-1',
      title: 'Bread',
      duration_sec: 121.3,
      audio_url: `https://files.test/music/mus_1-1.mp3?until=${until}`,
      image_url: `https://files.test/music/mus_1-1-cover.png?until=${until}`,
      lyrics: 'la',
    },
    {
      clip_id: 'c-2',
      title: null,
      duration_sec: null,
      audio_url: `${UPSTREAM}/2.mp3`,
      image_url: null,
      lyrics: null,
    },
  ])
  t.strictSame((await printMusic(files, songs({ state: 'storing', result }), NOW)).tracks, [], 'not before')
})

t.test('what is sung', async (t) => {
  const job = (more: object) => musicJob(musicRequest.parse({ model: 'songs', ...more }))
  t.match(job({ prompt: 'p', lyrics: 'l' }), { prompt: null, lyrics: 'l', instrumental: false })
  t.match(job({ prompt: 'p', lyrics: ' ' }), { prompt: 'p', lyrics: null })
  t.match(job({ prompt: 'p', lyrics: 'l', instrumental: true }), { prompt: 'p', lyrics: null })
  t.match(job({ instrumental: true }), { prompt: null, lyrics: null, instrumental: true })
  t.match(job({ prompt: 'p', title: '', tags: 'folk' }), { title: null, tags: 'folk', negative_tags: null })
})

const said = (more: Partial<Task> = {}) =>
  taskOf({
    id: 'spc_1',
    kind: 'speech',
    model: 'voice-tts-pro',
    job: mediaJob.parse({ work: 'speech', input: 'Zoë 🐈', speed: 1 }),
    cost: 62_680_000n,
    ...more,
  })
const sound = resultOf({
  files: [file({ role: 'audio', key: 'speech/spc_1.mp3' })],
  seconds: 1.2000001,
})

t.test('speech in each state', async (t) => {
  const words: Record<string, string> = { succeeded: 'succeeded' }
  for (const state of ['failed', 'expired', 'cancelled', 'refused']) words[state] = 'failed'
  for (const state of TASK_STATES) {
    const printed = printSpeechTask(files, said({ state, errorCode: state === 'refused' ? 'x' : null }))
    t.equal(printed.status, words[state] ?? 'pending', state)
    t.equal('error' in printed, words[state] === 'failed')
    t.strictSame(speechTask.parse(printed), printed, 'as the reference says, to the last field')
  }
  const done = said({ state: 'succeeded', result: sound })
  t.strictSame(printSpeechTask(files, done), {
    id: 'spc_1',
    model: 'voice-tts-pro',
    status: 'succeeded',
    characters: 5,
    duration_sec: '1.2000001',
    audio_url: 'https://files.test/speech/spc_1.mp3',
    created_at: CREATED_AT,
  })
  const whole = printSpeech(files, done)
  t.strictSame(whole, {
    model: 'voice-tts-pro',
    audio_url: 'https://files.test/speech/spc_1.mp3',
    characters: 5,
    cost_usd: '0.6268',
  })
  t.strictSame(speech.parse(whole), whole)
  const uncopied = resultOf({ files: [file({ role: 'audio', upstream_url: `${UPSTREAM}/1.mp3` })] })
  t.match(printSpeechTask(files, said({ state: 'succeeded', result: uncopied })), {
    audio_url: `${UPSTREAM}/1.mp3`,
  })
  const submitted = printSubmittedSpeech(done)
  t.match(submitted, { status: 'pending', characters: 5 }, 'a submit is answered as one')
  t.strictSame(speechSubmitted.parse(submitted), submitted)
  t.throws(() => printSpeech(files, said({ state: 'failed' })), { code: 'upstream_error', status: 502 })
  const deleted = resultOf({ files: [file({ role: 'audio' })] })
  t.throws(
    () => printSpeech(files, said({ state: 'succeeded', result: deleted })),
    { code: 'idempotency_response_not_cached', status: 409 },
    'it was said and charged, and is there no more',
  )
})

t.test('a voice in each state', async (t) => {
  const voice = (state: Task['state']) =>
    taskOf({
      id: 'voi_1',
      kind: 'voice',
      model: 'voice-clone-pro',
      job: mediaJob.parse({
        work: 'voice',
        name: 'Ada',
        audio: { from: 'url', url: 'https://example.com/a.mp3' },
      }),
      state,
    })
  for (const state of TASK_STATES) {
    const printed = printVoice(voice(state))
    const open = ['waiting', 'submitting', 'queued', 'running', 'storing'].includes(state)
    t.equal(printed.status, open ? 'pending' : state === 'succeeded' ? 'ready' : 'failed', state)
    t.strictSame(voiceRecord.parse(printed), printed)
  }
})

const words = (more: Partial<Task> = {}) =>
  taskOf({
    id: 'trn_1',
    kind: 'transcript',
    model: 'video-transcript',
    job: mediaJob.parse({ work: 'transcript', url: 'https://v.example.com/1' }),
    state: 'failed',
    endedAt: SUBMITTED_AT + 10_000,
    ...more,
  })

t.test('a transcript, with what is not known left empty', async (t) => {
  const cover = file({ role: 'cover', key: 'transcripts/trn_1-cover.jpg' })
  const facts = { title: null, platform: null, seconds: null, origin_link: null }
  const result = resultOf({ files: [cover], transcript: { content: 'Today …', ...facts } })
  const printed = await printTranscript(files, words({ state: 'succeeded', result }), NOW)
  t.strictSame(printed, {
    model: 'video-transcript',
    content: 'Today …',
    title: '',
    cover: `https://files.test/transcripts/trn_1-cover.jpg?until=${NOW + DAY_MS}`,
    platform: '',
    duration_sec: null,
    origin_link: '',
  })
  t.strictSame(transcript.parse(printed), printed)
  const removed = resultOf({ ...result, files: [{ ...cover, kept_until: NOW }] })
  t.match(await printTranscript(files, words({ state: 'succeeded', result: removed }), NOW), { cover: '' })
  const bare = resultOf({ transcript: { content: '', ...facts } })
  t.match(await printTranscript(files, words({ state: 'succeeded', result: bare }), NOW), { cover: '' })
})

t.test('why there is no transcript', async (t) => {
  const failure = (errorCode: string | null, more: Partial<Task> = {}) => {
    const { status, code } = failureOf(words({ errorCode, errorMessage: 'because', ...more }))
    return [status, code]
  }
  t.same(failure('invalid_link'), [400, 'invalid_request'])
  t.same(failure('unsupported_video'), [400, 'invalid_request'])
  t.same(failure('content_policy'), [400, 'invalid_request'])
  t.same(failure('timeout'), [504, 'upstream_timeout'])
  t.same(failure(null, { endedAt: SUBMITTED_AT + 60_000 }), [504, 'upstream_timeout'], 'its time was up')
  t.same(failure('quota_exhausted'), [503, 'service_unavailable'])
  t.same(failure('connection_failed'), [502, 'upstream_unreachable'])
  t.same(failure('generation_failed'), [502, 'upstream_error'])
})

t.test('a link by either name', async (t) => {
  for (const body of [{ url: 'x' }, { input: 'x' }, { url: '', input: 'x' }, { url: 'x'.repeat(2000) }])
    t.ok(transcriptRequest.safeParse(body).success)
  for (const body of [{}, { url: ' ' }, { url: 'x'.repeat(2001) }, { input: 7 }])
    t.notOk(transcriptRequest.safeParse(body).success)
})
