/** Answers of media: how they are printed, kept alive, and opened by link. */
import { randomBytes } from 'node:crypto'
import { readdirSync, readlinkSync } from 'node:fs'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { lastValueFrom, Observable, Subject, throwError } from 'rxjs'
import t, { type Test } from 'tap'
import { addReplyHeaders } from '../../../pipelines/calls/replies.ts'
import { buildMusicJob, printMusic, printSubmittedMusic } from '../../../pipelines/media/audio/music.ts'
import { printSpeech, printSpeechTask, printSubmittedSpeech } from '../../../pipelines/media/audio/speech.ts'
import { printTranscript } from '../../../pipelines/media/audio/transcripts.ts'
import { printVoice } from '../../../pipelines/media/audio/voices.ts'
import { toTaskFailure } from '../../../pipelines/media/failed-task.ts'
import { files } from '../../../pipelines/media/files/files.ts'
import { printImages, printImageTask, printSubmittedImages } from '../../../pipelines/media/images/answers.ts'
import { withKeepAlive } from '../../../pipelines/media/kept-alive.ts'
import { printAvatar } from '../../../pipelines/media/videos/avatars.ts'
import { printSubtitles, printSubtitleTask } from '../../../pipelines/media/videos/clips.ts'
import { printSubmittedVideo, printVideo, VIDEO_LINK_MS } from '../../../pipelines/media/videos/task.ts'
import { chooseRetentionMs, isThere } from '../../../pipelines/tasks/store/result-files.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { avatarRecord } from '../../../schemas/media/avatars.ts'
import { clipSubtitles, clipSubtitleTask } from '../../../schemas/media/clips.ts'
import { imageAnswer, imageSubmitted, imageTask } from '../../../schemas/media/images.ts'
import { mediaJob, resultFile, trackFacts } from '../../../schemas/media/job.ts'
import { musicRequest, musicSubmitted, musicTask } from '../../../schemas/media/music.ts'
import { speech, speechSubmitted, speechTask } from '../../../schemas/media/speech.ts'
import { transcript, transcriptRequest } from '../../../schemas/media/transcripts.ts'
import { videoSubmitted, videoTask } from '../../../schemas/media/videos.ts'
import { voiceRecord } from '../../../schemas/media/voices.ts'
import { TASK_STATES } from '../../../schemas/tasks/task.ts'
import { fileLinks, linkKey } from '../../../src/core/media/file-link.ts'
import type { Reply } from '../../../src/http/handler.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { HOST, RawClient, serve, until } from '../../src/http/support.ts'
import { bucketStore, folderStore, MASTER_KEY, PUBLIC_URL } from '../../src/storage/support.ts'
import { fileOf, resultOf, STATUSES, SUBMITTED_AT, taskOf } from './support.ts'

t.test('answers are kept alive', async (t) => {
  // An image answer that takes its time.
  const AT_ONCE = { afterMs: 0, everyMs: 1 }
  const NEVER = { afterMs: 60_000, everyMs: 60_000 }
  const FULL: Reply = { type: 'full', status: 201, headers: [['x-own', '1']], body: '{"data":[]}' }

  /** Everything that comes of it. */
  function watched(replies: Observable<Reply>) {
    const seen: Reply[] = []
    const ends: unknown[] = []
    const subscription = replies.subscribe({
      next: (reply) => seen.push(reply),
      error: (error) => ends.push(error),
      complete: () => ends.push('complete'),
    })
    return { seen, ends, subscription }
  }

  const bodyOf = (replies: readonly Reply[]): string =>
    replies.map((reply) => (reply.type === 'data' ? String(reply.bytes) : '')).join('')

  async function begun(t: Test, source: Subject<Reply>) {
    const { seen, ends } = watched(source.pipe(withKeepAlive((error) => `{"error":"${error}"}`, AT_ONCE)))
    await until(() => seen.length >= 4)
    const [head, ...spaces] = seen
    t.match(head, { type: 'head', status: 200, headers: [['content-type', /^application\/json/]] })
    t.match(bodyOf(spaces), /^ {3,}$/)
    return { seen, ends }
  }

  t.test('one that comes in time is as it was', async (t) => {
    const source = new Subject<Reply>()
    const { seen, ends } = watched(source.pipe(withKeepAlive(() => '', NEVER)))
    source.next(FULL)
    source.complete()
    t.strictSame(seen, [FULL])
    t.strictSame(ends, ['complete'])
    const failed = watched(
      new Observable<Reply>((subscriber) => subscriber.error('why')).pipe(withKeepAlive(() => '', NEVER)),
    )
    t.strictSame([failed.seen, failed.ends], [[], ['why']], 'and so is an error')
  })

  t.test('one that comes late follows spaces, under a 200', async (t) => {
    const source = new Subject<Reply>()
    const { seen, ends } = await begun(t, source)
    source.next(FULL)
    source.complete()
    t.match(bodyOf(seen), /^ {3,}\{"data":\[\]\}$/)
    t.strictSame(JSON.parse(bodyOf(seen)), { data: [] })
    t.strictSame(ends, ['complete'])
    const { length } = seen
    await new Promise((resolve) => setTimeout(resolve, 5))
    t.equal(seen.length, length, 'and nothing follows it')
  })

  t.test('a failure that comes late is reported in the body', async (t) => {
    const source = new Subject<Reply>()
    const { seen, ends } = await begun(t, source)
    source.error('why')
    t.strictSame(JSON.parse(bodyOf(seen)), { error: 'why' })
    t.strictSame(ends, ['complete'], 'the answer is whole')
  })

  t.test('a client that leaves ends the work, and the spaces', async (t) => {
    const source = new Subject<Reply>()
    const { seen, subscription } = watched(source.pipe(withKeepAlive(() => '', AT_ONCE)))
    await until(() => seen.length >= 2)
    subscription.unsubscribe()
    t.equal(source.observed, false)
    const { length } = seen
    await new Promise((resolve) => setTimeout(resolve, 5))
    t.equal(seen.length, length)
  })
})

t.test('audio is printed', async (t) => {
  // What music, speech, voices and transcripts look like to clients.
  const CREATED_AT = '2026-01-02T03:04:05.678Z'
  const NOW = SUBMITTED_AT + 3_600_000
  const DAY_MS = 24 * 60 * 60 * 1000
  const UPSTREAM = 'https://upstream.example.com'
  const files = {
    makeLink: async (key: string, expiresAt: number) => `https://files.test/${key}?until=${expiresAt}`,
    makePermanentLink: (key: string) => `https://files.test/${key}`,
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
    const job = (more: object) => buildMusicJob(musicRequest.parse({ model: 'songs', ...more }))
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
      const { status, code } = toTaskFailure(words({ errorCode, errorMessage: 'because', ...more }))
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
})

t.test('images are printed', async (t) => {
  // What images and their tasks look like to their account.
  const CREATED_AT = Math.floor(SUBMITTED_AT / 1000)
  const ENDED_AT = SUBMITTED_AT + 5_000
  const EXPIRES_AT = ENDED_AT + 24 * 60 * 60 * 1000
  const THEIRS = 'https://upstream.test/2.png'
  const LARGE_BYTES = 97 * 1024 * 1024

  /** A store with one picture, one that is too large for an answer, and nothing else. */
  const files = {
    makeLink: async (key: string, expiresAt: number) => `https://files.test/${key}?until=${expiresAt}`,
    async get(key: string) {
      if (key === 'images/gone.png') return null
      const bytes = Buffer.from(key)
      const length = key === 'images/large.png' ? LARGE_BYTES : bytes.length
      return { bytes: length, mediaType: 'image/png', stream: Readable.from([bytes]) }
    },
  }
  const linkTo = (key: string) => ({ url: `https://files.test/${key}?until=${EXPIRES_AT}` })
  const inline = (key: string) => ({ b64_json: Buffer.from(key).toString('base64') })

  const imagesOf = (more: Partial<Task>): Task =>
    taskOf({
      kind: 'image',
      model: 'sketch',
      job: mediaJob.parse({ work: 'image', prompt: 'a kite', n: 2 }),
      ...more,
    })

  const made = (...places: readonly string[]): Task =>
    imagesOf({
      state: 'succeeded',
      endedAt: ENDED_AT,
      result: resultOf({
        files: places.map((place) =>
          fileOf({ role: 'image', ...(place === THEIRS ? { upstream_url: place } : { key: place }) }),
        ),
      }),
    })

  t.test('a task in each state', async (t) => {
    for (const state of TASK_STATES) {
      const printed = await printImageTask(files, imagesOf({ state, errorCode: 'x', errorMessage: 'y' }))
      t.equal(printed.status, STATUSES[state] ?? state, state)
      t.strictSame(imageTask.parse(printed), printed, 'as the reference says, to the last field')
      const isBad = ['failed', 'expired', 'cancelled', 'refused'].includes(state)
      t.strictSame(printed.error, isBad ? { code: 'x', message: 'y' } : undefined)
    }
    const expired = await printImageTask(files, imagesOf({ state: 'expired' }))
    t.match(expired.error, { code: 'task_expired', message: /in time/ })
    const submitted = printSubmittedImages(imagesOf({ state: 'running' }))
    t.match(submitted, { object: 'image.task', status: 'queued', created_at: CREATED_AT })
    t.strictSame(imageSubmitted.parse(submitted), submitted)
  })

  t.test('a task that is done: links open for a day from then on, however late they are read', async (t) => {
    const task = made('images/1.png', THEIRS)
    t.strictSame(await printImageTask(files, task), {
      id: task.id,
      object: 'image.task',
      model: 'sketch',
      status: 'succeeded',
      created_at: CREATED_AT,
      data: [linkTo('images/1.png'), { url: THEIRS }],
      expires_at: Math.floor(EXPIRES_AT / 1000),
    })
    t.match(await printImageTask(files, made(THEIRS)), { data: [{ url: THEIRS }], expires_at: null })
  })

  t.test('images in the answer itself', async (t) => {
    const answer = await printImages(files, made('images/1.png', 'images/2.png'), true)
    t.strictSame(answer, {
      created: CREATED_AT,
      model: 'sketch',
      data: [inline('images/1.png'), inline('images/2.png')],
    })
    t.strictSame(imageAnswer.parse(answer), answer)
    const mixed = await printImages(files, made('images/large.png', THEIRS, 'images/3.png'), true)
    const expected = [linkTo('images/large.png'), { url: THEIRS }, inline('images/3.png')]
    t.strictSame(mixed.data, expected, 'what cannot be in it is a link')
    await t.rejects(printImages(files, made('images/gone.png'), true), {
      code: 'idempotency_response_not_cached',
      status: 409,
    })
    const linked = await printImages(files, made('images/gone.png'), false)
    t.strictSame(linked.data, [linkTo('images/gone.png')])
  })

  t.test('images that cannot be read at the moment', async (t) => {
    const away = async () => {
      throw new Error('connect ECONNREFUSED 10.0.0.5:9000')
    }
    async function* failing() {
      yield Buffer.from('half')
      throw new Error('socket hang up')
    }
    const cut = async () => ({ bytes: 9, mediaType: 'image/png', stream: Readable.from(failing()) })
    for (const get of [away, cut])
      await t.rejects(printImages({ ...files, get }, made('images/a.png'), true), {
        code: 'service_unavailable',
        status: 503,
      })
  })

  t.test('images whose time is over: none in the task, and no answer to a repeated request', async (t) => {
    const removed = fileOf({ role: 'image', key: 'images/1.png', kept_until: EXPIRES_AT })
    const task = imagesOf({ state: 'succeeded', endedAt: ENDED_AT, result: resultOf({ files: [removed] }) })
    const expired = { data: { length: 0 }, expires_at: Math.floor(EXPIRES_AT / 1000) }
    t.match(await printImageTask(files, task), expired)
    for (const isInline of [true, false])
      await t.rejects(printImages(files, task, isInline), { code: 'idempotency_response_not_cached' })
  })
})

t.test('videos avatars and clips are printed', async (t) => {
  // What tasks look like to polling clients.
  const CREATED_AT = Math.floor(SUBMITTED_AT / 1000)
  const NOW = SUBMITTED_AT + 3_600_000
  const files = {
    makeLink: async (key: string, expiresAt: number) => `https://files.test/${key}?until=${expiresAt}`,
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
    const failure = (more: object) => toTaskFailure(taskOf({ state: 'failed', endedAt: NOW, ...more }))
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
})

t.test('files are kept for their time', async (t) => {
  // How long files of a task are kept, and what its account reads once they are gone.
  const DAY_MS = 24 * 60 * 60 * 1000
  const NOW = Date.now()
  const files = {
    makeLink: async (key: string, expiresAt: number) => `https://files/${key}?until=${expiresAt}`,
    makePermanentLink: (key: string) => `https://files/${key}`,
    get: async () => null,
  }

  t.test('by default films and songs outlive their last link by 30 days, and speech stays', async (t) => {
    t.equal(configFile.parse({}).storage.retention_days, null)
    t.equal(chooseRetentionMs('video', null), 37 * DAY_MS)
    t.equal(chooseRetentionMs('music', null), 37 * DAY_MS)
    t.equal(chooseRetentionMs('speech', null), null)
    t.equal(chooseRetentionMs('image', null), DAY_MS)
  })

  t.test('an operator sets the days of films, songs and speech; not below the life of a link', async (t) => {
    for (const kind of ['video', 'music', 'speech'] as const)
      t.equal(chooseRetentionMs(kind, 90), 90 * DAY_MS)
    t.equal(chooseRetentionMs('image', 90), DAY_MS)
    t.equal(chooseRetentionMs('avatar', 90), null, 'what goes on being used is kept')
    t.equal(configFile.safeParse({ storage: { retention_days: 6 } }).success, false)
    t.equal(configFile.safeParse({ storage: { retention_days: 7 } }).success, true)
  })

  t.test('a file is there until its time is over, or its owner deletes it', async (t) => {
    t.ok(isThere(fileOf({ key: 'a' }), NOW))
    t.ok(isThere(fileOf({ key: 'a', kept_until: NOW + 1 }), NOW))
    t.notOk(isThere(fileOf({ key: 'a', kept_until: NOW }), NOW))
    t.ok(isThere(fileOf({ upstream_url: 'https://a.example/a.mp4' }), NOW))
    t.notOk(isThere(fileOf({}), NOW))
  })

  t.test('a link never outlives its file, and of a file that is gone there is none', async (t) => {
    const video = (kept_until: number) =>
      taskOf({ state: 'succeeded', result: resultOf({ files: [fileOf({ key: 'v.mp4', kept_until })] }) })
    const soon = NOW + DAY_MS
    t.match(await printVideo(files, video(soon), NOW), {
      video_url: `https://files/v.mp4?until=${soon}`,
      expires_at: Math.floor(soon / 1000),
    })
    const gone = await printVideo(files, video(NOW), NOW)
    t.match(gone, { status: 'succeeded' })
    t.notOk('video_url' in gone)

    const song = (kept_until: number) =>
      taskOf({
        kind: 'music',
        state: 'succeeded',
        result: resultOf({
          files: [fileOf({ role: 'audio', key: 's.mp3', track: 0, kept_until })],
          tracks: [trackFacts.parse({ clip_id: 'c' })],
        }),
      })
    t.match((await printMusic(files, song(soon), NOW)).tracks, [{ audio_url: /until/ }])
    t.same((await printMusic(files, song(NOW), NOW)).tracks, [])

    const speech = (kept_until: number) =>
      taskOf({
        kind: 'speech',
        job: mediaJob.parse({ work: 'speech', input: 'hi', voice: null, speed: 1 }),
        state: 'succeeded',
        result: resultOf({ files: [fileOf({ role: 'audio', key: 's.mp3', kept_until })] }),
      })
    t.match(printSpeechTask(files, speech(soon)), { audio_url: 'https://files/s.mp3' })
    t.notOk('audio_url' in printSpeechTask(files, speech(NOW - 1)))

    const images = taskOf({
      kind: 'image',
      state: 'succeeded',
      result: resultOf({ files: [fileOf({ role: 'image' })] }),
    })
    t.match(await printImageTask(files, images), { status: 'succeeded', data: { length: 0 } })
  })
})

t.test('files open by link alone', async (t) => {
  const fileLinkKey = linkKey(MASTER_KEY)
  const DAY_MS = 24 * 60 * 60 * 1000
  const FILM_BYTES = 300_000
  const FILM = randomBytes(FILM_BYTES)
  const film = { mediaType: 'video/mp4', maxBytes: 64 * 1024 * 1024 }

  /** Of this process, below a folder. */
  const openFiles = (folder: string): number =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder)
      } catch {
        return false
      }
    }).length

  interface Got {
    readonly status: number
    readonly headers: Headers
    readonly bytes: Buffer
  }

  /** As an import names the file that a page was made from. */
  const SOURCE = `sources/kb_1/${'0a'.repeat(32)}-handbook.pdf`

  async function served(t: Test, store: ObjectStore, now?: () => number) {
    const answer = files({ files: store, fileLinkKey, ...(now ? { now } : {}) })
    const { port, unforeseen } = await serve(t, {
      'GET /files/{key*}': answer,
      'HEAD /files/{key*}': answer,
    })
    const local = (link: string) => link.replace(PUBLIC_URL, `http://${HOST}:${port}`)
    const get = async (link: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Got> => {
      const response = await fetch(local(link), { headers, method, redirect: 'manual' })
      const bytes = Buffer.from(await response.arrayBuffer())
      return { status: response.status, headers: response.headers, bytes }
    }
    return { get, local, port, unforeseen }
  }

  async function withFilm(t: Test, now?: () => number) {
    const { store, folder } = await folderStore(t)
    await store.put('videos/film.mp4', FILM, film)
    return { store, folder, ...(await served(t, store, now)) }
  }

  t.test('a link opens: all of the file, its type, its length', async (t) => {
    const { get, store } = await withFilm(t)
    for (const link of [
      await store.makeLink('videos/film.mp4', Date.now() + DAY_MS),
      store.makePermanentLink('videos/film.mp4'),
    ]) {
      const { status, headers, bytes } = await get(link)
      t.equal(status, 200)
      t.ok(bytes.equals(FILM))
      t.match(Object.fromEntries(headers), {
        'content-type': 'video/mp4',
        'content-length': String(FILM_BYTES),
        'content-disposition': 'inline; filename="film.mp4"',
        'accept-ranges': 'bytes',
        'x-content-type-options': 'nosniff',
        'cache-control': /^private, max-age=8\d{4}$/,
        'x-gateway-trace': /^req_/,
      })
    }
  })

  t.test('HEAD says the same without the body', async (t) => {
    const { get, store } = await withFilm(t)
    const link = store.makePermanentLink('videos/film.mp4')
    const whole = await get(link)
    const { status, headers, bytes } = await get(link, {}, 'HEAD')
    t.equal(status, 200)
    t.equal(bytes.length, 0)
    for (const name of ['content-type', 'content-length', 'etag', 'content-disposition'])
      t.equal(headers.get(name), whole.headers.get(name), name)
  })

  t.test('parts of it', async (t) => {
    const { get, store } = await withFilm(t)
    const link = store.makePermanentLink('videos/film.mp4')
    const parts: ReadonlyArray<readonly [string, number, number]> = [
      ['bytes=0-0', 0, 0],
      ['bytes=0-65535', 0, 65_535],
      ['bytes=1000-', 1000, FILM_BYTES - 1],
      ['bytes=-500', FILM_BYTES - 500, FILM_BYTES - 1],
      ['bytes=-9000000', 0, FILM_BYTES - 1],
      ['bytes=299999-400000', 299_999, 299_999],
    ]
    for (const [range, first, last] of parts) {
      const { status, headers, bytes } = await get(link, { range })
      t.equal(status, 206, range)
      t.equal(headers.get('content-range'), `bytes ${first}-${last}/${FILM_BYTES}`)
      t.ok(bytes.equals(FILM.subarray(first, last + 1)), range)
    }
    for (const range of ['bytes=5-1', 'bytes=-', 'bytes=0-1,5-6', 'lines=1-2', 'bytes=a-b'])
      t.equal((await get(link, { range })).status, 200, `${range} is not understood: all of it`)
    for (const range of ['bytes=300000-', 'bytes=300000-300001', 'bytes=-0']) {
      const { status, headers, bytes } = await get(link, { range })
      t.equal(status, 416, range)
      t.equal(headers.get('content-range'), `bytes */${FILM_BYTES}`)
      t.match(JSON.parse(String(bytes)), { error: { code: 'invalid_request', message: /300000 bytes/ } })
    }
  })

  t.test('what a client has already is not sent again; a part of something else is no part', async (t) => {
    const { get, store } = await withFilm(t)
    const link = store.makePermanentLink('videos/film.mp4')
    const etag = (await get(link)).headers.get('etag') ?? ''
    for (const known of [etag, `"x", W/${etag}`, '*']) {
      const { status, bytes } = await get(link, { 'if-none-match': known })
      t.equal(status, 304, known)
      t.equal(bytes.length, 0)
    }
    t.equal((await get(link, { 'if-none-match': '"other"' })).status, 200)
    t.equal((await get(link, { range: 'bytes=0-9', 'if-range': etag })).status, 206)
    t.equal((await get(link, { range: 'bytes=0-9', 'if-range': '"other"' })).status, 200)
  })

  t.test('a link ends with its instant, and is good for nothing else', async (t) => {
    let now = 1_800_000_000_000
    const { get, store } = await withFilm(t, () => now)
    await store.put('videos/other.mp4', Buffer.from('other'), film)
    const link = await store.makeLink('videos/film.mp4', now + DAY_MS)
    const permanent = store.makePermanentLink('videos/film.mp4')
    const refusal = async (url: string) => {
      const { status, bytes } = await get(url)
      return { status, ...JSON.parse(String(bytes)).error }
    }
    now += DAY_MS - 1
    t.match((await get(link)).headers.get('cache-control'), 'private, max-age=0')
    now += 1
    t.match(await refusal(link), { status: 403, code: 'permission_denied', message: /expired.*fresh one/ })
    t.equal((await get(permanent)).status, 200)
    now -= DAY_MS
    const forged = [
      link.replace('film.mp4', 'other.mp4'),
      link.replace(/expires=\d+/, (text) => `${text}0`),
      link.replace(/expires=\d+&/, ''),
      link.replace(/signature=.*/, ''),
      link.replace(/(signature=.*)./, '$1'),
      `${link}A`,
      link.replace(/signature=.*/, `signature=${'A'.repeat(43)}`),
      permanent.replace('?', '?expires=9999999999&'),
      permanent.replace('film.mp4', 'other.mp4'),
      fileLinks(PUBLIC_URL, linkKey(randomBytes(32))).print('videos/film.mp4', null),
      `${PUBLIC_URL}/files/a?signature=x`,
    ]
    for (const url of forged)
      t.match(await refusal(url), { status: 403, code: 'permission_denied', message: /not valid/ }, url)
    t.match(await refusal(store.makePermanentLink('videos/gone.mp4')), { status: 404, code: 'not_found' })
  })

  t.test('what a browser might run is a download; an empty file is one too', async (t) => {
    const { get, store } = await withFilm(t)
    await store.put('inputs/page', Buffer.from('<script>'), { ...film, mediaType: 'text/html' })
    await store.put('images/none.png', Buffer.alloc(0), { ...film, mediaType: 'image/png' })
    const page = await get(store.makePermanentLink('inputs/page'))
    t.equal(page.headers.get('content-disposition'), 'attachment; filename="page"')
    t.match(page.headers.get('content-security-policy'), 'sandbox')
    await store.put(SOURCE, Buffer.from('%PDF-'), { ...film, mediaType: 'application/pdf' })
    const { headers } = await get(store.makePermanentLink(SOURCE))
    t.equal(headers.get('content-disposition'), 'attachment; filename="handbook.pdf"')
    t.match(await get(store.makePermanentLink('images/none.png')), { status: 200, bytes: { length: 0 } })
  })

  t.test(
    'a slow reader pauses the disk, and gets every byte; one that leaves lets the file go',
    async (t) => {
      const { store, folder, local, port } = await withFilm(t)
      const long = randomBytes(24 * 1024 * 1024)
      await store.put('videos/other.mp4', long, film)
      const url = new URL(local(store.makePermanentLink('videos/other.mp4')))
      const pieces: Buffer[] = []
      await new Promise<void>((done, fail) => {
        request(url, (response) => {
          response.on('data', (piece: Buffer) => {
            pieces.push(piece)
            if (pieces.length % 40 !== 0) return
            response.pause()
            setTimeout(() => response.resume(), 5)
          })
          response.on('end', done)
          response.on('error', fail)
        }).end()
      })
      t.ok(Buffer.concat(pieces).equals(long))

      const leaver = new RawClient(port)
      leaver.send(`GET ${url.pathname}${url.search} HTTP/1.1\r\nhost: t\r\n\r\n`)
      await until(() => leaver.received.length > 1000)
      leaver.socket.destroy()
      await leaver.gone
      await until(() => openFiles(folder) === 0)
      t.pass('no file of the folder is open any more')
    },
  )

  t.test('a file that is cut short has its connection cut', async (t) => {
    const { store } = await withFilm(t)
    const short: ObjectStore = Object.assign(Object.create(store), {
      head: async () => ({ bytes: FILM_BYTES + 1, mediaType: 'video/mp4' }),
      get: (key: string) => store.get(key),
    })
    const { get } = await served(t, short)
    await t.rejects(get(store.makePermanentLink('videos/film.mp4')))
  })

  t.test('a store that does not answer is no fault of the link, nor one that nobody foresaw', async (t) => {
    const { store } = await withFilm(t)
    const away = async () => {
      throw new Error('connect ECONNREFUSED 10.0.0.5:9000')
    }
    for (const fault of [{ head: away }, { get: away }]) {
      const { get, unforeseen } = await served(t, Object.assign(Object.create(store) as ObjectStore, fault))
      const { status, bytes } = await get(store.makePermanentLink('videos/film.mp4'))
      t.match({ status, body: String(bytes) }, { status: 503, body: /service_unavailable/ })
      t.notMatch(String(bytes), '10.0.0.5')
      t.match(unforeseen, { length: 0 })
    }
  })

  t.test('a bucket sends its own files: the lasting link leads to a fresh one of its own', async (t) => {
    const { store } = await bucketStore(t)
    await store.put('videos/film.mp4', FILM, film)
    const { get } = await served(t, store)
    const { status, headers } = await get(store.makePermanentLink('videos/film.mp4'))
    t.equal(status, 302)
    t.equal(headers.get('cache-control'), 'no-store')
    const opened = await fetch(headers.get('location') ?? '')
    t.ok(Buffer.from(await opened.arrayBuffer()).equals(FILM))
    t.equal((await get(store.makePermanentLink('videos/gone.mp4'))).status, 404)
  })
})
