/** Avatars and clips, from the request to the settled row, with the demonstration's models and prices. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { rowOf } from '../support.ts'
import {
  ABSENT,
  type Answer,
  checkEntries,
  checkWallet,
  codeOf,
  demonstration,
  finishUpstream,
  INVALID,
  linkTo,
  type MediaClient,
  messageOf,
  NOT_ALLOWED,
  newClient,
  ULID,
} from './support.ts'

const VIDEOS = '/v1/videos/generations'
const AVATARS = '/v1/videos/avatars'
const VOICES = '/v1/audio/voices'
const SUBTITLES = '/v1/videos/clip-subtitles'
const TEMPLATES = '/v1/videos/clip-templates'
const LINK = 'https://example.com'
const AUDIO = `${LINK}/words.mp3`
const QUICK = 'delay=300,queue=50'

const made = (answer: Answer): string => {
  if (answer.status >= 300) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`)
  return answer.body.id as string
}
const videoOf = async (client: MediaClient, body: object) => {
  const id = made(await client.post(VIDEOS, body))
  return client.ended(`${VIDEOS}/${id}`)
}

t.test('avatars and clips', async (t) => {
  const service = await borrowService(t, demonstration())
  const timeFor = async (id: string) => {
    const [task] = await service.database.tasks.read([id])
    return task!.deadlineAt - task!.submittedAt
  }

  await t.test('an avatar is registered, gets ready, speaks and is deleted', async (t) => {
    const client = await newClient(service, '1000')
    const request = { name: 'Ada', source_url: linkTo('ada.png', 'delay=600000,queue=100') }
    const registered = await client.post(AVATARS, request)
    const sample = linkTo('ada.mp3', 'delay=600000,queue=100')
    const voice = made(await client.post(VOICES, { name: 'Ada', audio_url: sample, async: true }))
    const id = made(registered)
    t.match(id, new RegExp(`^ava_${ULID}$`))
    const { created_at } = registered.body
    const pending = { id, name: 'Ada', source_kind: 'image', status: 'pending', error: null, created_at }
    t.strictSame(registered.body, pending)
    t.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const speech = { model: 'dh-avatar', avatar: id, audio_url: AUDIO, duration: 4 }
    const early = await client.post(VIDEOS, speech)
    t.same(codeOf(early), INVALID)
    t.match(messageOf(early), /'avatar'.*not ready/)
    const hoarse = { model: 'dh-avatar', avatar: 'sim-face-jon', voice, text: 'Hello.', duration: 1 }
    t.match(messageOf(await client.post(VIDEOS, hoarse)), /'voice'.*not ready/)
    t.same(codeOf(await client.ask('DELETE', `${AVATARS}/${id}`)), INVALID, 'the record is evidence')
    t.match((await client.get('/v1/key/balance')).body, { held: '260.55' })

    const presets = (await client.get(`${AVATARS}/presets`)).body
    t.match(presets, { avatars: [{ id: 'sim-face-mei', name: 'Mei' }] })
    t.strictSame(Object.keys(presets), ['avatars'])
    const failing = {
      name: 'Eve',
      source_url: linkTo('eve.mp4', `${QUICK},outcome=fail`),
      source_kind: 'video',
    }
    const failed = made(await client.post(AVATARS, failing))
    t.match(await client.ended(`${AVATARS}/${failed}`), {
      status: 'failed',
      source_kind: 'video',
      error: 'The work failed: simulated.',
    })
    await checkEntries(t, service, client, failed, { held: '220.11', charged: null })
    for (const one of [id, voice]) await finishUpstream(service, one)
    t.strictSame(await client.ended(`${AVATARS}/${id}`), { ...pending, status: 'ready' })
    t.match((await client.get(AVATARS)).body, {
      object: 'list',
      avatars: [{ id: failed }, { id }],
      has_more: false,
    })
    await checkEntries(t, service, client, id, { held: '220.11', charged: '220.11' })
    t.match(await rowOf(service, client.key, registered.trace), {
      status: 'success',
      model: 'dh-avatar-create',
      cost: '220.11',
      unit_type: 'avatar',
      unit_count: 1,
      task_id: id,
    })

    const speak = {
      model: 'dh-avatar',
      voice: 'sim-voice-ada',
      text: `Good morning. [simulate: ${QUICK},seconds=2]`,
    }
    t.match(await client.ended(`${VOICES}/${voice}`), { status: 'ready' })
    const [own, preset, heard, cloned] = await Promise.all([
      videoOf(client, { ...speech, ...speak, audio_url: undefined }),
      videoOf(client, { ...speak, avatar: 'sim-face-jon', duration: 5 }),
      videoOf(client, { ...speech, audio_url: linkTo('a.mp3', `${QUICK},seconds=3`) }),
      videoOf(client, { ...speech, ...speak, audio_url: undefined, voice }),
    ])
    for (const task of [own, preset, heard, cloned])
      t.match(task, { status: 'succeeded', model: 'dh-avatar' })
    await checkEntries(t, service, client, own.id as string, { held: '15.84', charged: '7.92' })
    await checkEntries(t, service, client, preset.id as string, { held: '19.8', charged: '7.92' })
    await checkEntries(t, service, client, heard.id as string, { held: '15.84', charged: '11.88' })

    const stranger = await newClient(service, '1000')
    for (const [body, field] of [
      [speech, 'avatar'],
      [{ ...speech, avatar: failed }, 'avatar'],
      [{ ...speak, avatar: 'sim-face-jon', voice: 'nobody', duration: 1 }, 'voice'],
    ] as const) {
      const answer = await (body === speech ? stranger : client).post(VIDEOS, body)
      t.same(codeOf(answer), INVALID)
      t.match(messageOf(answer), `'${field}'`)
    }
    for (const name of ['', 'a'.repeat(21)])
      t.same(codeOf(await client.post(AVATARS, { ...request, name })), INVALID, `a name of ${name.length}`)
    t.same(codeOf(await client.post(AVATARS, { name: 'Ada', source_url: 'file:///etc/passwd' })), INVALID)
    t.same(codeOf(await client.post(AVATARS, { ...request, source_kind: 'song' })), INVALID)
    t.same(codeOf(await stranger.get(`${AVATARS}/${id}`)), ABSENT)
    t.same(codeOf(await stranger.ask('DELETE', `${AVATARS}/${id}`)), ABSENT)
    t.match(await client.ask('DELETE', `${AVATARS}/${id}`), { status: 200, body: { id, deleted: true } })
    t.same(codeOf(await client.get(`${AVATARS}/${id}`)), ABSENT)
    t.same(codeOf(await client.post(VIDEOS, speech)), INVALID, 'what was deleted cannot speak')
    await checkWallet(t, service, client, '1000', ['220.11', '40.44', '7.92', '7.92', '11.88', '7.92'])
  })

  await t.test('templates and categories are listed as they are', async (t) => {
    const client = await newClient(service, '1', { allowedModels: ['clip-compose'] })
    const { body } = await client.get(TEMPLATES)
    t.strictSame(Object.keys(body), ['list', 'sid', 'api_version'])
    t.match(body, { sid: '', api_version: 'old', list: { length: 3 } })
    t.match(body.list, [
      {
        style_id: 'sim-style-bold',
        name: 'Bold',
        cover_url: /^http/,
        demo_url: /^http/,
        cate_name: 'Talk',
        scene: 'vertical',
      },
    ])
    const categories = (await client.get(`${TEMPLATES}/categories`)).body
    t.strictSame(categories.list, [
      { cate_id: 'sim-cate-talk', cate_name: 'Talk', sort: 1 },
      { cate_id: 'sim-cate-food', cate_name: 'Food', sort: 2 },
    ])
    t.match((await client.get(`${TEMPLATES}?cate_id=sim-cate-food`)).body.list, [
      { style_id: 'sim-style-crust' },
    ])
    t.same((await client.get(`${TEMPLATES}?cate_id=nothing`)).body.list, [])
  })

  await t.test('subtitles are recognised, edited and composed', async (t) => {
    // A key that may compose may use all that belongs to it.
    const client = await newClient(service, '100', { allowedModels: ['clip-compose'] })
    const video_url = linkTo('talk.mp4', QUICK)
    const recognised = await client.post(SUBTITLES, { video_url })
    t.equal(recognised.status, 200)
    const { asr_id, segments } = recognised.body as { asr_id: string; segments: { content: string }[] }
    t.match(asr_id, new RegExp(`^asr_${ULID}$`))
    t.strictSame(recognised.body, {
      model: 'clip-subtitle',
      api_version: 'old',
      asr_id,
      segments,
      sentences: segments,
    })
    t.match(segments, [{ showRange: [0, 1800], content: String }])
    t.equal(await timeFor(asr_id), 240_000, 'a waiting client is answered within 240 seconds')
    t.match(await rowOf(service, client.key, recognised.trace), {
      status: 'success',
      cost: '0',
      unit_count: 1,
      task_id: asr_id,
    })

    const compose = { model: 'clip-compose', video_url, asr_id, video_style_id: 'sim-style-bold' }
    const sentences = segments.map((line, index) => ({
      ...line,
      content: `Line ${index}`,
      showRange: [9, 1],
    }))
    const full = {
      ...compose,
      title: 'x'.repeat(40),
      name_card: { name: 'Ada', description: 'Baker' },
      music_url: AUDIO,
      sentences,
      pip_config: [{ media_url: `${LINK}/dough.jpg`, begin_time: 500, end_time: 900 }],
    }
    const task = await videoOf(client, full)
    t.match(task, { status: 'succeeded', model: 'clip-compose', video_url: String, duration_sec: 12 })
    await checkEntries(t, service, client, task.id as string, { held: '48', charged: '48' })
    t.match(await rowOf(service, client.key, task.id as string), {
      unit_type: 'video',
      unit_count: 1,
      cost: '48',
    })

    const picture = { media_url: `${LINK}/a.jpg`, begin_time: 5, end_time: 5 }
    const wrong: readonly (readonly [object, RegExp])[] = [
      [{ ...compose, sentences: sentences.slice(1) }, /'sentences'.*4 lines expected/],
      [
        { ...compose, sentences: sentences.map((line) => ({ ...line, content: ' ' })) },
        /'sentences\[0\]\.content'/,
      ],
      [{ ...compose, video_style_id: 'sim-style-gone' }, /'video_style_id'.*withdrawn/],
      [{ ...compose, asr_id: `asr_${'0'.repeat(26)}` }, /'asr_id'.*recognise the subtitles again/],
      [{ ...compose, asr_id: undefined }, /'asr_id'/],
      [{ ...compose, name_card: { name: 'n'.repeat(21) } }, /'name_card\.name'/],
      [{ ...compose, name_card: { name: 'n', description: 'd'.repeat(41) } }, /'name_card\.description'/],
      [{ ...compose, pip_config: [picture] }, /'pip_config\[0\]\.end_time'/],
      [{ ...compose, pip_config: Array(21).fill({ ...picture, end_time: 6 }) }, /'pip_config'/],
      [{ ...compose, music_url: 'ftp://example.com/a.mp3' }, /'music_url'/],
    ]
    for (const [body, message] of wrong) {
      const answer = await client.post(VIDEOS, body)
      t.same(codeOf(answer), INVALID, message.source)
      t.match(messageOf(answer), message)
    }
    const stranger = await newClient(service, '100')
    t.same(codeOf(await stranger.post(VIDEOS, compose)), INVALID, "another account's recognition")
    t.same(codeOf(await stranger.get(`${SUBTITLES}/${asr_id}`)), ABSENT)
    await checkWallet(t, service, client, '100', ['48'])
  })

  await t.test('a recognition that is polled; one that fails costs nothing', async (t) => {
    const client = await newClient(service, '100')
    const submitted = await client.post(SUBTITLES, {
      video_url: linkTo('a.mp4', 'delay=600000'),
      async: true,
    })
    t.equal(submitted.status, 202)
    const id = made(submitted)
    t.strictSame(submitted.body, {
      id,
      object: 'clip_subtitle',
      model: 'clip-subtitle',
      status: 'running',
      asr_id: id,
      api_version: 'old',
    })
    t.equal(await timeFor(id), 25 * 60_000, 'a polling client gives it 25 minutes')
    const running = await client.get(`${SUBTITLES}/${id}`)
    t.match(running.body, {
      id,
      status: 'running',
      asr_id: id,
      segments: { length: 0 },
      sentences: { length: 0 },
      error: null,
    })
    const video_url = linkTo('a.mp4', QUICK)
    t.match(
      messageOf(await client.post(VIDEOS, { model: 'clip-compose', video_url, asr_id: id })),
      /not finished/,
    )
    const mute = linkTo('mute.mp4', `${QUICK},outcome=fail,code=no_speech`)
    const silent = await client.post(SUBTITLES, { video_url: mute })
    t.same(codeOf(silent), INVALID, 'nobody speaks')
    t.match(await rowOf(service, client.key, silent.trace), {
      status: 'error',
      error_code: 'invalid_request',
      cost: '0',
    })
    const failed = made(await client.post(SUBTITLES, { video_url: mute, async: true }))
    t.match(await client.ended(`${SUBTITLES}/${failed}`), { status: 'failed', error: { code: 'no_speech' } })
    t.match(
      messageOf(await client.post(VIDEOS, { model: 'clip-compose', video_url, asr_id: failed })),
      /failed/,
    )
    await finishUpstream(service, id)
    const done = await client.ended(`${SUBTITLES}/${id}`)
    t.match(done, { id, status: 'succeeded', segments: { length: 4 }, sentences: { length: 4 }, error: null })
    t.same(codeOf(await client.post(SUBTITLES, { video_url: 'nothing' })), INVALID)
    await checkWallet(t, service, client, '100', [])
  })

  await t.test('a key that may not compose clips may use nothing of them', async (t) => {
    const limited = await newClient(service, '100', { allowedModels: ['clip-subtitle', 'demo-video'] })
    for (const path of [TEMPLATES, `${TEMPLATES}/categories`, `${SUBTITLES}/asr_x`])
      t.same(codeOf(await limited.get(path)), NOT_ALLOWED, path)
    t.same(codeOf(await limited.post(SUBTITLES, { video_url: AUDIO })), NOT_ALLOWED)
    t.same(codeOf(await limited.post(VIDEOS, { model: 'clip-compose' })), NOT_ALLOWED)
  })

  await t.test('whatever is wrong with a request, its row says which model it was for', async (t) => {
    const client = await newClient(service, '100')
    const broke = await newClient(service, '0')
    const endpoints = [
      [AVATARS, 'dh-avatar-create'],
      [SUBTITLES, 'clip-subtitle'],
      [VOICES, 'voice-clone-pro'],
      ['/v1/transcripts/extract', 'video-transcript'],
    ] as const
    const rows = endpoints.map(async ([path, model]) => {
      const refused = await client.post(path, { model: 'other' })
      t.same(codeOf(refused), INVALID)
      t.match(await rowOf(service, client.key, refused.trace), { model, status: 'rejected' })
      const { trace } = await broke.post(path, {})
      t.match(await rowOf(service, broke.key, trace), { model, error_code: 'quota_exceeded' })
    })
    await Promise.all(rows)
  })
})
