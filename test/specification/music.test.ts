/** "POST /v1/music/generations", and the fields and states of a music task. */
import t from 'tap'
import { section, statement, statements } from './statement.ts'
import { type Client, simulate } from './world.ts'

const MUSIC = '/v1/music/generations'
const PRICE = '19.41'
const WEEK_MS = 7 * 86_400_000
const LATER_MS = 120_000
const QUICK = 'delay=150,queue=50'
const STATES = ['processing', 'succeeded', 'failed', 'expired', 'cancelled', 'all']
const invalid = { status: 400, body: { error: { code: 'invalid_request' } } }
const RFC_3339 = /^\d{4}-\d\d-\d\dT/

const submit = (client: Client, more: object = { prompt: 'a waltz' }) =>
  client.post(MUSIC, { model: 'demo-music', ...more })

async function made(client: Client, more?: object) {
  const submitted = await submit(client, more)
  if (submitted.status !== 200) throw new Error(submitted.text)
  const task = await client.ended(`${MUSIC}/${submitted.body.id}`)
  return { submitted, task, row: await client.row(submitted) }
}

/** What each request is for the upstream; null where the gateway refuses it. */
const REQUESTS: readonly (readonly [what: string, body: object, isTaken: boolean])[] = [
  ['a prompt of 200 characters', { prompt: 'x'.repeat(200) }, true],
  ['a prompt of 201 characters', { prompt: 'x'.repeat(201) }, false],
  ['lyrics of 3000 characters', { lyrics: 'x'.repeat(3000), title: 'x', tags: 'folk' }, true],
  ['lyrics of 3001 characters', { lyrics: 'x'.repeat(3001), title: 'x', tags: 'folk' }, false],
  ['neither prompt nor lyrics', {}, false],
  ['an instrumental of nothing', { instrumental: true, title: 'x', tags: 'folk' }, true],
  ['no model', { model: undefined, prompt: 'a waltz' }, false],
]

await section(t, 'Music', [
  statement('A submit is answered with a queued task', async (t, world) => {
    const client = await world.client()
    const { status, body } = await submit(client)
    t.equal(status, 200)
    t.strictSame(Object.keys(body).sort(), ['created_at', 'id', 'model', 'status'])
    t.match(body, { id: /^mus_/, status: 'queued', model: 'demo-music' })
    await client.ended(`${MUSIC}/${body.id}`)
  }),
  statements(
    REQUESTS,
    ([what, , isTaken]) => `${what} ${isTaken ? 'is taken' : 'is 400'}`,
    async (t, world, [, body, isTaken]) => {
      const client = await world.client()
      const answer = await submit(client, body)
      if (isTaken) t.equal(answer.status, 200, answer.text)
      else t.match(answer, invalid)
      if (isTaken) await client.ended(`${MUSIC}/${answer.body.id}`)
    },
  ),
  statement('Lyrics switch to custom mode, and the prompt is ignored', async (t, world) => {
    const client = await world.client()
    const lyrics = `[Verse] ${client.keyId}`
    const custom = { lyrics, prompt: 'not this', title: 'Bread', tags: 'folk', negative_tags: 'drums' }
    await made(client, custom)
    const sent = await world.receivedWith(client.keyId)
    t.match(sent, { customMode: true, prompt: lyrics, title: 'Bread', style: 'folk', negativeTags: 'drums' })
    t.notMatch(JSON.stringify(sent), 'not this')
  }),
  statement('An instrumental ignores the lyrics', async (t, world) => {
    const client = await world.client()
    const body = { lyrics: 'not these', prompt: `a march ${client.keyId}`, instrumental: true }
    await made(client, body)
    const sent = await world.receivedWith(client.keyId)
    t.equal(sent.instrumental, true)
    t.notMatch(JSON.stringify(sent), 'not these')
  }),
  statement('A finished task has two songs, each with its fields', async (t, world) => {
    const client = await world.client()
    const { task, submitted } = await made(client)
    t.match(task, {
      id: submitted.body.id,
      model: 'demo-music',
      status: 'succeeded',
      upstream_status: String,
      error_code: null,
      error_message: null,
      created_at: RFC_3339,
      completed_at: RFC_3339,
    })
    t.equal(task.tracks.length, 2)
    for (const track of task.tracks) {
      t.match(track, {
        clip_id: String,
        title: String,
        duration_sec: Number,
        audio_url: /^http/,
        image_url: /^http/,
        lyrics: String,
      })
      for (const link of [track.audio_url, track.image_url]) {
        const expires = Number(new URL(link).searchParams.get('expires')) * 1000
        t.ok(Math.abs(expires - Date.now() - WEEK_MS) < LATER_MS, '7 days')
        const file = await fetch(link)
        t.equal(file.status, 200)
        await file.arrayBuffer()
      }
    }
  }),
  statement('The price is flat: 19.41 for a generation, held at the submit', async (t, world) => {
    const client = await world.client('100')
    const submitted = await submit(client, { prompt: simulate('delay=700') })
    t.equal((await client.balance()).held, PRICE)
    await client.ended(`${MUSIC}/${submitted.body.id}`)
    t.match(await client.row(submitted), { cost: PRICE, unit_type: 'music' })
    t.equal(await client.remaining('80.59'), '80.59')
    t.equal((await submit(await world.client('19.4'))).status, 402)
    t.equal((await submit(await world.client(PRICE))).status, 200)
  }),
  statement('One song of two is the full price; none is a full refund', async (t, world) => {
    const client = await world.client('100')
    const half = await made(client, { prompt: simulate(`${QUICK},partial=1`) })
    t.match(half.task, { status: 'succeeded', tracks: { length: 1 } })
    t.equal(half.row.cost, PRICE)
    const none = await made(client, { prompt: simulate(`${QUICK},outcome=fail`) })
    t.match(none.task, { status: 'failed', error_code: String, error_message: String, tracks: { length: 0 } })
    t.equal(none.row.cost, '0')
    t.equal(await client.remaining('80.59'), '80.59')
  }),
  statement('Between submit and end a task is processing', async (t, world) => {
    const client = await world.client()
    const { body } = await submit(client, { prompt: simulate('delay=1000') })
    t.equal((await client.get(`${MUSIC}/${body.id}`)).body.status, 'processing')
    await client.ended(`${MUSIC}/${body.id}`)
  }),
  statement('The list has the items of polls, filtered by status', async (t, world) => {
    const client = await world.client()
    const { task } = await made(client)
    for (const query of ['', '?status=all', '?status=succeeded', '?status=processing,succeeded']) {
      const { data } = (await client.get(MUSIC + query)).body
      t.equal(data.length, 1, query)
      t.same(Object.keys(data[0]).sort(), Object.keys(task).sort(), query)
    }
    t.same((await client.get(`${MUSIC}?status=failed`)).body.data, [])
    for (const status of STATES) t.equal((await client.get(`${MUSIC}?status=${status}`)).status, 200, status)
    for (const wrong of ['queued', 'done'])
      t.match(await client.get(`${MUSIC}?status=${wrong}`), invalid, wrong)
  }),
  statement('A foreign or unknown task is 404', async (t, world) => {
    const client = await world.client()
    const { task } = await made(client)
    const missing = { status: 404, body: { error: { code: 'not_found' } } }
    t.match(await (await world.client()).get(`${MUSIC}/${task.id}`), missing)
    t.match(await client.get(`${MUSIC}/mus_00000000000000000000000000`), missing)
  }),
])
