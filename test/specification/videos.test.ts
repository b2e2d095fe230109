/** "POST /v1/videos/generations", and the fields of a video task; submits whose acceptance is not clear. */
import t from 'tap'
import { eventually } from '../support/eventually.ts'
import { FILM_PATH, json } from './scripted-upstream.ts'
import { section, statement, statements } from './statement.ts'
import { type Client, simulate } from './world.ts'

const VIDEOS = '/v1/videos/generations'
const WEEK_SECONDS = 7 * 86_400
const LATER_SECONDS = 120
const PRICE = 4.5
const invalid = { status: 400, body: { error: { code: 'invalid_request' } } }

const submit = (client: Client, more: object = {}) =>
  client.post(VIDEOS, { model: 'demo-video', prompt: 'a kite', duration: 1, ...more })

/** The task and its row at their end. */
async function made(client: Client, more: object) {
  const submitted = await submit(client, more)
  if (submitted.status !== 200) throw new Error(submitted.text)
  const task = await client.ended(`${VIDEOS}/${submitted.body.id}`)
  return { task, row: await client.row(submitted) }
}

const QUICK = 'delay=150,queue=50'

/** A submit that an upstream neither takes nor refuses, and what the client gets. */
const UNCLEAR = [
  ['fault=status:502', 502, 'upstream_error'],
  ['fault=status:504', 504, 'upstream_error'],
  ['fault=reset:head', 502, 'upstream_unreachable'],
  ['fault=accept_then_cut', 502, 'upstream_unreachable'],
] as const

interface Submit {
  readonly name: string
  readonly path: string
  readonly list: string
  readonly body: (directives: string) => object
}
const link = (directives: string) => `https://example.com/a?simulate=${encodeURIComponent(directives)}`
/** Each endpoint whose upstream takes a submit. */
const SUBMITS: readonly Submit[] = [
  {
    name: 'video',
    path: VIDEOS,
    list: VIDEOS,
    body: (directives) => ({ model: 'demo-video', prompt: simulate(directives), duration: 2 }),
  },
  {
    name: 'video of the task contract',
    path: VIDEOS,
    list: VIDEOS,
    body: (directives) => ({ model: 'demo-video-film', prompt: simulate(directives), duration: 2 }),
  },
  {
    name: 'digital human',
    path: VIDEOS,
    list: VIDEOS,
    body: (directives) => ({
      model: 'dh-lipsync',
      source_video_url: 'https://example.com/a.mp4',
      audio_url: link(directives),
      duration: 2,
    }),
  },
  {
    name: 'music',
    path: '/v1/music/generations',
    list: '/v1/music/generations',
    body: (directives) => ({ model: 'demo-music', prompt: simulate(directives) }),
  },
  {
    name: 'speech',
    path: '/v1/audio/speech',
    list: '/v1/audio/speech',
    body: (directives) => ({ model: 'voice-tts-pro', input: simulate(directives), async: true }),
  },
  {
    name: 'voice',
    path: '/v1/audio/voices',
    list: '/v1/audio/voices',
    body: (directives) => ({ name: 'Ada', audio_url: link(directives), async: true }),
  },
  {
    name: 'avatar',
    path: '/v1/videos/avatars',
    list: '/v1/videos/avatars',
    body: (directives) => ({ name: 'Ada', source_url: link(directives) }),
  },
]

await section(t, 'Videos', [
  statement('A submit is answered at once with a queued task, whatever its work takes', async (t, world) => {
    const client = await world.client()
    const { status, body } = await submit(client, { prompt: simulate('delay=1000') })
    t.equal(status, 200)
    t.strictSame(body, { id: body.id, status: 'queued', model: 'demo-video', created_at: body.created_at })
    t.match(body.id, /^vid_/)
    t.ok(Math.abs(body.created_at - Date.now() / 1000) < LATER_SECONDS)
    await client.ended(`${VIDEOS}/${body.id}`)
  }),
  statement('A task that succeeded has its video, when its link ends, and its length', async (t, world) => {
    const client = await world.client()
    const { task } = await made(client, { duration: 2 })
    t.match(task, {
      id: /^vid_/,
      status: 'succeeded',
      model: 'demo-video',
      created_at: Number,
      video_url: /^http/,
      expires_at: Number,
      duration_sec: Number,
    })
    t.ok(Math.abs(task.expires_at - Date.now() / 1000 - WEEK_SECONDS) < LATER_SECONDS, '7 days')
    const video = await fetch(task.video_url)
    t.same([video.status, video.headers.get('content-type')], [200, 'video/mp4'])
    await video.arrayBuffer()
  }),
  statement('input_video_duration_sec is there where the upstream reports it', async (t, world) => {
    const client = await world.client()
    const { task } = await made(client, {
      model: 'dh-motion',
      prompt: undefined,
      source_video_url: link(`${QUICK},seconds=5,input_seconds=6`),
      content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }],
    })
    t.match(task, { duration_sec: 5, input_video_duration_sec: 6 })
  }),
  statement('A prompt or content is required, and so is a model', async (t, world) => {
    const client = await world.client()
    t.match(await submit(client, { prompt: undefined }), invalid)
    t.match(await submit(client, { model: undefined }), invalid)
    const content = [
      { type: 'text', text: 'a kite' },
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
    ]
    t.equal((await made(client, { prompt: undefined, content })).task.status, 'succeeded')
  }),
  statements(
    [
      ['1 second', { duration: 1 }, '4.5'],
      ['3 seconds', { duration: 3 }, '13.5'],
      ['12 seconds where no duration is given', { duration: undefined }, '54'],
    ] as const,
    ([what]) => `Price x duration is held at the submit: ${what}`,
    async (t, world, [, more, held]) => {
      const rich = await world.client('100')
      const { body } = await submit(rich, { ...more, prompt: simulate('delay=700,queue=300') })
      t.equal((await rich.balance()).held, held)
      await rich.ended(`${VIDEOS}/${body.id}`)
      t.equal((await submit(await world.client(held), more)).status, 200)
      const short = await submit(await world.client(String(Number(held) - 0.01)), more)
      t.match(short, { status: 402, body: { error: { code: 'quota_exceeded' } } })
    },
  ),
  statements(
    [
      ['fewer than asked for', 6, 'seconds=4.5', 4.5],
      ['more than asked for: 18 s', 12, 'seconds=18', 18],
      ['far more than asked for: 60 s', 1, 'seconds=60', 60],
      ['none: those asked for', 3, 'no_seconds', null],
    ] as const,
    ([what]) => `The seconds that the upstream reports are charged: ${what}`,
    async (t, world, [, duration, directives, reported]) => {
      const client = await world.client('1000')
      const { task, row } = await made(client, {
        model: 'demo-video-film',
        duration,
        prompt: simulate(`${QUICK},${directives}`),
      })
      const cost = String(5 * (reported ?? duration))
      t.equal(task.duration_sec, reported ?? undefined)
      t.match(row, { status: 'success', cost, unit_type: 'video' })
      const remaining = String(1000 - Number(cost))
      t.equal(await client.remaining(remaining), remaining)
      t.equal((await client.balance()).held, '0', 'the excess is released')
    },
  ),
  statement(
    'Seconds are rounded once, after the price: 1.23456789 s at 4.04 cost 4.98765428',
    async (t, world) => {
      const client = await world.client()
      const result = { video_url: world.upstream.url + FILM_PATH, duration_sec: 1.23456789 }
      const { word } = world.upstream.script(json(200, { id: 'done', state: 'succeeded', result }))
      const { row } = await made(client, { model: 'script-video', prompt: word, duration: 2 })
      t.equal(row.cost, '4.98765428')
    },
  ),
  statements(
    [
      ['fail', 'failed'],
      ['moderation', 'failed'],
      ['expire', 'expired'],
      ['cancel', 'cancelled'],
    ] as const,
    ([outcome, status]) => `A task that ends as ${status} (${outcome}) is refunded in full`,
    async (t, world, [outcome, status]) => {
      const client = await world.client('100')
      const prompt = simulate(`${QUICK},outcome=${outcome}`)
      const { task, row } = await made(client, { model: 'demo-video-film', prompt })
      t.equal(task.status, status)
      t.equal(row.cost, '0')
      t.equal(await client.remaining('100'), '100')
      t.match(await client.balance(), { held: '0', used: '0' })
    },
  ),
  statement('A refused submit makes no task and releases its hold at once', async (t, world) => {
    const client = await world.client('100')
    for (const status of [400, 404, 429]) {
      t.equal((await submit(client, { prompt: simulate(`fault=status:${status}`) })).status, status)
      t.match(await client.balance(), { remaining: '100', held: '0' })
    }
    t.same((await client.get(VIDEOS)).body.data, [])
  }),
  statements(
    SUBMITS.flatMap((each) => UNCLEAR.map((unclear) => ({ each, unclear }))),
    ({ each, unclear: [directives] }) =>
      `A submit without a clear acceptance makes no task and holds nothing: ${each.name}, ${directives}`,
    async (t, world, { each, unclear: [directives, status, code] }) => {
      const client = await world.client('1000')
      const key = { 'idempotency-key': 'intent' }
      const answer = await client.post(each.path, each.body(directives), key)
      t.same([answer.status, answer.body.error?.code], [status, code])
      if (answer.status < 300) return
      t.match(await client.balance(), { remaining: '1000', held: '0' })
      const { body } = await client.get(each.list)
      t.same(body.data ?? body.voices ?? body.avatars, [])
      t.same((await client.get('/v1/logs?include=in_flight')).body.in_flight, [])
      t.match(await client.row(answer), { status: 'error', cost: '0' })
      const again = await client.post(each.path, each.body(QUICK), key)
      t.ok([200, 202].includes(again.status), `the key is free: ${again.status}`)
    },
  ),
  statement('The list has the tasks of the account, the newest first, of every status', async (t, world) => {
    const client = await world.client()
    const first = await made(client, {})
    const second = await made(client, { prompt: simulate(`${QUICK},outcome=fail`), model: 'demo-video-film' })
    const get = async (query: string) =>
      (await client.get(VIDEOS + query)).body.data.map(({ id }: { id: string }) => id)
    const [older, newer] = [first.task.id, second.task.id]
    for (const query of [
      '',
      '?status=all',
      '?status=',
      '?status=queued,running,succeeded,failed,expired,cancelled',
    ])
      t.same(await get(query), [newer, older], query)
    t.same(await get('?status=succeeded'), [older])
    t.same(await get('?status=failed'), [newer])
    t.same(await get('?limit=1'), [newer])
    const other = await world.another(client)
    t.equal((await other.get(VIDEOS)).body.data.length, 2, 'by another key of the account')
    t.same((await (await world.client()).get(VIDEOS)).body.data, [], 'by another account')
  }),
  statement('An unknown status of a list is 400', async (t, world) => {
    const client = await world.client()
    t.match(await client.get(`${VIDEOS}?status=done`), invalid)
  }),
  statement('After its end a task that is listed again has a link that opens', async (t, world) => {
    const client = await world.client()
    const { task } = await made(client, {})
    for (const link of [
      (await client.get(`${VIDEOS}/${task.id}`)).body.video_url,
      (await client.get(VIDEOS)).body.data[0].video_url,
    ])
      t.equal((await fetch(link, { method: 'HEAD' })).status, 200)
  }),
  statement('A foreign or unknown task is 404', async (t, world) => {
    const client = await world.client()
    const { task } = await made(client, {})
    const missing = { status: 404, body: { error: { code: 'not_found' } } }
    t.match(await (await world.client()).get(`${VIDEOS}/${task.id}`), missing)
    t.match(await client.get(`${VIDEOS}/vid_00000000000000000000000000`), missing)
  }),
  statement('Polls are free, and work at a balance of zero', async (t, world) => {
    const client = await world.client(String(PRICE))
    const { task } = await made(client, {})
    t.equal(await client.remaining('0'), '0')
    for (const path of [VIDEOS, `${VIDEOS}/${task.id}`]) t.equal((await client.get(path)).status, 200)
    t.equal((await client.balance()).remaining, '0')
  }),
  statement('Two states lead to the end: queued, then running', async (t, world) => {
    const client = await world.client()
    const { body } = await submit(client, { prompt: simulate('queue=0,delay=1500') })
    t.equal(body.status, 'queued')
    await eventually('it runs', async () => {
      const { status } = (await client.get(`${VIDEOS}/${body.id}`)).body
      return status === 'running' ? true : undefined
    })
    t.equal((await client.ended(`${VIDEOS}/${body.id}`)).status, 'succeeded')
  }),
  statement('A queued task is cancelled by DELETE and refunded; a finished one is not', async (t, world) => {
    const client = await world.client('100')
    const { body } = await submit(client, { prompt: simulate('queue=20000,delay=30000') })
    const cancelled = await client.send('DELETE', `${VIDEOS}/${body.id}`)
    t.match(cancelled, { status: 200, body: { id: body.id, status: 'cancelled' } })
    t.equal(await client.remaining('100'), '100')
    const again = await client.send('DELETE', `${VIDEOS}/${body.id}`)
    t.match(again, { status: 409, body: { error: { code: 'task_not_cancellable' } } })
  }),
])
