/**
 * Videos and speech with a mock behind the gateway that no one here wrote: Ark's task interface and ElevenLabs' speech,
 * from the request to the settled row. And what is handed out opens: films, sounds and pictures are read to the end.
 */
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { LLMock } from '@copilotkit/aimock'
import t, { type Test } from 'tap'
import { filmMp4 } from '../../../simulator/media/samples.ts'
import { complaintsOfDecoder, readMp3, readMp4, readPng } from '../../simulator/media/probe.ts'
import { borrowService } from '../../support/lend-services.ts'
import { rowOf } from '../support.ts'
import { checkEntries, checkWallet, demonstrationWith, newClient } from './support.ts'

const VIDEOS = '/v1/videos/generations'
const FILM = filmMp4({ widthPixels: 320, heightPixels: 240, seconds: 3 })
const MP3 = readFileSync(new URL('../../fixtures/media/plain.mp3', import.meta.url))
const MODELS = `
  - id: seedance
    endpoint_type: videos_generations
    pricing: { unit: second, per_unit: "3" }
  - id: turbo-voice
    endpoint_type: audio_speech
    pricing: { unit: 1000_characters, per_unit: "50" }
`
const channelsAt = (url: string): string => `
  - id: ark
    protocol: ark-video
    base_url: ${url}/api/v3
    api_key: ark-mock-1
    models: { seedance: doubao-seedance-1 }
  - id: eleven
    protocol: elevenlabs
    base_url: ${url}
    api_key: xi-mock-1
    models: { turbo-voice: eleven_turbo_v2_5 }
`

function withMock(): LLMock {
  const mock = new LLMock({
    port: 0,
    logLevel: 'silent',
    bytePlusVideo: { pollsBeforeInProgress: 1, pollsBeforeCompleted: 2 },
  })
  mock.mount('/content', {
    handleRequest: async (_, response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': FILM.length }).end(FILM)
      return true
    },
  })
  mock.onElevenLabsTTS('Good morning', { audio: MP3.toString('base64'), format: 'mp3' })
  return mock
}

function withVideos(mock: LLMock): void {
  const finished = {
    id: 'cgt-1',
    model: 'seedance',
    status: 'succeeded',
    created_at: 1763712000,
    duration: 4,
  }
  const content = { video_url: `${mock.url}/content/1.mp4` }
  mock.on({ endpoint: 'video', userMessage: 'the dough rises' }, { json: { ...finished, content } })
  const error = { code: 'OutputVideoSensitiveContentDetected', message: 'The video may be sensitive.' }
  mock.on(
    { endpoint: 'video', userMessage: 'something rude' },
    { json: { ...finished, status: 'failed', error } },
  )
}

/** What is behind a link that the gateway handed out, and that the machine's decoder, if it has one, plays it. */
async function opened(t: Test, url: string, mediaType: string): Promise<Buffer> {
  t.match(url, /\/files\//)
  const response = await fetch(url)
  t.equal(response.headers.get('content-type'), mediaType)
  const bytes = Buffer.from(await response.arrayBuffer())
  const complaints = complaintsOfDecoder(bytes)
  t.ok(complaints === null || complaints === '', complaints ?? 'no decoder here')
  return bytes
}

t.test('aimock, and files that open', async (t) => {
  const mock = withMock()
  await mock.start()
  t.teardown(() => mock.stop())
  withVideos(mock)
  const service = await borrowService(t, demonstrationWith(MODELS, channelsAt(mock.url)))

  await t.test('a video of Ark: followed, taken into the store, charged by what it says it is', async (t) => {
    const client = await newClient(service, '100')
    const submitted = await client.post(VIDEOS, { model: 'seedance', prompt: 'the dough rises', duration: 5 })
    t.equal(submitted.status, 200)
    const id = String(submitted.body.id)
    const video = await client.ended(`${VIDEOS}/${id}`)
    t.match(video, { id, status: 'succeeded', model: 'seedance', duration_sec: 4 })
    const file = await opened(t, String(video.video_url), 'video/mp4')
    t.ok(file.equals(FILM), 'byte for byte')
    const sent = mock
      .getRequests()
      .find(({ method, path }) => method === 'POST' && path.startsWith('/api/v3'))
    t.equal(sent?.path, '/api/v3/contents/generations/tasks')
    await checkEntries(t, service, client, id, { held: '15', charged: '12' })
    t.match(await rowOf(service, client.key, submitted.trace), {
      status: 'success',
      unit_type: 'video',
      unit_count: '4',
      cost: '12',
      task_id: id,
    })
    await checkWallet(t, service, client, '100', ['12'])
  })

  await t.test('a video that Ark made and did not give out: refunded, in its words', async (t) => {
    const client = await newClient(service, '100')
    const { body } = await client.post(VIDEOS, { model: 'seedance', prompt: 'something rude', duration: 5 })
    const id = String(body.id)
    const video = await client.ended(`${VIDEOS}/${id}`)
    t.match(video, { status: 'failed', error: { message: 'The video may be sensitive.' } })
    await checkEntries(t, service, client, id, { held: '15', charged: null })
    await checkWallet(t, service, client, '100', [])
  })

  await t.test('what Ark refuses is refused, and nothing is held', async (t) => {
    const client = await newClient(service, '100')
    const refused = await client.post(VIDEOS, { model: 'seedance', prompt: 'nothing known', duration: 5 })
    t.match(refused, { status: 404, body: { error: { message: /fixture matched/ } } })
    t.same((await client.get(VIDEOS)).body.data, [], 'there is no task')
    await checkWallet(t, service, client, '100', [])
  })

  await t.test('speech of ElevenLabs: charged by the characters', async (t) => {
    const client = await newClient(service, '10')
    const said = await client.post('/v1/audio/speech', { model: 'turbo-voice', input: 'Good morning' })
    t.match(said.body, { model: 'turbo-voice', characters: 12, cost_usd: '0.6' })
    t.ok((await opened(t, String(said.body.audio_url), 'audio/mpeg')).equals(MP3), 'byte for byte')
    const sent = mock.getRequests().find(({ path }) => path.startsWith('/v1/text-to-speech/'))
    t.match(sent?.body, { model: 'eleven_turbo_v2_5', messages: [{ content: 'Good morning' }] })
    t.match(await rowOf(service, client.key, said.trace), {
      status: 'success',
      cost: '0.6',
      unit_count: '12',
    })
    await checkWallet(t, service, client, '10', ['0.6'])
  })

  await t.test('made films, songs and pictures open and are what was asked for', async (t) => {
    const client = await newClient(service, '1000')
    const quick = '[simulate: delay=200,queue=50]'
    const film = {
      model: 'demo-video-film',
      prompt: `A fox ${quick}`,
      duration: 3,
      resolution: '480p',
      ratio: '16:9',
    }
    const songs = { model: 'demo-music', prompt: `A tune [simulate: delay=200,queue=50,seconds=2.4]` }
    const picture = { model: 'demo-image', prompt: `A cat ${quick}`, size: '96x64' }
    const [video, music, image] = await Promise.all([
      client.post(VIDEOS, film).then(({ body }) => client.ended(`${VIDEOS}/${body.id}`)),
      client
        .post('/v1/music/generations', songs)
        .then(({ body }) => client.ended(`/v1/music/generations/${body.id}`)),
      client.post('/v1/images/generations', picture).then(({ body }) => body),
    ])
    const mp4 = readMp4(await opened(t, String(video.video_url), 'video/mp4'))
    t.match(mp4, { seconds: 3, samples: { length: 8 } })
    t.ok(Math.abs(mp4.width / mp4.height - 16 / 9) < 0.03, `${mp4.width}x${mp4.height}`)
    const tracks = music.tracks as { audio_url: string }[]
    t.equal(tracks.length, 2)
    for (const { audio_url } of tracks)
      t.equal(readMp3(await opened(t, audio_url, 'audio/mpeg')).seconds, 2.4)
    const [{ url }] = image.data as [{ url: string }]
    t.match(readPng(await opened(t, url, 'image/png')), { width: 96, height: 64 })
  })
})
