/** "Digital human endpoints": avatars, the bodies of each model, clips from template to film, and every price. */
import t from 'tap'
import { section, statement, statements } from './statement.ts'
import type { Client, World } from './world.ts'

const VIDEOS = '/v1/videos/generations'
const AVATARS = '/v1/videos/avatars'
const SUBTITLES = '/v1/videos/clip-subtitles'
const TEMPLATES = '/v1/videos/clip-templates'
const QUICK = 'delay=150,queue=50'
const AVATAR_PRICE = '220.11'
const RFC_3339 = /^\d{4}-\d\d-\d\dT/
const PRESET_AVATAR = 'sim-face-jon'
const PRESET_VOICE = 'sim-voice-ada'

const invalid = { status: 400, body: { error: { code: 'invalid_request', type: 'invalid_request_error' } } }
const missing = { status: 404, body: { error: { code: 'not_found' } } }
const notAllowed = { status: 403, body: { error: { code: 'model_not_allowed' } } }

const link = (name: string, directives = QUICK) =>
  `https://example.com/${name}?simulate=${encodeURIComponent(directives)}`
const portraits = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    type: 'image_url',
    image_url: { url: `https://example.com/${index}.png` },
  }))

const register = (client: Client, more: object = {}) =>
  client.post(AVATARS, { name: 'Ada', source_url: link('a.png'), ...more })

/** A body of each model that goes through, for this time at the upstream. */
const BODIES: Readonly<Record<string, (directives: string) => Record<string, unknown>>> = {
  'dh-avatar': (directives) => ({ avatar: PRESET_AVATAR, audio_url: link('a.mp3', directives), duration: 2 }),
  'dh-lipsync': (directives) => ({
    source_video_url: 'https://example.com/face.mp4',
    audio_url: link('a.mp3', directives),
    duration: 2,
  }),
  'dh-motion': (directives) => ({
    source_video_url: link('a.mp4', directives),
    content: portraits(1),
    duration: 2,
  }),
}
const bodyOf = (model: string, directives: string) => BODIES[model.replace(/-(pro|max)$/, '')]!(directives)

const submit = (client: Client, model: string, more: object = {}, directives = QUICK) =>
  client.post(VIDEOS, { model, ...bodyOf(model, directives), ...more })

/** Credits a second. */
const PRICES = [
  ['dh-avatar', {}, 3.96],
  ['dh-lipsync', {}, 4.04],
  ['dh-lipsync-pro', {}, 8.09],
  ['dh-lipsync-max', {}, 12.13],
  ['dh-motion', { resolution: 'fast' }, 4.04],
  ['dh-motion', { resolution: 'standard' }, 8.09],
  ['dh-motion', {}, 8.09],
  ['dh-motion', { resolution: 'max' }, 12.13],
] as const

/** Every field that a model needs, and values that it refuses. */
const REFUSED = [
  ['dh-avatar', { avatar: undefined }],
  ['dh-avatar', { avatar: 'ava_00000000000000000000000000' }],
  ['dh-avatar', { duration: undefined }],
  ['dh-avatar', { audio_url: undefined }],
  ['dh-avatar', { audio_url: undefined, voice: PRESET_VOICE }],
  ['dh-avatar', { audio_url: undefined, text: 'Hello' }],
  ['dh-avatar', { audio_url: undefined, voice: 'nobody', text: 'Hello' }],
  ['dh-avatar', { audio_url: 'ftp://example.com/a.mp3' }],
  ['dh-lipsync', { source_video_url: undefined }],
  ['dh-lipsync', { audio_url: undefined }],
  ['dh-lipsync', { duration: undefined }],
  ['dh-lipsync-pro', { source_video_url: 'ftp://example.com/a.mp4' }],
  ['dh-lipsync-max', { duration: undefined }],
  ['dh-motion', { source_video_url: undefined }],
  ['dh-motion', { content: undefined }],
  ['dh-motion', { content: portraits(8) }],
  ['dh-motion', { content: portraits(1), face_count: 0 }],
  ['dh-motion', { content: portraits(7), face_count: 8 }],
  ['dh-motion', { resolution: '4k' }],
  ['dh-motion', { duration: undefined }],
] as const

/** A recognition, and what a clip of it needs. */
async function recognised(world: World, allowedModels?: string[]) {
  const client = await world.client('1000', allowedModels && { allowedModels })
  const video_url = link('talk.mp4')
  const { body } = await client.post(SUBTITLES, { video_url })
  return { client, recognition: body, clip: { model: 'clip-compose', video_url, asr_id: body.asr_id } }
}
const picture = { media_url: 'https://example.com/a.jpg', begin_time: 500, end_time: 900 }

/** Fields of a clip that are taken, and some that are not. */
const CLIP_FIELDS: readonly (readonly [what: string, more: object, isTaken: boolean])[] = [
  ['a listed template', { video_style_id: 'sim-style-bold' }, true],
  ['a template that is not listed', { video_style_id: 'sim-style-gone' }, false],
  ['no template', {}, true],
  [
    'effects',
    { enable_title_effect: true, enable_caption_effect: false, enable_keyword_effect: false },
    true,
  ],
  ['a title of 31 characters, which is truncated', { title: 'x'.repeat(31) }, true],
  ['a link to music', { music_url: link('a.mp3') }, true],
  ['music that is no link', { music_url: 'ftp://example.com/a.mp3' }, false],
  [
    'a name of 20 and a description of 40',
    { name_card: { name: 'n'.repeat(20), description: 'd'.repeat(40) } },
    true,
  ],
  ['a name of 21 characters', { name_card: { name: 'n'.repeat(21) } }, false],
  ['a description of 41 characters', { name_card: { name: 'n', description: 'd'.repeat(41) } }, false],
  ['20 pictures in the picture', { pip_config: Array(20).fill(picture) }, true],
  ['21 pictures in the picture', { pip_config: Array(21).fill(picture) }, false],
  ['a picture that ends as it begins', { pip_config: [{ ...picture, end_time: 500 }] }, false],
  ['no asr_id', { asr_id: undefined }, false],
  ['an asr_id that has expired', { asr_id: `asr_${'0'.repeat(26)}` }, false],
  ['no video', { video_url: undefined }, false],
]

await section(t, 'Digital human and editing', [
  statement('Registering an avatar answers with its pending record', async (t, world) => {
    const client = await world.client()
    const { status, body } = await register(client)
    t.equal(status, 200)
    const { id, created_at } = body
    const pending = { id, name: 'Ada', source_kind: 'image', status: 'pending', error: null, created_at }
    t.strictSame(body, pending)
    t.match([id, created_at], [/^ava_/, RFC_3339])
    t.strictSame(await client.ended(`${AVATARS}/${id}`), { ...pending, status: 'ready' })
  }),
  statements(
    [
      ['a name of 1 character', { name: 'A' }, 200],
      ['a name of 20 characters', { name: 'A'.repeat(20) }, 200],
      ['a name of 21 characters', { name: 'A'.repeat(21) }, 400],
      ['an empty name', { name: '' }, 400],
      ['no name', { name: undefined }, 400],
      ['no source', { source_url: undefined }, 400],
      ['a source that is no http link', { source_url: 'file:///etc/passwd' }, 400],
      ['a source that is not public', { source_url: 'http://127.0.0.1/a.png' }, 400],
      ['a source of kind video', { source_kind: 'video' }, 200],
      ['a source of kind image', { source_kind: 'image' }, 200],
      ['a source of another kind', { source_kind: 'song' }, 400],
    ] as const,
    ([what, , status]) => `An avatar with ${what} is ${status}`,
    async (t, world, [, more, status]) => {
      const client = await world.client()
      const answer = await register(client, more)
      t.equal(answer.status, status, answer.text)
      if (status === 200) await client.ended(`${AVATARS}/${answer.body.id}`)
    },
  ),
  statement('An avatar costs 220.11, which a failure refunds in full', async (t, world) => {
    const client = await world.client('500')
    const made = await register(client)
    await client.ended(`${AVATARS}/${made.body.id}`)
    t.match(await client.row(made), { cost: AVATAR_PRICE, unit_type: 'avatar', model: 'dh-avatar-create' })
    const failed = await register(client, { source_url: link('a.png', `${QUICK},outcome=fail`) })
    t.match(await client.ended(`${AVATARS}/${failed.body.id}`), { status: 'failed', error: String })
    t.equal(await client.remaining('279.89'), '279.89')
    t.equal((await register(await world.client('220.1'))).status, 402)
  }),
  statement('DELETE of a pending avatar is 400, and of a ready one works', async (t, world) => {
    const client = await world.client()
    const { id } = (await register(client, { source_url: link('a.png', 'delay=800,queue=100') })).body
    t.match(await client.send('DELETE', `${AVATARS}/${id}`), invalid)
    t.match(await submit(client, 'dh-avatar', { avatar: id }), invalid, 'nor is it ready to speak')
    await client.ended(`${AVATARS}/${id}`)
    t.equal((await submit(client, 'dh-avatar', { avatar: id })).status, 200)
    t.equal((await client.send('DELETE', `${AVATARS}/${id}`)).status, 200)
    t.match(await client.get(`${AVATARS}/${id}`), missing)
  }),
  statement(
    'Avatars of the account are listed, the newest first; of another account none',
    async (t, world) => {
      const client = await world.client()
      const ids = [(await register(client)).body.id, (await register(client)).body.id]
      const { body } = await client.get(AVATARS)
      t.match(body.avatars, [{ id: ids[1] }, { id: ids[0] }])
      const stranger = await world.client()
      t.same((await stranger.get(AVATARS)).body.avatars, [])
      t.match(await stranger.get(`${AVATARS}/${ids[0]}`), missing)
      t.match(await submit(stranger, 'dh-avatar', { avatar: ids[0] }), invalid)
      for (const id of ids) await client.ended(`${AVATARS}/${id}`)
    },
  ),
  statement('Presets of avatars are listed by id and name, and used directly', async (t, world) => {
    const client = await world.client()
    const { body } = await client.get(`${AVATARS}/presets`)
    t.strictSame(Object.keys(body), ['avatars'])
    for (const preset of body.avatars) t.match(preset, { id: String, name: String })
    t.equal((await submit(client, 'dh-avatar', { avatar: body.avatars[0].id })).status, 200)
  }),
  statement('An avatar speaks a sound, or a text with a voice', async (t, world) => {
    const client = await world.client()
    const spoken = { audio_url: undefined, voice: PRESET_VOICE, text: `Hello [simulate: ${QUICK}]` }
    for (const more of [{}, spoken]) {
      const { body } = await submit(client, 'dh-avatar', more)
      t.match(await client.ended(`${VIDEOS}/${body.id}`), { status: 'succeeded', video_url: /^http/ })
    }
  }),
  statements(
    PRICES,
    ([model, more, price]) =>
      `${model} ${JSON.stringify(more)} costs ${price} a second, by the seconds reported`,
    async (t, world, [model, more, price]) => {
      const client = await world.client('1000')
      const submitted = await submit(client, model, more, 'delay=600,queue=50,seconds=1.5')
      t.equal(Number((await client.balance()).held), price * 2, 'duration is the basis of the hold')
      await client.ended(`${VIDEOS}/${submitted.body.id}`)
      t.equal(Number((await client.row(submitted)).cost), Number((price * 1.5).toFixed(8)))
      t.equal((await client.balance()).held, '0')
    },
  ),
  statements(
    REFUSED,
    ([model, more]) =>
      `${model} is 400 with ${Object.entries(more).map(([name, value]) => `${name} ${Array.isArray(value) ? `of ${value.length}` : (value ?? 'missing')}`)}`,
    async (t, world, [model, more]) => {
      t.match(await submit(await world.client(), model, more), invalid)
    },
  ),
  statements(
    [1, 7],
    (count) => `dh-motion takes ${count} portraits with as many faces`,
    async (t, world, count) => {
      const client = await world.client()
      const more = { content: portraits(count), face_count: count }
      t.equal((await submit(client, 'dh-motion', more)).status, 200)
    },
  ),
  statement('A model of these that is not in the catalog is 404 model_not_found', async (t, world) => {
    const client = await world.client()
    const answer = await client.post(VIDEOS, { model: 'dh-unheard-of', prompt: 'x', duration: 1 })
    t.match(answer, { status: 404, body: { error: { code: 'model_not_found' } } })
  }),
  statement('Templates are listed, by category where one is asked for', async (t, world) => {
    const client = await world.client('0')
    const { body } = await client.get(TEMPLATES)
    t.strictSame(Object.keys(body).sort(), ['api_version', 'list', 'sid'])
    t.match(body, { sid: '', api_version: 'old' })
    for (const item of body.list)
      t.match(item, {
        style_id: String,
        name: String,
        cover_url: /^http/,
        demo_url: /^http/,
        cate_name: String,
        scene: String,
      })
    const { list } = (await client.get(`${TEMPLATES}/categories`)).body
    for (const item of list) t.match(item, { cate_id: String, cate_name: String, sort: Number })
    const some = (await client.get(`${TEMPLATES}?cate_id=${list[0].cate_id}`)).body.list
    t.ok(some.length > 0 && some.length < body.list.length)
  }),
  statement('A recognition that is waited for has its segments, twice, and costs 0', async (t, world) => {
    const client = await world.client('1')
    const answer = await client.post(SUBTITLES, { video_url: link('talk.mp4') })
    t.equal(answer.status, 200)
    const { segments, asr_id } = answer.body
    t.strictSame(answer.body, {
      model: 'clip-subtitle',
      asr_id,
      api_version: 'old',
      segments,
      sentences: segments,
    })
    for (const segment of segments) t.match(segment, { showRange: [Number, Number], content: /\S/ })
    t.equal((await client.row(answer)).cost, '0')
  }),
  statement('With async a recognition is 202, running, and polled', async (t, world) => {
    const client = await world.client()
    const body = { video_url: link('talk.mp4', 'delay=800'), async: true }
    const submitted = await client.post(SUBTITLES, body)
    const { id } = submitted.body
    t.equal(submitted.status, 202)
    t.strictSame(submitted.body, {
      id,
      object: 'clip_subtitle',
      model: 'clip-subtitle',
      status: 'running',
      asr_id: submitted.body.asr_id,
      api_version: 'old',
    })
    t.equal((await client.get(`${SUBTITLES}/${id}`)).body.status, 'running')
    const ended = await client.ended(`${SUBTITLES}/${id}`)
    t.match(ended, {
      id,
      status: 'succeeded',
      asr_id: String,
      segments: Array,
      sentences: Array,
      error: null,
    })
    t.same(ended.segments, ended.sentences)
    t.match(await (await world.client()).get(`${SUBTITLES}/${id}`), missing, 'of another account')
  }),
  statement('A video without speech is 400; polled, its task failed; neither costs', async (t, world) => {
    const client = await world.client('100')
    const video_url = link('mute.mp4', `${QUICK},outcome=fail,code=no_speech`)
    t.match(await client.post(SUBTITLES, { video_url }), invalid)
    const { id } = (await client.post(SUBTITLES, { video_url, async: true })).body
    t.match(await client.ended(`${SUBTITLES}/${id}`), { status: 'failed', error: Object })
    t.match(await client.balance(), { remaining: '100', used: '0' })
  }),
  statement("An upstream's 504 to a recognition stays one", async (t, world) => {
    const client = await world.client()
    const answer = await client.post(SUBTITLES, { video_url: link('a.mp4', 'fault=status:504') })
    t.equal(answer.status, 504)
  }),
  statement('video_url of a recognition is required, an http or https link', async (t, world) => {
    const client = await world.client()
    for (const video_url of [undefined, 'a.mp4', 'ftp://example.com/a.mp4'])
      t.match(await client.post(SUBTITLES, { video_url }), invalid, String(video_url))
  }),
  statement('A clip costs 48 flat, without a duration, where it succeeds', async (t, world) => {
    const { client, clip } = await recognised(world)
    const submitted = await client.post(VIDEOS, { ...clip, video_style_id: 'sim-style-bold' })
    t.equal((await client.balance()).held, '48')
    t.match(await client.ended(`${VIDEOS}/${submitted.body.id}`), { status: 'succeeded', video_url: /^http/ })
    t.equal((await client.row(submitted)).cost, '48')
    t.equal(await client.remaining('952'), '952')
  }),
  statements(
    CLIP_FIELDS,
    ([what, , isTaken]) => `A clip with ${what} ${isTaken ? 'is taken' : 'is 400'}`,
    async (t, world, [, more, isTaken]) => {
      const { client, clip } = await recognised(world)
      const answer = await client.post(VIDEOS, { ...clip, ...more })
      if (isTaken) t.equal(answer.status, 200, answer.text)
      else t.match(answer, invalid)
      if (!isTaken) t.equal((await client.balance()).held, '0')
    },
  ),
  statement('A title is cut to 30 characters, and effects have their defaults', async (t, world) => {
    const { client, clip } = await recognised(world)
    const title = client.keyId.padEnd(40, 'x')
    await client.post(VIDEOS, { ...clip, title })
    const { input } = await world.receivedWith(client.keyId)
    t.equal(input.title, title.slice(0, 30))
    t.same(
      [
        input.enable_title_effect ?? false,
        input.enable_caption_effect ?? true,
        input.enable_keyword_effect ?? true,
      ],
      [false, true, true],
    )
  }),
  statement('Edited sentences keep their number and order; only their content counts', async (t, world) => {
    const { client, clip, recognition } = await recognised(world)
    const sentences = recognition.sentences.map((line: object, index: number) => ({
      ...line,
      content: `Line ${index}`,
      showRange: [9, 1],
    }))
    t.equal((await client.post(VIDEOS, { ...clip, sentences })).status, 200)
    const fewer = await client.post(VIDEOS, { ...clip, sentences: sentences.slice(1) })
    t.match(fewer, invalid)
    t.match(fewer.body.error.message, String(sentences.length))
    const empty = sentences.map((line: object) => ({ ...line, content: ' ' }))
    t.match(await client.post(VIDEOS, { ...clip, sentences: empty }), invalid)
  }),
  statement('Another video than the recognised one is refused', async (t, world) => {
    const { client, clip } = await recognised(world)
    t.match(await client.post(VIDEOS, { ...clip, video_url: link('another.mp4') }), invalid)
  }),
  statement('A key needs clip-compose for templates, categories and subtitles too', async (t, world) => {
    const limited = await world.client('100', { allowedModels: ['clip-subtitle', 'demo-video'] })
    for (const path of [TEMPLATES, `${TEMPLATES}/categories`, `${SUBTITLES}/asr_1`])
      t.match(await limited.get(path), notAllowed, path)
    t.match(await limited.post(SUBTITLES, { video_url: link('a.mp4') }), notAllowed)
    const { client, clip } = await recognised(world, ['clip-compose'])
    t.equal((await client.post(VIDEOS, clip)).status, 200)
    t.equal((await client.get(TEMPLATES)).status, 200)
  }),
  statement('A model that the allowlist leaves out is 403 on these endpoints', async (t, world) => {
    const limited = await world.client('1000', { allowedModels: ['demo-image'] })
    for (const model of ['dh-avatar', 'dh-lipsync', 'dh-motion'])
      t.match(await submit(limited, model), notAllowed, model)
    t.match(await register(limited), notAllowed)
  }),
])
