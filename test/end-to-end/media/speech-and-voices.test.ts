/** Speech and cloned voices, from the request to the settled row, with the demonstration's models and prices. */
import { createOpenAI } from '@ai-sdk/openai'
import { experimental_generateSpeech } from 'ai-sdk'
import OpenAI from 'openai'
import t from 'tap'
import { sniffMediaType } from '../../../src/core/media/type.ts'
import { borrowService } from '../../support/lend-services.ts'
import { eventually } from '../../support/service.ts'
import { post, receivedIn, rowOf, upstreamCalls } from '../support.ts'
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
  messageOf,
  NO_CHANNEL,
  NO_CREDIT,
  NOT_ALLOWED,
  newClient,
  RFC_3339,
  typeBehind,
  ULID,
} from './support.ts'

const SPEECH = '/v1/audio/speech'
const VOICES = '/v1/audio/voices'
const MODEL = 'voice-tts-pro'
const CLONE_PRICE = '40.44'

/** Without a signature that ends. */
const isLasting = (url: string) => !new URL(url).searchParams.has('expires')

/** 125.36 for 1000 characters. */
const priceOf = (characters: number) => String((characters * 12536) / 100_000)

t.test('speech and voices', async (t) => {
  const service = await borrowService(t, demonstration())
  const upstreamTasks = async (query: string) => {
    const response = await fetch(`${service.engines.simulatorUrl}/simulator/tasks?${query}`)
    return (await response.json()) as { id: string; reference: string; state: string }[]
  }
  const upstreamInput = async (taskId: string) => {
    for (const call of (await upstreamCalls(service)).reverse()) {
      if (call.path !== '/task/tasks') continue
      const body = JSON.parse((await receivedIn(service, call)).body || '{}')
      if (body.reference === taskId) return body.input as Record<string, unknown>
    }
    throw new Error(`nothing was sent for ${taskId}`)
  }
  await t.test('a text is said, and charged by its characters', async (t) => {
    const client = await newClient(service, '100')
    const input = 'Good morning, Zoë 🐈 [simulate: delay=100,seconds=1.2]'
    const characters = [...input].length
    const intent = { 'idempotency-key': 'morning-1' }
    const said = await client.post(SPEECH, { model: MODEL, input }, intent)
    t.equal(said.status, 200)
    const audio_url = said.body.audio_url as string
    t.same(said.body, { model: MODEL, audio_url, characters, cost_usd: priceOf(characters) })
    t.ok(isLasting(audio_url))
    t.equal(await typeBehind(audio_url), 'audio/mpeg')
    const again = await client.post(SPEECH, { model: MODEL, input }, intent)
    t.same(again.body, said.body)
    t.equal(again.headers.get('idempotency-replayed'), 'true')
    t.match(codeOf(await client.post(SPEECH, { model: MODEL, input: 'Other words.' }, intent)), KEY_REUSED)
    const row = await rowOf(service, client.key, said.trace)
    t.match(row, {
      status: 'success',
      model: MODEL,
      unit_type: 'audio',
      unit_count: String(characters),
      cost: priceOf(characters),
      task_id: new RegExp(`^spc_${ULID}$`),
      attempts_count: 1,
      result_urls: [audio_url],
      result_expires_at: null,
    })
    t.match((await client.get(`/v1/logs/${row.id}`)).body, { kind: 'audio' })
    const charged = priceOf(characters)
    await checkEntries(t, service, client, row.task_id as string, { held: charged, charged })
    await checkWallet(t, service, client, '100', [charged])
  })

  await t.test('the sound itself goes to clients that name it, and to SDKs that write it down', async (t) => {
    const client = await newClient(service, '100')
    const input = 'Good morning, Zoë 🐈 [simulate: delay=100,seconds=1.2]'
    const baseURL = `${service.baseUrl}/v1`
    const sdk = new OpenAI({ apiKey: client.key, baseURL, maxRetries: 0 })
    const byOpenAi = await sdk.audio.speech.create({ model: MODEL, input, voice: 'sim-voice-mei' })
    t.equal(byOpenAi.headers.get('content-type'), 'audio/mpeg')
    const bytes = Buffer.from(await byOpenAi.arrayBuffer())
    t.equal(sniffMediaType(bytes), 'audio/mpeg')
    const { audio } = await experimental_generateSpeech({
      model: createOpenAI({ apiKey: client.key, baseURL }).speech(MODEL),
      text: input,
      voice: 'sim-voice-mei',
    })
    t.equal(sniffMediaType(Buffer.from(audio.uint8Array)), 'audio/mpeg')

    const send = (more: object, accept?: string, intent?: string) =>
      post(
        service,
        client.key,
        SPEECH,
        { model: MODEL, input, ...more },
        {
          ...(accept !== undefined && { accept }),
          ...(intent !== undefined && { 'idempotency-key': intent }),
        },
      )
    const said = await send({}, 'audio/*', 'sound-1')
    const sound = Buffer.from(await said.arrayBuffer())
    const again = await send({}, 'audio/*', 'sound-1')
    t.equal(again.headers.get('idempotency-replayed'), 'true')
    t.ok(Buffer.from(await again.arrayBuffer()).equals(sound), 'the same bytes again')
    const row = await rowOf(service, client.key, said.headers.get('x-gateway-trace') ?? '')
    const link = (row.result_urls as string[])[0]!
    t.ok(Buffer.from(await (await fetch(link)).arrayBuffer()).equals(sound), 'and behind the link of the row')
    for (const [more, accept] of [
      [{}, '*/*'],
      [{}, 'application/json'],
      [{ response_format: 'wav' }, 'application/json'],
    ] as const)
      t.match(await (await send(more, accept)).json(), { model: MODEL, audio_url: /^http/ }, accept)
    const refused = await send({ response_format: 'wav' })
    t.equal(refused.status, 400)
    t.match(await refused.json(), { error: { code: 'invalid_request', message: /'response_format'.*'mp3'/ } })
    const whole = await send({ stream_format: 'audio' })
    t.equal(whole.headers.get('content-type'), 'audio/mpeg')
    await whole.arrayBuffer()
    const streamed = await send({ stream_format: 'sse' }, 'audio/*')
    t.equal(streamed.status, 400)
    t.match(await streamed.json(), { error: { code: 'invalid_request', message: /'stream_format'/ } })
    const task = await send({ async: true }, 'audio/*')
    t.match(await task.json(), { status: 'pending' }, 'there is no sound yet')
    const broken = await send({ input: 'It ends badly [simulate: delay=100,outcome=fail]' }, 'audio/*')
    t.equal(broken.status, 502)
    t.match(await broken.json(), { error: { code: 'upstream_error' } }, 'errors stay JSON')
  })

  await t.test('a long one is polled, listed, and refunded where it fails', async (t) => {
    const client = await newClient(service, '100')
    const input = 'Once upon a time [simulate: delay=600000,queue=100,seconds=2.28]'
    const characters = [...input].length
    const submitted = await client.post(SPEECH, { model: MODEL, input, async: true })
    t.equal(submitted.status, 200)
    const id = submitted.body.id as string
    const { created_at } = submitted.body
    t.match(created_at, RFC_3339)
    t.same(submitted.body, { id, model: MODEL, status: 'pending', characters, created_at })
    t.match((await client.get(`/v1/logs?include=in_flight&ref=${id}`)).body.in_flight, [
      { task_id: id, unit_type: 'audio', status: 'pending' },
    ])
    const failing = 'It ends badly [simulate: delay=100,outcome=fail]'
    const bad = await client.post(SPEECH, { model: MODEL, input: failing, async: true })
    await finishUpstream(service, id)
    const ended = await client.ended(`${SPEECH}/${id}`)
    t.same(ended, {
      id,
      model: MODEL,
      status: 'succeeded',
      characters,
      duration_sec: '2.28',
      audio_url: ended.audio_url,
      created_at,
    })
    t.equal(await typeBehind(ended.audio_url as string), 'audio/mpeg')
    const failed = await client.ended(`${SPEECH}/${bad.body.id}`)
    t.match(failed, { status: 'failed', error: { code: 'generation_failed', message: /\w/ } })
    t.notOk('audio_url' in failed)
    t.match((await client.get(`${SPEECH}?status=succeeded`)).body, { object: 'list', data: [ended] })
    t.match((await client.get(`${SPEECH}?status=failed,pending`)).body, { data: [{ id: bad.body.id }] })
    t.equal(((await client.get(`${SPEECH}?limit=1&status=all`)).body.data as []).length, 1)
    const charged = priceOf(characters)
    await checkEntries(t, service, client, id, { held: charged, charged })
    const held = priceOf([...failing].length)
    await checkEntries(t, service, client, bad.body.id as string, { held, charged: null })
    t.match(await rowOf(service, client.key, id), { attempts_count: null, cost: charged })
    await checkWallet(t, service, client, '100', [charged])
  })

  await t.test('a call that is cut off is said and charged all the same', async (t) => {
    const client = await newClient(service, '100')
    const input = 'Nobody listens [simulate: delay=600000]'
    const cut = new AbortController()
    const call = post(service, client.key, SPEECH, { model: MODEL, input }, {}, cut.signal)
    const listed = async () => ((await client.get(SPEECH)).body.data as { id: string }[])[0]
    const { id } = await eventually('the task is there', listed)
    cut.abort()
    await t.rejects(call)
    t.same((await client.get(`/v1/logs?include=in_flight`)).body.in_flight, [], 'no job of its own')
    await finishUpstream(service, id)
    t.match(await client.ended(`${SPEECH}/${id}`), { status: 'succeeded', audio_url: /^http/ })
    const charged = priceOf([...input].length)
    await checkEntries(t, service, client, id, { held: charged, charged })
    t.equal((await upstreamTasks(`reference=${id}`)).length, 1)
    await checkWallet(t, service, client, '100', [charged])
  })

  await t.test('a voice is cloned, speaks at its own speed, and is deleted', async (t) => {
    const client = await newClient(service, '200')
    const body = { name: 'Ada', audio_url: linkTo('ada.mp3', 'delay=100') }
    const made = await client.post(VOICES, body, { 'idempotency-key': 'ada-1' })
    t.equal(made.status, 200)
    const { id, created_at } = made.body as { id: string; created_at: string }
    t.match(id, new RegExp(`^voi_${ULID}$`))
    t.match(created_at, RFC_3339)
    const record = { id, name: 'Ada', status: 'ready', model: 'voice-clone-pro', created_at, error: null }
    t.same(made.body, record)
    t.same((await client.post(VOICES, body, { 'idempotency-key': 'ada-1' })).body, record)
    t.same((await client.get(`${VOICES}/${id}`)).body, record)
    t.match(await rowOf(service, client.key, made.trace), {
      status: 'success',
      unit_type: 'voice',
      unit_count: '1',
      cost: CLONE_PRICE,
      task_id: id,
    })
    await checkEntries(t, service, client, id, { held: CLONE_PRICE, charged: CLONE_PRICE })

    const input = 'I am Ada. [simulate: delay=100]'
    const speak = (more: object) => client.post(SPEECH, { model: MODEL, input, ...more })
    const own = await speak({ voice: id, speed: 1.5 })
    t.equal(own.status, 200)
    const taskOf = async ({ trace }: Answer) => (await rowOf(service, client.key, trace)).task_id as string
    const [voiced] = await upstreamTasks(`reference=${id}`)
    t.match(await upstreamInput(await taskOf(own)), { voice: `voice-${voiced?.id}`, speed: 1.5 })
    const preset = await speak({ voice: 'sim-voice-ada', speed: 1.5 })
    t.match(await upstreamInput(await taskOf(preset)), { voice: 'sim-voice-ada', speed: 1 })
    t.match(codeOf(await client.post(SPEECH, { model: 'demo-speech', input, voice: id })), NO_CHANNEL)
    t.equal((await client.post(SPEECH, { model: 'demo-speech', input, voice: 'coral' })).status, 200)

    const stranger = await newClient(service, '100')
    t.match(codeOf(await stranger.post(SPEECH, { model: MODEL, input, voice: id })), INVALID)
    t.match(codeOf(await stranger.get(`${VOICES}/${id}`)), ABSENT)
    t.match(codeOf(await stranger.ask('DELETE', `${VOICES}/${id}`)), ABSENT)

    t.same((await client.ask('DELETE', `${VOICES}/${id}`)).body, { id, deleted: true })
    const deleted = await client.get(`${VOICES}/${id}`)
    t.match(deleted, { status: 404, body: { error: { message: 'There is no voice with this id.' } } })
    t.match(codeOf(await speak({ voice: id })), INVALID)
    t.same((await client.get(VOICES)).body.voices, [])
    const spoken = priceOf([...input].length)
    const other = String(([...input].length * 60) / 1000)
    await checkWallet(t, service, client, '200', [CLONE_PRICE, spoken, spoken, other])
  })

  await t.test('a voice that is waited for elsewhere, and one that fails', async (t) => {
    const client = await newClient(service, '200')
    const pending = await client.post(VOICES, {
      name: 'Mei',
      audio_url: linkTo('ada.mp3', 'delay=600000,queue=100'),
      async: true,
    })
    const id = pending.body.id as string
    t.match(pending, { status: 200, body: { id, name: 'Mei', status: 'pending', error: null } })
    const early = await client.ask('DELETE', `${VOICES}/${id}`)
    t.match(codeOf(early), INVALID)
    t.match(messageOf(early), /voice is still being made/)
    t.match(codeOf(await client.post(SPEECH, { model: MODEL, input: 'Hello.', voice: id })), INVALID)
    const broken = { name: 'Bad', audio_url: linkTo('ada.mp3', 'delay=100,outcome=fail,code=invalid_input') }
    const failed = await client.post(VOICES, broken)
    t.match(codeOf(failed), INVALID)
    const listed = await client.get(VOICES)
    t.match(
      listed.body.voices,
      [
        { name: 'Bad', status: 'failed' },
        { id, name: 'Mei' },
      ],
      'the newest first',
    )
    t.match((listed.body.presets as object[])[0], { id: 'sim-voice-ada', name: 'Ada', models: [MODEL] })
    await finishUpstream(service, id)
    t.match(await client.ended(`${VOICES}/${id}`), { status: 'ready' })
    const bad = (listed.body.voices as { id: string }[])[0]!.id
    t.match((await client.get(`${VOICES}/${bad}`)).body, { status: 'failed', error: /\w/ })
    await checkEntries(t, service, client, bad, { held: CLONE_PRICE, charged: null })
    t.equal((await client.ask('DELETE', `${VOICES}/${bad}`)).status, 200)
    await checkWallet(t, service, client, '200', [CLONE_PRICE])
  })

  await t.test('what is wrong with a request is said, and nothing is held', async (t) => {
    const client = await newClient(service, '1000')
    const input = 'Hello.'
    const wrong: [string, object, RegExp][] = [
      [SPEECH, { model: MODEL }, /'input'/],
      [SPEECH, { model: MODEL, input: '' }, /'input'/],
      [SPEECH, { model: MODEL, input: 'x'.repeat(5001) }, /'input'.*5000/],
      [SPEECH, { input }, /'model'/],
      [SPEECH, { model: MODEL, input, speed: 0 }, /'speed'/],
      [SPEECH, { model: MODEL, input, voice: 'nobody' }, /'voice'/],
      [SPEECH, { model: MODEL, input, voice: 'voi_00000000000000000000000000' }, /'voice'/],
      [SPEECH, { model: MODEL, input, async: 'yes' }, /'async'/],
      [VOICES, { name: 'Ada' }, /'audio_url'/],
      [VOICES, { name: '', audio_url: linkTo('ada.mp3', '') }, /'name'/],
      [VOICES, { name: 'Ada', audio_url: 'ftp://example.com/a.mp3' }, /'audio_url'/],
    ]
    for (const [path, body, message] of wrong) {
      const answer = await client.post(path, body)
      t.match(codeOf(answer), INVALID)
      t.match(messageOf(answer), message)
    }
    for (const query of ['status=ready', 'limit=0', 'limit=101'])
      t.match(codeOf(await client.get(`${SPEECH}?${query}`)), INVALID, query)
    const strict = await newClient(service, '100', { allowedModels: ['voice-clone-pro'] })
    t.match(codeOf(await strict.post(SPEECH, { model: MODEL, input })), NOT_ALLOWED)
    const poor = await newClient(service, '0.1')
    t.match(codeOf(await poor.post(SPEECH, { model: MODEL, input })), NO_CREDIT)
    t.match(codeOf(await poor.post(VOICES, { name: 'Ada', audio_url: linkTo('ada.mp3', '') })), NO_CREDIT)
    await checkWallet(t, service, client, '1000', [])
  })
})
