/** Videos of every model, from the request to the settled row, with the demonstration's models and prices. */
import { dirname, join } from 'node:path'
import t from 'tap'
import { tollgate } from '../../src/cli/support.ts'
import { borrowService } from '../../support/lend-services.ts'
import { TEST_MASTER_KEY } from '../../support/service.ts'
import { eventually } from '../../support/service-client.ts'
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
  KEY_REUSED,
  linkTo,
  type MediaClient,
  messageOf,
  NO_CHANNEL,
  NO_CREDIT,
  NO_MODEL,
  NOT_ALLOWED,
  NOT_CANCELLABLE,
  newClient,
  ULID,
} from './support.ts'

const VIDEOS = '/v1/videos/generations'
const AVATARS = '/v1/videos/avatars'
const SUBTITLES = '/v1/videos/clip-subtitles'
const TEMPLATES = '/v1/videos/clip-templates'
const LINK = 'https://example.com'
const AUDIO = `${LINK}/words.mp3`
const FACE = `${LINK}/face.mp4`
const QUICK = 'delay=300,queue=50'

/** The prices of the film are planned ones that hold by now; before them it had one price for all resolutions. */
const asPlanned = (yaml: string): string =>
  yaml.replace(
    /(id: demo-video-film[\s\S]*?unit: second, )(per_unit: "5", variants: \{[^}]*\})/,
    '$1per_unit: "9", changes: [{ from: "2026-01-01T00:00:00Z", $2 }]',
  )

t.test('videos', async (t) => {
  const service = await borrowService(t, demonstration(asPlanned))
  const made = (answer: Answer): string => {
    if (answer.status !== 200) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`)
    return answer.body.id as string
  }
  const make = async (client: MediaClient, body: object) => made(await client.post(VIDEOS, body))
  const ended = (client: MediaClient, id: string) => client.ended(`${VIDEOS}/${id}`)

  await t.test('an ordinary video is held, made, stored, charged by length and found again', async (t) => {
    const client = await newClient(service, '100')
    const body = {
      model: 'demo-video',
      prompt: `A fox [simulate: ${QUICK},seconds=4.5]`,
      duration: 6,
      seed: 7,
    }
    const intent = { 'idempotency-key': 'fox-1' }
    const submitted = await client.post(VIDEOS, body, intent)
    t.equal(submitted.status, 200)
    const id = made(submitted)
    t.match(id, new RegExp(`^vid_${ULID}$`))
    const { created_at } = submitted.body
    t.strictSame(submitted.body, { id, status: 'queued', model: 'demo-video', created_at })
    t.type(created_at, 'number')
    const again = await client.post(VIDEOS, body, intent)
    t.strictSame(again.body, submitted.body, 'the same intent is answered again')
    t.equal(again.headers.get('idempotency-replayed'), 'true')
    const other = await client.post(VIDEOS, { ...body, duration: 7 }, intent)
    t.same(codeOf(other), KEY_REUSED)

    const task = await ended(client, id)
    t.match(task, { id, status: 'succeeded', model: 'demo-video', created_at, duration_sec: 4.5 })
    t.notOk('input_video_duration_sec' in task)
    const inSevenDays = Date.now() / 1000 + 7 * 24 * 60 * 60
    t.ok(Math.abs((task.expires_at as number) - inSevenDays) < 60, 'the link opens for seven days')
    const file = await fetch(task.video_url as string)
    t.equal(file.headers.get('content-type'), 'video/mp4')
    t.equal(Buffer.from(await file.arrayBuffer()).toString('latin1', 4, 8), 'ftyp', 'what is there is an MP4')
    const list = (await client.get(VIDEOS)).body
    t.match(list, {
      object: 'list',
      has_more: false,
      data: [{ id, status: 'succeeded', duration_sec: 4.5 }],
    })
    t.equal((list.data as unknown[]).length, 1, 'one intent is one task')

    await checkEntries(t, service, client, id, { held: '27', charged: '20.25' })
    t.match(await rowOf(service, client.key, submitted.trace), {
      status: 'success',
      model: 'demo-video',
      cost: '20.25',
      unit_type: 'video',
      unit_count: 4.5,
      task_id: id,
      attempts_count: null,
      result_urls: [/\/files\/videos\/vid_/],
    })
    await checkWallet(t, service, client, '100', ['20.25'])
  })

  await t.test('digital humans and motion cost what their grade costs, by the length made', async (t) => {
    const client = await newClient(service, '1000')
    const lips = { source_video_url: FACE, duration: 10 }
    const cases: readonly (readonly [object, string, string])[] = [
      [
        { model: 'dh-lipsync', audio_url: linkTo('a.mp3', `${QUICK},seconds=7.25`), ...lips },
        '40.4',
        '29.29',
      ],
      [
        { model: 'dh-lipsync-pro', audio_url: linkTo('a.mp3', `${QUICK},no_seconds`), ...lips },
        '80.9',
        '80.9',
      ],
      [
        { model: 'dh-lipsync-max', audio_url: linkTo('a.mp3', `${QUICK},seconds=1`), ...lips },
        '121.3',
        '12.13',
      ],
      ...(['fast', 'standard', 'max'] as const).map((resolution, index): [object, string, string] => [
        {
          model: 'dh-motion',
          source_video_url: linkTo('dance.mp4', `${QUICK},seconds=5,input_seconds=6`),
          content: [{ type: 'image_url', image_url: { url: `${LINK}/a.png` } }],
          // Standard is what it is where nothing is said.
          ...(resolution !== 'standard' && { resolution }),
          face_count: 1,
          duration: 4,
        },
        ['16.16', '32.36', '48.52'][index]!,
        ['20.2', '40.45', '60.65'][index]!,
      ]),
    ]
    const ids = await Promise.all(cases.map(([body]) => make(client, body)))
    for (const [index, id] of ids.entries()) {
      const [body, held, charged] = cases[index]!
      const task = await ended(client, id)
      t.match(task, { status: 'succeeded', model: (body as { model: string }).model, video_url: String })
      await checkEntries(t, service, client, id, { held, charged })
    }
    t.match(await ended(client, ids[3]!), { duration_sec: 5, input_video_duration_sec: 6 })
    t.notOk('duration_sec' in (await ended(client, ids[1]!)), 'a length that nobody told is not made up')
    await checkWallet(
      t,
      service,
      client,
      '1000',
      cases.map(([, , charged]) => charged),
    )
  })

  await t.test(
    'no field and no flag makes a video longer or larger; what its provider reports is charged',
    async (t) => {
      const client = await newClient(service, '1000')
      const ask = (body: object) => make(client, { prompt: `A fox [simulate: ${QUICK}]`, ...body })
      const prompt = `A fox [simulate: ${QUICK}] --dur 60 --rs 1080p`
      const cases: readonly (readonly [object, string, string])[] = [
        [{ model: 'demo-video', frames: 1440, duration: 1 }, '4.5', '4.5'],
        [{ model: 'demo-video', prompt }, '54', '54'],
        [{ model: 'demo-video-film', prompt, duration: 2, resolution: '480p', n: 4 }, '5', '5'],
        [{ model: 'demo-video', prompt: `A fox [simulate: ${QUICK},seconds=60]`, duration: 1 }, '4.5', '270'],
      ]
      const ids = await Promise.all(cases.map(([body]) => ask(body)))
      for (const [index, id] of ids.entries()) {
        t.match(await ended(client, id), { status: 'succeeded', duration_sec: [1, 12, 2, 60][index] })
        await checkEntries(t, service, client, id, { held: cases[index]![1], charged: cases[index]![2] })
      }
      const unpriced = await client.post(VIDEOS, {
        model: 'demo-video-film',
        prompt: 'A fox',
        resolution: '4k',
      })
      t.same(codeOf(unpriced), INVALID)
      t.match(messageOf(unpriced), /'resolution'.*480p, 720p, 1080p/)
      t.match(await rowOf(service, client.key, unpriced.trace), { status: 'rejected', cost: '0' })
      await checkWallet(
        t,
        service,
        client,
        '1000',
        cases.map(([, , charged]) => charged),
      )
    },
  )

  await t.test('what does not come to a video is refunded, and says why', async (t) => {
    const client = await newClient(service, '100')
    const ask = (directives: string) =>
      make(client, { model: 'demo-video-film', prompt: `[simulate: ${directives}]`, duration: 2 })
    const outcomes = ['outcome=moderation', 'outcome=fail', 'outcome=expire', 'outcome=cancel']
    const [moderated, failed, lapsed, gone] = await Promise.all(
      outcomes.map((outcome) => ask(`${QUICK},${outcome}`)),
    )
    const broken = { status: 'failed', error: { code: 'content_policy', message: /breaks the rules/ } }
    t.match(await ended(client, moderated!), broken, 'moderated after it was made')
    t.match(await ended(client, failed!), { status: 'failed', error: { code: 'generation_failed' } })
    t.match(await ended(client, lapsed!), { status: 'expired', error: { code: 'task_expired' } })
    t.match(await ended(client, gone!), { status: 'cancelled', error: { code: 'task_cancelled' } })
    for (const id of [moderated, failed, lapsed, gone])
      await checkEntries(t, service, client, id!, { held: '10', charged: null })

    const refused = await client.post(VIDEOS, {
      model: 'demo-video-film',
      prompt: '[simulate: outcome=refuse,code=content_policy]',
    })
    t.same(codeOf(refused), INVALID, "the upstream's own refusal")
    const row = await rowOf(service, client.key, refused.trace)
    t.match(row, { status: 'rejected', cost: '0' })
    t.same(codeOf(await client.get(`${VIDEOS}/${row.task_id}`)), ABSENT, 'not by the id in the log either')
    t.same(codeOf(await client.ask('DELETE', `${VIDEOS}/${row.task_id}`)), ABSENT)
    t.same(codeOf(await client.ask('DELETE', `${VIDEOS}/${row.task_id}/files`)), ABSENT)
    const all = (await client.get(`${VIDEOS}?status=all`)).body.data as { id: string }[]
    t.equal(all.length, 4, 'for the client there is no task that was refused')
    const two = (await client.get(`${VIDEOS}?status=failed,expired&limit=2`)).body
    t.match(two, { has_more: true, data: { length: 2 } })
    for (const query of ['status=done', 'limit=0', 'limit=101', 'limit=x'])
      t.same(codeOf(await client.get(`${VIDEOS}?${query}`)), INVALID, query)
    await checkWallet(t, service, client, '100', [])
  })

  await t.test('a queued task is cancelled, at both kinds of upstream; no other is', async (t) => {
    const client = await newClient(service, '100')
    const slow = '[simulate: queue=600000,delay=900000]'
    const [film, byHand, ark, running, done] = await Promise.all([
      make(client, { model: 'demo-video-film', prompt: slow, duration: 2 }),
      make(client, { model: 'demo-video-film', prompt: slow, duration: 2 }),
      make(client, { model: 'demo-video', prompt: slow, duration: 2 }),
      make(client, { model: 'demo-video', prompt: '[simulate: queue=0,delay=600000]', duration: 2 }),
      make(client, { model: 'demo-video-film', prompt: `[simulate: ${QUICK}]`, duration: 2 }),
    ])
    t.match((await client.get('/v1/key/balance')).body, { held: '48' })
    t.same(codeOf(await client.ask('DELETE', `${VIDEOS}/${running}`)), NOT_CANCELLABLE, 'it runs')
    for (const [id, held] of [
      [film, '10'],
      [ark, '9'],
    ] as const) {
      const answer = await client.ask('DELETE', `${VIDEOS}/${id}`)
      t.match(answer, { status: 200, body: { id, status: 'cancelled' } })
      await checkEntries(t, service, client, id, { held, charged: null })
      t.same(codeOf(await client.ask('DELETE', `${VIDEOS}/${id}`)), NOT_CANCELLABLE, 'it is over')
    }
    await eventually('its provider has it', async () => {
      const [task] = await service.database.tasks.read([byHand])
      return task?.upstreamId ?? undefined
    })
    const env = {
      TOLLGATE_DATA_DIR: join(dirname(service.configPath), 'service'),
      TOLLGATE_MASTER_KEY: TEST_MASTER_KEY.toString('hex'),
      TEST_SIMULATOR_URL: service.engines.simulatorUrl,
    }
    const { stdout, stderr } = await tollgate(['task', 'cancel', byHand, '--yes', '--json'], env)
    t.equal(stderr, '')
    t.match(JSON.parse(stdout), { state: 'cancelled', provider: 'cancelled it' }, 'by an operator as well')
    await checkEntries(t, service, client, byHand, { held: '10', charged: null })
    t.match(await ended(client, done), { status: 'succeeded' })
    t.same(codeOf(await client.ask('DELETE', `${VIDEOS}/${done}`)), NOT_CANCELLABLE, 'it is made')
    await finishUpstream(service, running)
    t.match(await ended(client, running), { status: 'succeeded' }, 'what could not be cancelled goes on')
    const stranger = await newClient(service, '1')
    for (const id of [done, `vid_${'0'.repeat(26)}`]) {
      t.same(codeOf(await stranger.get(`${VIDEOS}/${id}`)), ABSENT)
      t.same(codeOf(await stranger.ask('DELETE', `${VIDEOS}/${id}`)), ABSENT)
    }
    t.same((await stranger.get(VIDEOS)).body.data, [])
    await checkWallet(t, service, client, '100', ['10', '9'])
  })

  await t.test('what cannot be made is refused before anything is held', async (t) => {
    const client = await newClient(service, '20')
    const video = { model: 'demo-video', prompt: 'A fox' }
    const lips = { model: 'dh-lipsync', source_video_url: FACE, audio_url: AUDIO, duration: 1 }
    const portrait = { type: 'image_url', image_url: { url: `${LINK}/a.png` } }
    const motion = { model: 'dh-motion', source_video_url: FACE, content: [portrait], duration: 1 }
    const invalid: readonly (readonly [object, RegExp])[] = [
      [{ model: 'demo-video' }, /prompt and content/],
      [{ ...video, duration: 0 }, /'duration'/],
      [{ ...video, duration: 30_000 }, /'duration'/],
      [{ ...video, content: [{ type: 'sound', text: 'x' }] }, /'content\[0\]\.type'/],
      [
        { ...video, content: [{ ...portrait, image_url: { url: 'data:image/png;base64,AA==' } }] },
        /http or https/,
      ],
      [{ ...video, content: [{ ...portrait, image_url: `${LINK}/${'a'.repeat(2048)}` }] }, /2048/],
      [{ ...lips, duration: undefined }, /'duration'/],
      [{ ...lips, audio_url: 'ftp://example.com/a.mp3' }, /'audio_url'.*http or https/],
      [{ ...motion, content: [] }, /'content'/],
      [{ ...motion, content: Array(8).fill(portrait) }, /'content'/],
      [{ ...motion, face_count: 8 }, /'face_count'/],
      [{ ...motion, resolution: 'ultra' }, /'resolution'/],
      [{ model: 'dh-avatar', avatar: 'sim-face-mei', duration: 1 }, /audio_url.*voice and text/],
      [{ model: 'dh-avatar', avatar: 'sim-face-mei', voice: 'sim-voice-ada', duration: 1 }, /voice and text/],
      [{ model: 'dh-avatar', avatar: 'nobody', audio_url: AUDIO, duration: 1 }, /'avatar'/],
    ]
    for (const [body, message] of invalid) {
      const answer = await client.post(VIDEOS, body)
      t.same(codeOf(answer), INVALID, message.source)
      t.match(messageOf(answer), message)
    }
    const unknown = await client.post(VIDEOS, { ...video, model: 'no-such' })
    t.same(codeOf(unknown), NO_MODEL)
    for (const model of ['dh-nope', 'clip-nope']) {
      const absent = await client.post(VIDEOS, { ...video, model })
      t.same(codeOf(absent), { status: 404, code: 'model_not_found' })
      t.match(await rowOf(service, client.key, absent.trace), { model, error_code: 'model_not_found' })
    }
    t.same(codeOf(await client.post(VIDEOS, { ...video, model: 'sonata-large' })), NO_CHANNEL)
    const poor = await client.post(VIDEOS, video)
    t.same(codeOf(poor), NO_CREDIT, 'twelve seconds are held where none are named')
    t.match(await rowOf(service, client.key, poor.trace), {
      status: 'rejected',
      cost: '0',
      model: 'demo-video',
    })
    t.match(await rowOf(service, client.key, unknown.trace), {
      status: 'rejected',
      error_code: 'model_not_found',
    })
    const limited = await newClient(service, '100', { allowedModels: ['sonata-large'] })
    t.same(codeOf(await limited.post(VIDEOS, video)), NOT_ALLOWED)
    t.same(codeOf(await limited.post(AVATARS, { name: 'Ada', source_url: FACE })), NOT_ALLOWED)
    const empty = await newClient(service, '0')
    for (const path of [VIDEOS, AVATARS, SUBTITLES])
      t.same(codeOf(await empty.post(path, {})), NO_CREDIT, path)
    for (const path of [VIDEOS, AVATARS, `${AVATARS}/presets`, TEMPLATES])
      t.equal((await empty.get(path)).status, 200, `${path} is free`)
    await checkWallet(t, service, client, '20', [])
  })
})
