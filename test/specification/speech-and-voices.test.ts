/** "POST /v1/audio/speech" and "/v1/audio/voices": fields, prices and states. */
import t from 'tap'
import { eventually } from '../support/eventually.ts'
import { section, statement, statements } from './statement.ts'
import { type Client, simulate } from './world.ts'

const SPEECH = '/v1/audio/speech'
const VOICES = '/v1/audio/voices'
const CLONE_PRICE = '40.44'
const QUICK = 'delay=150,queue=50'
const invalid = { status: 400, body: { error: { code: 'invalid_request' } } }
const missing = { status: 404, body: { error: { code: 'not_found' } } }
const RFC_3339 = /^\d{4}-\d\d-\d\dT/
const link = (directives: string) => `https://example.com/a.mp3?simulate=${encodeURIComponent(directives)}`

const speak = (client: Client, more: object = {}) =>
  client.post(SPEECH, { model: 'voice-tts-pro', input: 'Good day', ...more })
const clone = (client: Client, more: object = {}) =>
  client.post(VOICES, { name: 'Ada', audio_url: link(QUICK), ...more })

/** 125.36 for 1000 characters. */
const priceOf = (characters: number) => String((characters * 12_536) / 100_000)

await section(t, 'Speech and voices', [
  statement('A speech that is waited for has its link, its characters and its cost', async (t, world) => {
    const client = await world.client('100')
    const input = 'Zoë 🐈 said good day'
    const answer = await speak(client, { input })
    const characters = [...input].length
    t.equal(answer.status, 200)
    t.strictSame(answer.body, {
      model: 'voice-tts-pro',
      audio_url: answer.body.audio_url,
      characters,
      cost_usd: priceOf(characters),
    })
    const sound = await fetch(answer.body.audio_url)
    t.same([sound.status, sound.headers.get('content-type')], [200, 'audio/mpeg'])
    await sound.arrayBuffer()
    t.match(await client.row(answer), { unit_type: 'audio', cost: priceOf(characters) })
  }),
  statement('The link of a speech is permanent', async (t, world) => {
    const { body } = await speak(await world.client())
    t.notOk(new URL(body.audio_url).searchParams.has('expires'))
  }),
  statement('1000 characters cost 125.36, held at the submit', async (t, world) => {
    const input = 'x'.repeat(1000)
    const { body } = await speak(await world.client('125.36'), { input })
    t.equal(body.cost_usd, '125.36')
    const short = await speak(await world.client('125.35'), { input })
    t.match(short, { status: 402, body: { error: { code: 'quota_exceeded' } } })
  }),
  statements(
    [
      ['an input of 5000 characters', { input: 'x'.repeat(5000) }, 200],
      ['an input of 5001 characters', { input: 'x'.repeat(5001) }, 400],
      ['an empty input', { input: '' }, 400],
      ['no input', { input: undefined }, 400],
      ['no model', { model: undefined }, 400],
      ['a preset voice', { voice: 'sim-voice-ada' }, 200],
      ['an unknown voice', { voice: 'nobody' }, 400],
      ['a speed', { speed: 1.25 }, 200],
    ] as const,
    ([what, , status]) => `${what} is ${status}`,
    async (t, world, [, more, status]) => {
      const answer = await speak(await world.client(), more)
      t.equal(answer.status, status, answer.text)
    },
  ),
  statement('async true answers with a pending task, which a poll and a list show', async (t, world) => {
    const client = await world.client('100')
    const submitted = await speak(client, { async: true, input: simulate(`${QUICK},seconds=2.28`) })
    const { id, characters, created_at } = submitted.body
    t.equal(submitted.status, 200)
    t.strictSame(submitted.body, { id, model: 'voice-tts-pro', status: 'pending', characters, created_at })
    t.match([id, created_at], [/^spc_/, RFC_3339])
    const ended = await client.ended(`${SPEECH}/${id}`)
    t.strictSame(ended, {
      ...submitted.body,
      status: 'succeeded',
      duration_sec: '2.28',
      audio_url: ended.audio_url,
    })
    for (const query of ['', '?status=all', '?status=succeeded', '?status=pending,succeeded'])
      t.match((await client.get(SPEECH + query)).body.data, [{ id }], query)
    t.same((await client.get(`${SPEECH}?status=failed`)).body.data, [])
    t.match(await client.get(`${SPEECH}?status=queued`), invalid)
    t.equal((await client.row(submitted)).cost, priceOf(characters))
  }),
  statement('A failed speech says why, and is refunded', async (t, world) => {
    const client = await world.client('100')
    const { body } = await speak(client, { async: true, input: simulate(`${QUICK},outcome=fail`) })
    const ended = await client.ended(`${SPEECH}/${body.id}`)
    t.match(ended, { status: 'failed', error: { message: String } })
    t.notOk('audio_url' in ended)
    t.equal(await client.remaining('100'), '100')
  }),
  statement('A speech whose client leaves renders and charges all the same', async (t, world) => {
    const client = await world.client('100')
    const leave = new AbortController()
    const body = { model: 'voice-tts-pro', input: simulate('delay=700') }
    const running = client.open('POST', SPEECH, body, {}, leave.signal)
    running.catch(() => undefined)
    const { id } = await eventually('it is rendered', async () => (await client.get(SPEECH)).body.data[0])
    leave.abort()
    t.equal((await client.ended(`${SPEECH}/${id}`)).status, 'succeeded')
    const cost = priceOf([...body.input].length)
    const remaining = String(Number((100 - Number(cost)).toFixed(8)))
    t.equal(await client.remaining(remaining), remaining)
  }),
  statement('A foreign or unknown speech is 404', async (t, world) => {
    const client = await world.client()
    const { body } = await speak(client, { async: true })
    t.match(await (await world.client()).get(`${SPEECH}/${body.id}`), missing)
    t.match(await client.get(`${SPEECH}/spc_00000000000000000000000000`), missing)
    await client.ended(`${SPEECH}/${body.id}`)
  }),
  statement('A voice that is waited for is ready, and costs 40.44', async (t, world) => {
    const client = await world.client('100')
    const answer = await clone(client)
    t.match(answer, { status: 200, body: { id: /^voi_/, name: 'Ada', status: 'ready' } })
    t.match(await client.row(answer), { cost: CLONE_PRICE, unit_type: 'voice', model: 'voice-clone-pro' })
    t.equal(await client.remaining('59.56'), '59.56')
    t.equal((await clone(await world.client('40.43'))).status, 402)
  }),
  statement('async true answers with a pending voice, which gets ready', async (t, world) => {
    const client = await world.client()
    const { body, status } = await clone(client, { async: true, audio_url: link('delay=800,queue=100') })
    t.equal(status, 200)
    t.match(body, { id: /^voi_/, status: 'pending' })
    const early = await client.send('DELETE', `${VOICES}/${body.id}`)
    t.match(early, invalid, 'a pending one is the evidence of its refund')
    t.match(await speak(client, { voice: body.id }), invalid, 'nor does it speak')
    t.equal((await client.ended(`${VOICES}/${body.id}`)).status, 'ready')
  }),
  statement(
    'Voices of the account are listed beside presets, which have an id and a name',
    async (t, world) => {
      const client = await world.client()
      const { body } = await clone(client)
      const listed = (await client.get(VOICES)).body
      t.match(listed.voices, [{ id: body.id, name: 'Ada', status: 'ready' }])
      t.ok(listed.presets.length > 0)
      for (const preset of listed.presets) t.match(preset, { id: String, name: String })
      t.same((await (await world.client()).get(VOICES)).body.voices, [], 'of another account none')
    },
  ),
  statement('A ready voice speaks for its account, and is deleted', async (t, world) => {
    const client = await world.client()
    const { id } = (await clone(client)).body
    t.equal((await speak(client, { voice: id, speed: 1.5 })).status, 200)
    const stranger = await world.client()
    t.match(await speak(stranger, { voice: id }), invalid)
    t.match(await stranger.get(`${VOICES}/${id}`), missing)
    t.equal((await client.send('DELETE', `${VOICES}/${id}`)).status, 200)
    t.match(await client.get(`${VOICES}/${id}`), missing)
    t.match(await speak(client, { voice: id }), invalid)
  }),
  statement('speed is for cloned voices: a preset keeps its own', async (t, world) => {
    const client = await world.client()
    const input = `Hello ${client.keyId}`
    await speak(client, { input, voice: 'sim-voice-ada', speed: 1.5 })
    t.equal((await world.receivedWith(client.keyId)).input.speed, 1)
    const { id } = (await clone(client)).body
    await speak(client, { input: `${input} again`, voice: id, speed: 1.5 })
    t.equal((await world.receivedWith(`${client.keyId} again`)).input.speed, 1.5)
  }),
  statement('A failed clone is refunded in full', async (t, world) => {
    const client = await world.client('100')
    const body = { async: true, audio_url: link(`${QUICK},outcome=fail`) }
    const { id } = (await clone(client, body)).body
    t.match(await client.ended(`${VOICES}/${id}`), { status: 'failed' })
    t.equal(await client.remaining('100'), '100')
  }),
  statements(
    ['name', 'audio_url'],
    (name) => `${name} of a voice is required`,
    async (t, world, name) => {
      t.match(await clone(await world.client(), { [name]: undefined }), invalid)
    },
  ),
  statement('audio_url of a voice is an http or https link', async (t, world) => {
    const client = await world.client()
    for (const audio_url of ['ftp://example.com/a.mp3', 'a.mp3', 'http://127.0.0.1/a.mp3'])
      t.match(await clone(client, { audio_url }), invalid, audio_url)
  }),
])
