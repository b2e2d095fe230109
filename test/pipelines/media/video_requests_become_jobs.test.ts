/** What clients write becomes what upstreams are asked for. */
import t from 'tap'
import type { ClipJobDeps } from '../../../pipelines/media/clip-job.ts'
import { clipComposeJob, RECOGNITION_KEPT_MS } from '../../../pipelines/media/clip-job.ts'
import { pricedJob } from '../../../pipelines/media/priced-job.ts'
import { VIDEO_JOBS, type VideoJobDeps } from '../../../pipelines/media/video-jobs.ts'
import { workOf } from '../../../pipelines/media/videos.ts'
import { modelEntry } from '../../../schemas/catalog.ts'
import { mediaJob } from '../../../schemas/media-job.ts'
import type { Route } from '../../../src/core/catalog.ts'
import type { Task } from '../../../src/postgres/task-types.ts'
import { channelAt, resultOf, taskOf } from './support.ts'

const LINK = 'https://example.com'
const url = (name: string) => ({ from: 'url', url: `${LINK}/${name}` })
const routeTo = (id: string): Route => ({
  channel: channelAt(`${LINK}/${id}`, { id }),
  upstreamModel: 'm',
  protocol: 'task',
  isTranslated: false,
})
const routes = [routeTo('other'), routeTo('studio')]
const caller = { known: { account: { id: 'acc_a' } } } as unknown as Parameters<
  typeof clipComposeJob
>[1]['caller']
/** For jobs that ask nobody. */
const nobody = {} as VideoJobDeps

t.test(
  'an ordinary video takes words before parts, roles as they are, and what it does not know',
  async (t) => {
    const body = {
      model: 'film',
      prompt: 'Dough rises.',
      content: [
        { type: 'text', text: 'Slowly.' },
        { type: 'image_url', image_url: { url: `${LINK}/a.png` }, role: 'first_frame' },
        { type: 'image_url', image_url: `${LINK}/b.png` },
        { type: 'video_url', video_url: { url: `${LINK}/c.mp4` }, role: 'reference_video' },
      ],
      duration: 5,
      resolution: '720p',
      seed: null,
      watermark: false,
      style: 'film',
      nested: { a: [1] },
    }
    const made = await VIDEO_JOBS.video(nobody, { caller, body, routes })
    t.strictSame(made.job, {
      work: 'video',
      content: [
        { type: 'text', text: 'Dough rises.' },
        { type: 'text', text: 'Slowly.' },
        { type: 'image', file: url('a.png'), role: 'first_frame' },
        { type: 'image', file: url('b.png'), role: null },
        { type: 'video', file: url('c.mp4'), role: 'reference_video' },
      ],
      duration: 5,
      resolution: '720p',
      ratio: null,
      seed: null,
      fps: null,
      watermark: false,
      camera_fixed: null,
      generate_audio: null,
      extra: { style: 'film', nested: { a: [1] } },
    })
    t.strictSame(mediaJob.parse(made.job), made.job, 'as it is kept')
    t.equal(made.routes, routes)
    const heavy = { model: 'film', prompt: 'x', notes: 'n'.repeat(70_000) }
    await t.rejects(async () => VIDEO_JOBS.video(nobody, { caller, body: heavy, routes }), /65536 characters/)
  },
)

t.test('what is made depends on the model, whichever of its names it goes by', async (t) => {
  const work = (id: string, ...aliases: string[]) => workOf({ id, entry: modelEntry.parse({ id, aliases }) })
  t.equal(work('dh-lipsync-max'), 'lipsync')
  t.equal(work('our-motion', 'dh-motion'), 'motion')
  t.equal(work('film', 'toString'), 'video')
})

t.test('motion counts its portraits, and is of the standard grade unless told', async (t) => {
  const portrait = { type: 'image_url', image_url: { url: `${LINK}/a.png` } }
  const body = {
    model: 'dh-motion',
    source_video_url: `${LINK}/d.mp4`,
    content: [portrait, portrait],
    duration: 4,
  }
  t.match(await VIDEO_JOBS.motion(nobody, { caller, body, routes }), {
    variant: { value: 'standard' },
    job: { face_count: 2, resolution: 'standard', portraits: [url('a.png'), url('a.png')] },
  })
  const told = { ...body, face_count: 7, resolution: 'max' }
  t.match(await VIDEO_JOBS.motion(nobody, { caller, body: told, routes }), {
    variant: { value: 'max' },
    job: { face_count: 7, resolution: 'max' },
  })
})

const segments = [
  { content: 'Good morning.', showRange: [0, 1840] as [number, number] },
  { content: 'Today we bake.', showRange: [1900, 4210] as [number, number] },
]
const recognition = (more: Partial<Task> = {}) =>
  taskOf({
    id: 'asr_1',
    kind: 'subtitle',
    state: 'succeeded',
    endedAt: 1000,
    result: resultOf({ made_id: 'asr-5512', segments }),
    ...more,
  })

function clipDeps(task: Task | null, now = 2000): ClipJobDeps {
  const template = { style_id: 'bold', name: '', cover_url: '', demo_url: '', cate_name: '', scene: '' }
  return {
    tasks: { findTask: async () => task, listTasks: async () => ({ tasks: [], hasMore: false }) },
    lists: { clipTemplates: async ({ id }) => (id === 'studio' ? [template] : []) },
    now: () => now,
  }
}
const clip = { model: 'clip-compose', video_url: `${LINK}/talk.mp4`, asr_id: 'asr_1' }
const compose = (body: object, deps = clipDeps(recognition())) =>
  clipComposeJob(deps, { caller, body, routes })

t.test('a clip goes to the channel that recognised its words, under its name for them', async (t) => {
  const made = await compose(clip)
  t.same(
    made.routes.map(({ channel }) => channel.id),
    ['studio'],
  )
  t.strictSame(made.job, {
    work: 'clip_compose',
    video: url('talk.mp4'),
    asr_id: 'asr-5512',
    video_style_id: null,
    enable_title_effect: false,
    enable_caption_effect: true,
    enable_keyword_effect: true,
    title: null,
    music: null,
    name_card: null,
    sentences: null,
    pip_config: [],
  })
  const full = await compose({
    ...clip,
    video_style_id: 'bold',
    enable_title_effect: true,
    enable_caption_effect: false,
    title: '🍞'.repeat(31),
    music_url: `${LINK}/tune.mp3`,
    name_card: { name: 'Ada' },
    sentences: [{ content: 'Hello!', showRange: [7, 8] }, { content: 'We bake.' }],
    pip_config: [{ media_url: `${LINK}/a.jpg`, begin_time: 0, end_time: 1 }],
  })
  t.match(full.job, {
    video_style_id: 'bold',
    enable_title_effect: true,
    enable_caption_effect: false,
    title: '🍞'.repeat(30),
    music: url('tune.mp3'),
    name_card: { name: 'Ada', description: '' },
    sentences: [
      { content: 'Hello!', showRange: [0, 1840] },
      { content: 'We bake.', showRange: [1900, 4210] },
    ],
    pip_config: [{ media: url('a.jpg'), begin_time: 0, end_time: 1 }],
  })
  t.equal([...(full.job.title ?? '')].length, 30, 'cut off between characters')
})

t.test('a recognition is used for a day, where it is still known', async (t) => {
  await t.resolves(compose(clip, clipDeps(recognition(), 999 + RECOGNITION_KEPT_MS)))
  const refusals: readonly (readonly [ClipJobDeps, RegExp])[] = [
    [clipDeps(recognition(), 1000 + RECOGNITION_KEPT_MS), /'asr_id'.*expired: recognise the subtitles again/],
    [clipDeps(null), /'asr_id'.*no such recognition/],
    [clipDeps(recognition({ state: 'running' })), /'asr_id'.*has not finished/],
    [clipDeps(recognition({ state: 'failed', result: null })), /'asr_id'.*failed/],
    [clipDeps(recognition({ channelId: 'gone' })), /'asr_id'.*cannot be used any more/],
  ]
  for (const [deps, message] of refusals)
    await t.rejects(compose(clip, deps), { status: 400, code: 'invalid_request', message })
  const lines = { ...clip, sentences: [{ content: 'Hello!' }] }
  await t.rejects(compose(lines), { status: 400, message: /2 lines expected.*there are 1/ })
  await t.rejects(compose({ ...clip, video_style_id: 'gone' }), { status: 400, message: /withdrawn/ })
})

t.test('a resolution chooses the price, however it is spelled; one without a price is refused', async (t) => {
  const price = (pricing: object, value: string | null) => {
    const id = 'film'
    const entry = modelEntry.parse({
      id,
      endpoint_type: 'videos_generations',
      pricing: { unit: 'second', ...pricing },
    })
    const job = mediaJob.parse({ work: 'video', content: [], duration: 2, resolution: value })
    return pricedJob({ id, entry, price: null }, job, { field: 'resolution', value }).hold
  }
  const variants = { '720p': '2', '1080p': '5' }
  t.equal(price({ variants }, '1080p'), 10_00000000n)
  t.equal(price({ variants, per_unit: '1' }, ' 1080P '), 10_00000000n)
  t.equal(price({ variants, per_unit: '1' }, null), 2_00000000n)
  for (const value of [null, '480p'])
    t.throws(() => price({ variants }, value), {
      code: 'invalid_request',
      message: /'resolution'.*720p, 1080p/,
    })
})
