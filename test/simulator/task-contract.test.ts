import t from 'tap'
import type { Json } from './dialects-support.ts'
import { readMp3, readMp4, readPng } from './media/probe.ts'
import { isCut, KEYED, type MediaClient, mediaClient, textAt } from './media-support.ts'

const client = await mediaClient(t)

const TASKS = '/task/tasks'
const LIPSYNC = {
  source_video: 'https://example.com/face.mp4',
  audio: 'https://example.com/words.mp3',
  duration: 12,
}

let references = 0
/** A request with a reference that no other has. */
function work(kind: string, input: object, model = 'sim-studio', reference = `ref_${++references}`) {
  return { reference, kind, model, input }
}

/** Submits work that is done at once, and gives its result. */
async function resultOf(client: MediaClient, kind: string, input: object, directives = ''): Promise<Json> {
  const body = work(kind, input, `sim-studio@delay=0${directives}`)
  const { json } = await client.post(TASKS, body)
  if (json.state !== ('succeeded' as unknown)) throw new Error(JSON.stringify(json))
  return json.result as Json
}

t.test('a task goes from queued to running to its end, and is reported the same way each time', async (t) => {
  const submitted = await client.post(TASKS, work('lipsync', LIPSYNC, 'sim-studio@delay=60,queue=20'))
  t.equal(submitted.status, 200)
  t.match(submitted.json, { id: /^t-[0-9a-f]{32}$/, state: /queued|running/ })
  const path = `${TASKS}/${textAt(submitted.json, 'id')}`
  const done = await client.until(path, ({ json }) => textAt(json, 'state') === 'succeeded')
  t.match(done.json, { result: { video_url: /^http/, duration_sec: 12, input_video_duration_sec: 12 } })
  t.same((await client.get(path)).json, done.json)
  const [task] = await client.tasks()
  t.match(task, { kind: 'lipsync', state: 'succeeded', ended_at: /Z$/ })
  t.ok((task?.polls ?? 0) >= 2)
})

t.test('every kind delivers real files of what was asked for', async (t) => {
  const bytes = async (link: Json | undefined) => (await client.get(String(link))).bytes

  const transcript = await resultOf(client, 'transcript', { url: 'look: https://v.example.com/Xy/ !' })
  t.match(transcript, { content: /\S/, platform: 'v.example.com', duration_sec: 63.2 })
  t.match(readPng(await bytes(transcript.cover)), { width: 512 })

  const avatar = { name: 'Ada', source: 'https://example.com/a.png', source_kind: 'image' }
  const { avatar_id } = await resultOf(client, 'avatar', avatar)
  const { voice_id } = await resultOf(client, 'voice', { name: 'Ada', audio: 'https://example.com/a.mp3' })
  const speech = { avatar: avatar_id, voice: voice_id, text: 'Good morning.', duration: 3 }
  const spoken = await resultOf(client, 'avatar_video', speech)
  t.match(readMp4(await bytes(spoken.video_url)), { width: 540, height: 960, seconds: 3 })

  const portraits = ['https://example.com/a.png']
  const motion = {
    source_video: LIPSYNC.source_video,
    portraits,
    face_count: 1,
    resolution: 'max',
    duration: 8,
  }
  const moved = await resultOf(client, 'motion', motion, ',seconds=7.5,input_seconds=9')
  t.match(moved, { duration_sec: 7.5, input_video_duration_sec: 9 })
  t.equal(readMp4(await bytes(moved.video_url)).seconds, 7.5)

  const content = [{ type: 'text', text: 'The dough rises.' }]
  const film = await resultOf(client, 'video', { content, duration: 2, resolution: '480p', ratio: '1:1' })
  t.match(film, { width: 480, height: 480, duration_sec: 2 })
  t.match(readMp4(await bytes(film.video_url)), { width: 480, height: 480, seconds: 2 })

  const { asr_id, segments } = await resultOf(client, 'subtitle', { video: LIPSYNC.source_video })
  t.match(segments, [{ showRange: [0, 1800], content: /\S/ }])
  const flags = { enable_title_effect: true, enable_caption_effect: true, enable_keyword_effect: false }
  const clip = { video: LIPSYNC.source_video, asr_id, video_style_id: 'sim-style-bold', ...flags }
  t.match(await resultOf(client, 'clip_compose', clip), { video_url: /\.mp4$/ })

  const said = await resultOf(client, 'speech', { input: 'x'.repeat(60), speed: 1 })
  t.equal(readMp3(await bytes(said.audio_url)).seconds, Number(said.duration_sec))

  const image = { prompt: 'A loaf', n: 3, size: '640x480' }
  const { images } = await resultOf(client, 'image', image, ',partial=2')
  t.match(images, [{ width: 640, height: 480 }, { url: /^http/ }, {}])
  t.match(readPng(await bytes(images?.[0]?.url)), { width: 640, height: 480 })
  t.equal(images?.[2]?.url, undefined)
})

t.test('two songs come of a generation, and one alone has a sound where it is asked to', async (t) => {
  const song = { prompt: 'Bread', instrumental: false }
  const whole = await resultOf(client, 'music', song, ',seconds=30')
  const [first, second] = whole.tracks as unknown as Json[]
  for (const track of [first, second]) {
    t.match(track, { clip_id: /\S/, title: /\S/, lyrics: /Bread/, duration_sec: 30 })
    t.equal(readMp3((await client.get(String(track?.audio_url))).bytes).seconds, 30)
  }
  const half = await resultOf(client, 'music', song, ',partial=1')
  t.match(half.tracks, [{ audio_url: /mp3$/ }, { clip_id: /\S/ }])
  t.equal(half.tracks?.[1]?.audio_url, undefined)
  t.equal((await resultOf(client, 'music', song, ',no_seconds')).tracks?.[0]?.duration_sec, undefined)
})

t.test('a task ends as its directives say, or never', async (t) => {
  const ended = async (directives: string) => {
    const model = `sim-studio@delay=0,${directives}`
    return (await client.post(TASKS, work('lipsync', LIPSYNC, model))).json
  }
  t.match(await ended('outcome=fail'), { state: 'failed', error: { code: 'generation_failed' } })
  t.match(await ended('outcome=fail,code=no_speech'), { state: 'failed', error: { code: 'no_speech' } })
  t.match(await ended('outcome=moderation'), { state: 'failed', error: { code: 'content_policy' } })
  t.match(await ended('outcome=expire'), { state: 'expired' })
  t.match(await ended('outcome=cancel'), { state: 'cancelled' })
  t.match(await ended('outcome=unknown_state'), { state: 'resting' })
  t.match(await ended('outcome=stuck'), { state: 'running' })
  t.equal((await ended('outcome=fail')).result, undefined)
})

t.test('directives stand in the texts and in the links of an input too', async (t) => {
  const state = async (kind: string, input: object) =>
    (await client.post(TASKS, work(kind, input))).json.state
  const text = { input: 'Hello [simulate: delay=0; outcome=fail]', speed: 1 }
  t.equal(await state('speech', text), 'failed')
  const link = 'https://example.com/talk.mp4?a=1&simulate=delay%3D0%2Coutcome%3Dexpire'
  t.equal(await state('subtitle', { video: link }), 'expired')
})

t.test('a reference is taken on once', async (t) => {
  const body = work('lipsync', LIPSYNC, 'sim-studio@outcome=stuck', 'ref_once')
  const first = await client.post(TASKS, body)
  const second = await client.post(TASKS, body)
  t.equal(second.status, 200)
  t.equal(second.json.id, first.json.id)
  const other = await client.post(TASKS, { ...body, input: { ...LIPSYNC, duration: 13 } })
  t.equal(other.status, 400)
  t.match(other.json, { error: { code: 'reference_reuse' } })
  t.equal((await client.tasks('reference=ref_once')).length, 1)
  t.equal((await client.submits('reference=ref_once')).length, 3)
})

t.test('an answer that is cut leaves a task, found by its reference; a refused one does not', async (t) => {
  const cut = work('lipsync', LIPSYNC, 'sim-studio@accept_then_cut,outcome=stuck')
  t.ok(await isCut(client.post(TASKS, cut)))
  const found = await client.get(`${TASKS}?reference=${cut.reference}`)
  t.match(found, { status: 200, json: { id: /^t-/, state: /queued|running/ } })
  t.match(await client.submits(`reference=${cut.reference}`), [{ task_id: found.json.id }])

  const reset = work('lipsync', LIPSYNC, 'sim-studio@fault=reset:head')
  t.ok(await isCut(client.post(TASKS, reset)))
  t.match(await client.submits(`reference=${reset.reference}`), [{ task_id: null }])
  const missing = await client.get(`${TASKS}?reference=${reset.reference}`)
  t.match(missing, { status: 404, json: { error: { code: 'not_found' } } })
  const late = await client.post(TASKS, { ...reset, model: 'sim-studio' })
  t.equal(late.status, 409, 'what was denied is not taken on later')
})

t.test('faults strike submits, polls, searches and files, each so often as it is said', async (t) => {
  const client = await mediaClient(t)
  for (const [status, code] of [
    [429, 'rate_limited'],
    [500, 'generation_failed'],
    [503, 'quota_exhausted'],
  ] as const) {
    const failed = await client.post(TASKS, work('lipsync', LIPSYNC, `sim-studio@fault=status:${status}`))
    t.match(failed, { status, json: { error: { code } } })
  }
  t.equal((await client.tasks()).length, 0)

  const later = 'poll_fault=status:500,file_fault=reset:100,times=1'
  const body = work('lipsync', LIPSYNC, `sim-studio@delay=0,${later}`)
  const { json } = await client.post(TASKS, body)
  const poll = () => client.get(`${TASKS}/${textAt(json, 'id')}`)
  t.same([(await poll()).status, (await poll()).status], [500, 200])
  t.equal((await client.get(`${TASKS}?reference=${body.reference}`)).status, 200)
  const link = textAt(json, 'result', 'video_url')
  t.ok(await isCut(client.get(link)))
  t.equal(readMp4((await client.get(link)).bytes).seconds, 12)
})

t.test('a file that is not there is not found', async (t) => {
  t.equal((await client.get('/files/none.mp4')).status, 404)
})

t.test('only a queued task is cancelled', async (t) => {
  const client = await mediaClient(t)
  const queued = await client.post(TASKS, work('lipsync', LIPSYNC, 'sim-studio@queue=600000'))
  const path = `${TASKS}/${textAt(queued.json, 'id')}/cancel`
  for (const _ of [1, 2]) t.match(await client.post(path), { status: 200, json: { state: 'cancelled' } })
  t.match(await client.tasks(), [{ state: 'cancelled', cancels: 2 }])
  const running = await client.post(TASKS, work('lipsync', LIPSYNC, 'sim-studio@queue=0,outcome=stuck'))
  const refused = await client.post(`${TASKS}/${textAt(running.json, 'id')}/cancel`)
  t.match(refused, { status: 409, json: { error: { code: 'not_cancellable' } } })
  t.equal((await client.post(`${TASKS}/t-none/cancel`)).status, 404)
})

t.test('what does not keep to the contract is refused, and the field is named', async (t) => {
  const content = [{ type: 'text', text: 'x' }]
  const flags = { enable_title_effect: false, enable_caption_effect: true, enable_keyword_effect: true }
  const clip = { video: LIPSYNC.source_video, asr_id: 'asr-1', ...flags }
  const pip = { media: 'https://example.com/a.png', begin_time: 5, end_time: 5 }
  const refused: [object, number, string, RegExp][] = [
    [work('lipsync', { ...LIPSYNC, audio: null }), 400, 'invalid_input', /input.audio/],
    [work('lipsync', { ...LIPSYNC, audio: 'file:///etc/passwd' }), 400, 'invalid_input', /input.audio/],
    [work('video', { content, seed: null }), 400, 'invalid_input', /input.seed/],
    [work('video', { content: [] }), 400, 'invalid_input', /input.content/],
    [work('music', { instrumental: false }), 400, 'invalid_input', /input/],
    [work('opera', {}), 400, 'invalid_input', /kind/],
    [work('avatar_video', { avatar: 'sim-face-mei', duration: 3 }), 400, 'invalid_input', /audio, or voice/],
    [work('speech', { input: 'x', voice: 'nobody', speed: 1 }), 400, 'invalid_input', /voice/],
    [work('clip_compose', { ...clip, video_style_id: 'none' }), 400, 'template_withdrawn', /template/],
    [work('clip_compose', { ...clip, asr_id: 'old' }), 400, 'asr_expired', /recognition/],
    [work('clip_compose', { ...clip, pip_config: [pip] }), 400, 'invalid_input', /pip_config.0.end_time/],
    [work('lipsync', LIPSYNC, 'other'), 404, 'not_found', /other/],
    [{ ...work('lipsync', LIPSYNC), reference: 'a b' }, 400, 'invalid_input', /reference/],
  ]
  for (const [body, status, code, message] of refused)
    t.match(await client.post(TASKS, body), { status, json: { error: { code, message } } }, code)
  const asked = work('lipsync', LIPSYNC, 'sim-studio@outcome=refuse,code=quota_exhausted')
  t.match(await client.post(TASKS, asked), { status: 503, json: { error: { code: 'quota_exhausted' } } })
  const bad = { authorization: 'Bearer sim-bad-key' }
  for (const headers of [bad, {}]) {
    const stranger = await client.post(TASKS, work('lipsync', LIPSYNC), headers)
    t.match(stranger, { status: 401, json: { error: { code: 'unauthorized' } } })
  }
  t.equal((await client.get(`${TASKS}/t-none`)).status, 404)
})

t.test('presets, templates and categories are there for everybody', async (t) => {
  t.match((await client.get('/task/presets?kind=avatar')).json, {
    presets: [{ id: 'sim-face-mei', name: 'Mei' }],
  })
  t.match((await client.get('/task/presets?kind=voice')).json, { presets: [{ id: 'sim-voice-ada' }] })
  t.equal((await client.get('/task/presets')).status, 400)
  const { json } = await client.get('/task/clip-templates')
  t.equal((json.list as unknown as Json[]).length, 3)
  t.equal(readPng((await client.get(textAt(json, 'list', 0, 'cover_url'))).bytes).width, 270)
  t.equal(readMp4((await client.get(textAt(json, 'list', 0, 'demo_url'))).bytes).seconds, 3)
  const food = await client.get('/task/clip-templates?cate_id=sim-cate-food')
  t.match(food.json.list, [{ style_id: 'sim-style-crust', cate_name: 'Food', scene: 'vertical' }])
  t.match((await client.get('/task/clip-templates/categories', KEYED)).json, {
    list: [
      { cate_id: 'sim-cate-talk', sort: 1 },
      { cate_id: 'sim-cate-food', sort: 2 },
    ],
  })
})

t.test('a test ends an open task by hand', async (t) => {
  for (const state of ['succeeded', 'failed', 'expired']) {
    const { json } = await client.post(TASKS, work('lipsync', LIPSYNC, 'sim-studio@outcome=stuck'))
    const id = textAt(json, 'id')
    t.match((await client.post(`/simulator/tasks/${id}/end?state=${state}`)).json, { id, state })
    t.match((await client.get(`${TASKS}/${id}`)).json, { state })
  }
  t.equal((await client.post('/simulator/tasks/none/end')).status, 404)
  t.equal((await client.remove('/simulator/tasks')).status, 204)
  t.same(await client.tasks(), [])
})
