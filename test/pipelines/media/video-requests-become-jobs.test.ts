/** What clients write becomes what upstreams are asked for. */
import t, { type Test } from 'tap'
import { chosenVariant, pricedJob } from '../../../pipelines/media/priced-job.ts'
import type { ClipSources } from '../../../pipelines/media/videos/clip-job.ts'
import { clipComposeJob, RECOGNITION_KEPT_MS } from '../../../pipelines/media/videos/clip-job.ts'
import { VIDEO_JOBS, type VideoSources } from '../../../pipelines/media/videos/jobs.ts'
import { workOf } from '../../../pipelines/media/videos/videos.ts'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { channelAt, resultOf, taskOf } from './support.ts'

const LINK = 'https://example.com'
const url = (name: string) => ({ from: 'url', url: `${LINK}/${name}` })
const routeTo = (id: string): Route => ({
  channel: channelAt(`${LINK}/${id}`, { id }),
  upstreamModel: 'm',
  protocol: 'task',
  cost: null,
  isTranslated: false,
})
const routes = [routeTo('other'), routeTo('studio')]
const caller = { known: { account: { id: 'acc_a' } } } as unknown as Parameters<
  typeof clipComposeJob
>[1]['caller']
/** For jobs that ask nobody. */
const nobody = {} as VideoSources
const entryOf = (more: object = {}) =>
  modelEntry.parse({ id: 'film', endpoint_type: 'videos_generations', ...more })
const entry = entryOf({ pricing: { unit: 'second', per_unit: '1' } })

t.test('an ordinary video takes words before parts, roles as they are, and no unknown field', async (t) => {
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
    frames: 288,
    n: 4,
    nested: { a: [1] },
  }
  const made = await VIDEO_JOBS.video(nobody, { caller, body, entry, routes })
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
  })
  t.strictSame(mediaJob.parse(made.job), made.job, 'as it is kept')
  t.strictSame(made.routes, routes)
})

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
  const graded = entryOf({ pricing: { unit: 'second', variants: { standard: '2', max: '3' } } })
  const fast = { ...body, resolution: 'fast' }
  await t.rejects(async () => VIDEO_JOBS.motion(nobody, { caller, body: fast, entry: graded, routes }), {
    status: 400,
    message: /'resolution'.*standard, max/,
  })
  t.match(await VIDEO_JOBS.motion(nobody, { caller, body, entry: graded, routes }), {
    variant: 'standard',
    job: { face_count: 2, resolution: 'standard', portraits: [url('a.png'), url('a.png')] },
  })
  const told = { ...body, face_count: 7, resolution: 'max' }
  t.match(await VIDEO_JOBS.motion(nobody, { caller, body: told, entry: graded, routes }), {
    variant: 'max',
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
    job: mediaJob.parse({ work: 'subtitle', video: url('talk.mp4') }),
    state: 'succeeded',
    endedAt: 1000,
    result: resultOf({ made_id: 'asr-5512', segments }),
    ...more,
  })

function clipDeps(task: Task | null, now = 2000): ClipSources {
  const template = { style_id: 'bold', name: '', cover_url: '', demo_url: '', cate_name: '', scene: '' }
  return {
    tasks: { find: async () => task },
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
  const refusals: readonly (readonly [ClipSources, RegExp])[] = [
    [clipDeps(recognition(), 1000 + RECOGNITION_KEPT_MS), /'asr_id'.*expired: recognise the subtitles again/],
    [clipDeps(null), /'asr_id'.*no such recognition/],
    [clipDeps(recognition({ state: 'running' })), /'asr_id'.*has not finished/],
    [clipDeps(recognition({ state: 'failed', result: null })), /'asr_id'.*failed/],
    [clipDeps(recognition({ channelId: 'gone' })), /'asr_id'.*cannot be used any more/],
  ]
  for (const [deps, message] of refusals)
    await t.rejects(compose(clip, deps), { status: 400, code: 'invalid_request', message })
  const other = { ...clip, video_url: `${LINK}/other.mp4` }
  await t.rejects(compose(other), {
    status: 400,
    code: 'invalid_request',
    message: /'video_url'.*not the video/,
  })
  const signed = { ...clip, video_url: `${LINK}/talk.mp4?expires=2&signature=b` }
  await t.resolves(compose(signed), 'a fresh signature leads to the same video')
  await t.rejects(compose({ ...clip, video_url: `${LINK}/talk.mp4?id=2` }), { code: 'invalid_request' })
  const lines = { ...clip, sentences: [{ content: 'Hello!' }] }
  await t.rejects(compose(lines), { status: 400, message: /2 lines expected.*there are 1/ })
  await t.rejects(compose({ ...clip, video_style_id: 'gone' }), { status: 400, message: /withdrawn/ })
})

const film = (body: object, more: object = { pricing: { unit: 'second', per_unit: '1' } }) =>
  VIDEO_JOBS.video(nobody, {
    caller,
    body: { model: 'film', prompt: 'A fox', ...body },
    entry: entryOf(more),
    routes,
  })
const refused = (body: object, more: object, message: RegExp) => (t: Test) =>
  t.rejects(async () => film(body, more), { code: 'invalid_request', status: 400, message })

t.test('length and resolution are always said, by configuration where the request does not', async (t) => {
  t.match((await film({})).job, { duration: 12, resolution: '720p' })
  const videos = { default_duration: 5, default_resolution: '1080p' }
  const pricing = { unit: 'second', per_unit: '1' }
  t.match((await film({}, { pricing, videos })).job, { duration: 5, resolution: '1080p' })
  const told = { duration: 2, resolution: '4k' }
  t.match((await film(told, { pricing, videos })).job, told)
})

t.test('a channel that takes no length makes the default one, at its price', async (t) => {
  const runway: Route = { ...routeTo('runway'), protocol: 'runway' }
  const videos = { default_duration: 5 }
  const entry = entryOf({ pricing: { unit: 'second', per_unit: '1' }, videos })
  const made = async (duration: number | null, to: readonly Route[], more: object = {}) => {
    const content = [{ type: 'video_url', video_url: `${LINK}/c.mp4` }]
    const body = { model: 'film', prompt: 'A fox', content, duration, ...more }
    const { job, routes: left } = await VIDEO_JOBS.video(nobody, { caller, body, entry, routes: to })
    return [(job as { duration: number }).duration, ...left.map(({ channel }) => channel.id)]
  }
  t.same(await made(null, [runway]), [5, 'runway'])
  t.same(await made(5, [runway]), [5, 'runway'])
  t.same(await made(1, [runway, ...routes]), [1, 'other', 'studio'], 'other channels make another length')
  t.same(
    await made(1, [runway], { content: [] }),
    [1, 'runway'],
    'only a video from a video has a fixed length',
  )
  const message = /'duration'.*5 seconds/
  await t.rejects(made(1, [runway]), { code: 'invalid_request', status: 400, message })
})

t.test('flags in words reach no upstream, whatever they are written with', async (t) => {
  const content = [
    { type: 'text', text: 'Slowly --rs 1080p' },
    { type: 'text', text: '--seed 7 --cf true' },
  ]
  t.match((await film({ prompt: 'A fox --dur 60 —fps=60', duration: 1, content })).job, {
    content: [
      { type: 'text', text: 'A fox' },
      { type: 'text', text: 'Slowly' },
    ],
    duration: 1,
    resolution: '720p',
  })
  await t.rejects(async () => film({ prompt: '--dur 60' }), { status: 400, message: /'prompt'.*flags/ })
})

t.test('flags that are split across texts reach no upstream either', async (t) => {
  const image = { type: 'image_url', image_url: `${LINK}/a.png` }
  const split = (...texts: string[]) => {
    const [first, ...rest] = texts.map((text) => ({ type: 'text', text }))
    return [first!, image, ...rest]
  }
  const wordsOf = async (content: object[]) =>
    ((await film({ prompt: undefined, content })).job as { content: { type: string; text?: string }[] })
      .content
  for (const [texts, left] of [
    [['A fox --', 'dur 60'], 'A fox'],
    [['A fox -', '-dur 60 jumps'], 'A fox jumps'],
    [['A fox --d', 'u', 'r 60'], 'A fox'],
    [['A fox \u2014cf', 'true'], 'A fox'],
    [['A fox \uff0d', '\uff0drs 1080p'], 'A fox'],
  ] as const) {
    const content = await wordsOf(split(...texts))
    t.same(
      content.filter(({ type }) => type === 'text').map(({ text }) => text),
      [left],
      JSON.stringify(texts),
    )
    t.equal(content.filter(({ type }) => type === 'image').length, 1)
  }
  const plain = await wordsOf(split('A fox - quick.', 'It jumps.'))
  t.same(
    plain.map(({ text }) => text),
    ['A fox - quick.', undefined, 'It jumps.'],
    'other texts stay as they are',
  )
  const onlyFlags = async () => film({ prompt: '--', content: [{ type: 'text', text: 'dur 60' }] })
  await t.rejects(onlyFlags, { status: 400, message: /'prompt'.*flags/ })
})

t.test('a resolution chooses the price, however it is spelled; one without a price is refused', async (t) => {
  const variants = { '480p': '2', '720p': '4', '1080p': '9' }
  const made = async (pricing: object, resolution: string | null, videos?: object) => {
    const more = { pricing: { unit: 'second', ...pricing }, ...(videos !== undefined && { videos }) }
    const { job, variant } = await film({ duration: 2, resolution }, more)
    const { hold } = pricedJob(
      { id: 'film', entry: entryOf(more), price: null, strategy: 'priority' },
      job,
      variant,
    )
    return [variant, (job as { resolution: string }).resolution, printCredits(hold)]
  }
  t.same(await made({ variants }, '1080p'), ['1080p', '1080p', '18'])
  t.same(await made({ variants, per_unit: '1' }, ' 1080P '), ['1080p', '1080p', '18'])
  t.same(await made({ variants, per_unit: '5' }, null), ['720p', '720p', '8'], 'the dearest that it covers')
  t.same(await made({ variants, per_unit: '1' }, null), ['480p', '480p', '4'], 'else the cheapest')
  const videos = { default_resolution: '1080p' }
  t.same(await made({ variants, per_unit: '5' }, null, videos), ['1080p', '1080p', '18'], 'or as configured')
  for (const per_unit of [undefined, '5'])
    for (const value of ['4k', '1080', 'toString'])
      await refused(
        { resolution: value },
        { pricing: { unit: 'second', variants, ...(per_unit && { per_unit }) } },
        /'resolution'.*480p, 720p, 1080p/,
      )(t)
  await refused({}, { pricing: { unit: 'second', variants } }, /'resolution'.*required.*480p/)(t)
  t.equal(chosenVariant(entry, 'resolution', '4k'), null, 'one price for all')
})
