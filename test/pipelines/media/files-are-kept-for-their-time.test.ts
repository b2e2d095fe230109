/** How long files of a task are kept, and what its account reads once they are gone. */
import t from 'tap'
import { printMusic } from '../../../pipelines/media/audio/music.ts'
import { printSpeechTask } from '../../../pipelines/media/audio/speech.ts'
import { printImageTask } from '../../../pipelines/media/images/answers.ts'
import { printVideo } from '../../../pipelines/media/videos/task.ts'
import { isThere, retentionMs } from '../../../pipelines/tasks/store/result-files.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { mediaJob, trackFacts } from '../../../schemas/media/job.ts'
import { fileOf, resultOf, taskOf } from './support.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const NOW = Date.now()
const files = {
  link: async (key: string, expiresAt: number) => `https://files/${key}?until=${expiresAt}`,
  permanentLink: (key: string) => `https://files/${key}`,
  get: async () => null,
}

t.test('by default films and songs outlive their last link by 30 days, and speech stays', async (t) => {
  t.equal(configFile.parse({}).storage.retention_days, null)
  t.equal(retentionMs('video', null), 37 * DAY_MS)
  t.equal(retentionMs('music', null), 37 * DAY_MS)
  t.equal(retentionMs('speech', null), null)
  t.equal(retentionMs('image', null), DAY_MS)
})

t.test('an operator sets the days of films, songs and speech; not below the life of a link', async (t) => {
  for (const kind of ['video', 'music', 'speech'] as const) t.equal(retentionMs(kind, 90), 90 * DAY_MS)
  t.equal(retentionMs('image', 90), DAY_MS)
  t.equal(retentionMs('avatar', 90), null, 'what goes on being used is kept')
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
