import t from 'tap'
import type { Json } from './dialects-support.ts'
import { readMp3 } from './media/probe.ts'
import { type Headers, isCut, mediaClient, textAt } from './media-support.ts'

const client = await mediaClient(t)

const SPEECH = '/v1/audio/speech'
const TEXT = 'x'.repeat(120)
const XI = { 'xi-api-key': 'sim-key' }
const speak = (voice: string) => `/v1/text-to-speech/${voice}?output_format=mp3_44100_128`
const asked = (fields: object = {}, model = 'sim-speech@delay=0') => ({
  ...{ model, input: TEXT, voice: 'alloy' },
  ...fields,
})

t.test('openai-speech: a text is said in as much time as it takes, faster with speed', async (t) => {
  const said = await client.post(SPEECH, asked())
  t.match(said, { status: 200, type: 'audio/mpeg' })
  t.equal(readMp3(said.bytes).seconds, 10.008)
  t.same((await client.post(SPEECH, asked())).bytes, said.bytes)
  t.equal(readMp3((await client.post(SPEECH, asked({ speed: 2 }))).bytes).seconds, 4.992)
  const told = await client.post(SPEECH, asked({}, 'sim-speech@delay=0,seconds=3'))
  t.equal(readMp3(told.bytes).seconds, 3)
})

t.test('openai-speech: what the vendor refuses is refused in its shape', async (t) => {
  const refused: [object, number, object][] = [
    [asked({ input: '' }), 400, { param: 'input', type: 'invalid_request_error' }],
    [asked({ input: 'x'.repeat(4097) }), 400, { param: 'input' }],
    [asked({ voice: 'nobody' }), 400, { param: 'voice' }],
    [asked({ speed: 9 }), 400, { param: 'speed' }],
    [asked({ pitch: 1 }), 400, { param: 'pitch' }],
    [asked({ response_format: 'wav' }), 400, { param: 'response_format' }],
    [asked({}, 'other'), 404, { code: 'model_not_found' }],
    [asked({}, 'sim@outcome=moderation'), 400, { code: 'content_policy_violation' }],
    [asked({ input: 'Hello [simulate: outcome=fail]' }), 500, { type: 'server_error' }],
    [asked({}, 'sim@fault=stream_error'), 200, { type: 'server_error' }],
  ]
  for (const [body, status, error] of refused)
    t.match(await client.post(SPEECH, body), { status, json: { error } }, JSON.stringify(error))
  t.equal((await client.post(SPEECH, asked(), {})).status, 401)
  t.ok(await isCut(client.post(SPEECH, asked({}, 'sim@delay=0,fault=reset:100'))))
})

t.test('elevenlabs: a premade voice and a cloned one speak', async (t) => {
  const client = await mediaClient(t, XI)
  const body = { text: TEXT, model_id: 'sim-speech@delay=0', voice_settings: { speed: 1.2 } }
  const said = await client.post(speak('sim-voice-ada'), body)
  t.match(said, { status: 200, type: 'audio/mpeg' })
  t.equal(readMp3(said.bytes).seconds, 8.328)
  const form = new FormData()
  form.append('name', 'Ada [simulate: delay=0]')
  form.append('files', new Blob([said.bytes], { type: 'audio/mpeg' }), 'ada.mp3')
  const { json } = await client.post('/v1/voices/add', form)
  t.match(json, { voice_id: /^clone[0-9a-f]{16}$/, requires_verification: false })
  const voice = textAt(json, 'voice_id')
  t.equal((await client.post(speak(voice), body)).status, 200)
  const listed = (await client.get('/v1/voices')).json.voices as unknown as Json[]
  t.match(listed.at(0), { voice_id: /\S/, name: /\S/, category: 'premade' })
  t.match(listed.at(-1), { voice_id: voice, name: /^Ada/, category: 'cloned' })
  t.match((await client.remove(`/v1/voices/${voice}`)).json, { status: 'ok' })
  t.match(await client.post(speak(voice), body), { status: 404 })
  t.match((await client.remove(`/v1/voices/${voice}`)).json, { detail: { status: 'voice_does_not_exist' } })
})

t.test('elevenlabs: what the vendor refuses is refused in its shape', async (t) => {
  const client = await mediaClient(t, XI)
  const path = speak('sim-voice-ada')
  const refused: [string, object, number, object][] = [
    [path, {}, 422, [{ loc: ['body', 'text'], msg: String }]],
    [path, { text: 'x', voice_settings: { speed: 3 } }, 422, [{ loc: ['body', 'voice_settings', 'speed'] }]],
    [speak('nobody'), { text: 'x' }, 404, { status: 'voice_not_found' }],
    [path, { text: 'x', model_id: 'other' }, 400, { status: 'model_not_found' }],
    [path, { text: 'x', model_id: 'sim@fault=status:429' }, 429, { status: 'too_many_concurrent_requests' }],
    [
      path,
      { text: 'x', model_id: 'sim@outcome=refuse,code=quota_exceeded' },
      400,
      { status: 'quota_exceeded' },
    ],
    ['/v1/voices/add', { name: 'Ada' }, 400, { status: 'invalid_request', message: /multipart/ }],
  ]
  for (const [at, body, status, detail] of refused)
    t.match(await client.post(at, body), { status, json: { detail } }, JSON.stringify(detail))
  const form = (file?: Blob) => {
    const made = new FormData()
    made.append('name', 'Ada')
    if (file !== undefined) made.append('files', file, 'ada.mp3')
    return made
  }
  t.match(await client.post('/v1/voices/add', form()), {
    status: 422,
    json: { detail: [{ loc: ['body', 'files'] }] },
  })
  t.match(await client.post('/v1/voices/add', form(new Blob([]))), { status: 400 })
  const strangers: Headers[] = [{}, { 'xi-api-key': 'sim-bad-key' }]
  for (const headers of strangers)
    t.match(await client.get('/v1/voices', headers), {
      status: 401,
      json: { detail: { status: 'invalid_api_key' } },
    })
})

t.test('elevenlabs: a fault that stands in the way of a clone leaves no voice', async (t) => {
  const client = await mediaClient(t, XI)
  const add = async (directives: string) => {
    const form = new FormData()
    form.append('name', 'Ada')
    form.append('files', new Blob(['sound']), 'ada.mp3')
    return client.post('/v1/voices/add', form, { ...XI, 'x-simulate': directives })
  }
  const count = async () => ((await client.get('/v1/voices')).json.voices as unknown as Json[]).length
  const before = await count()
  t.equal((await add('fault=status:500')).status, 500)
  t.equal((await add('outcome=fail')).status, 500)
  t.equal(await count(), before)
  t.ok(await isCut(add('accept_then_cut,delay=0')))
  t.equal(await count(), before + 1)
})
