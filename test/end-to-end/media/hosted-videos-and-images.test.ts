/**
 * Providers of media behind the whole service: a video and images from the request to the settled row, charged by what fal
 * reports, stored, and opened by the links that are handed out; and a submit to Kling whose answer is lost.
 */
import t from 'tap'
import { connectTo } from '../../support/connections.ts'
import { until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { falDialect } from '../../support/media-providers/fal.ts'
import { ACCESS_KEY, klingDialect, SECRET_KEY } from '../../support/media-providers/kling.ts'
import { FILM, KEY, startProvider } from '../../support/media-providers/provider.ts'
import { rowOf } from '../support.ts'
import { checkEntries, checkWallet, demonstrationWith, newClient } from './support.ts'

const VIDEOS = '/v1/videos/generations'
const IMAGES = '/v1/images/generations'
const MODELS = `
  - id: hosted-film
    endpoint_type: videos_generations
    pricing: { unit: second, per_unit: "3", variants: { 720p: "3", 1080p: "5" } }
  - id: hosted-picture
    endpoint_type: images_generations
    pricing: { unit: image, per_unit: "2" }
  - id: kling-film
    endpoint_type: videos_generations
    pricing: { unit: second, per_unit: "3" }
`
const channelsAt = (fal: string, kling: string): string => `
  - id: fal-main
    provider: fal
    base_url: ${fal}
    api_key: ${KEY}
    models: { hosted-film: fal-ai/kling-video/v2/pro, hosted-picture: fal-ai/flux/dev }
    input_names: { last_frame: tail_image_url }
  - id: kling-main
    provider: kling
    base_url: ${kling}/v1
    auth: { type: jwt-hs256, access_key: ${ACCESS_KEY}, secret_key: ${SECRET_KEY} }
    models: { kling-film: kling-v2-6 }
`

t.test('fal and Kling behind the service', async (t) => {
  const provider = await startProvider(t, falDialect)
  const kling = await startProvider(t, klingDialect)
  const service = await borrowService(t, demonstrationWith(MODELS, channelsAt(provider.url, kling.url)))

  await t.test('a video: followed, fetched, charged by its own length and size', async (t) => {
    const client = await newClient(service, '100')
    const submitted = await client.post(VIDEOS, {
      model: 'hosted-film',
      prompt: 'good film',
      duration: 5,
      resolution: '1080p',
    })
    t.equal(submitted.status, 200)
    const id = String(submitted.body.id)
    const video = await client.ended(`${VIDEOS}/${id}`)
    t.match(video, { id, status: 'succeeded', model: 'hosted-film', duration_sec: 4 })
    const file = await fetch(String(video.video_url))
    t.ok(Buffer.from(await file.arrayBuffer()).equals(FILM), 'byte for byte')
    t.match(provider.jobs[0]?.call, {
      path: '/fal-ai/kling-video/v2/pro',
      body: { prompt: 'good film', duration: '5', resolution: '1080p' },
    })
    // 4 seconds of 720 lines at 3, where 5 of 1,080 at 5 were asked for.
    await checkEntries(t, service, client, id, { held: '25', charged: '12' })
    t.match(await rowOf(service, client.key, submitted.trace), {
      status: 'success',
      unit_type: 'video',
      unit_count: '4',
      cost: '12',
      task_id: id,
    })
    await checkWallet(t, service, client, '100', ['12'])
  })

  await t.test('images within one request: as many as were made', async (t) => {
    const client = await newClient(service, '100')
    const drawn = await client.post(IMAGES, { model: 'hosted-picture', prompt: 'good pictures', n: 2 })
    t.equal(drawn.status, 200)
    t.equal((drawn.body.data as unknown[]).length, 2)
    await checkWallet(t, service, client, '100', ['4'])
  })

  await t.test('refused content gives everything back, in the words of the host', async (t) => {
    const client = await newClient(service, '100')
    const { body } = await client.post(VIDEOS, { model: 'hosted-film', prompt: 'improper', duration: 5 })
    const id = String(body.id)
    const video = await client.ended(`${VIDEOS}/${id}`)
    t.match(video, { status: 'failed', error: { message: 'The prompt was flagged.' } })
    await checkEntries(t, service, client, id, { held: '15', charged: null })
    await checkWallet(t, service, client, '100', [])
  })

  const sql = connectTo(t, service.engines.databaseUrl)
  const lostOf = async (key: string, trace: string) => {
    const { task_id: id } = await rowOf(service, key, trace)
    const [lost] = await sql<{ state: string; upstream_id: string | null; next_check_at: bigint | null }[]>`
      SELECT state, upstream_id, next_check_at FROM lost_submits WHERE task_id = ${String(id)}`
    return lost
  }

  await t.test('a lost answer: an error, no task, and nothing is sent again', async (t) => {
    const client = await newClient(service, '100')
    const lost = await client.post(VIDEOS, { model: 'hosted-film', prompt: 'cut off', duration: 5 })
    t.match(lost, { status: 502, body: { error: { code: 'upstream_unreachable' } } })
    t.same((await client.get(VIDEOS)).body.data, [])
    await checkWallet(t, service, client, '100', [])
    t.match(await rowOf(service, client.key, lost.trace), { status: 'error', cost: '0' })
    await until('nobody can ask', async () => (await lostOf(client.key, lost.trace))?.next_check_at === null)
    t.match(await lostOf(client.key, lost.trace), { state: 'open', upstream_id: null })
    t.equal(provider.jobs.filter(({ prompt }) => prompt === 'cut off').length, 1)
  })

  await t.test('a lost answer of Kling: found for the operator, with a signed token', async (t) => {
    const client = await newClient(service, '100')
    const lost = await client.post(VIDEOS, { model: 'kling-film', prompt: 'cut off', duration: 5 })
    t.match(lost, { status: 502, body: { error: { code: 'upstream_unreachable' } } })
    await until('it is found', async () => (await lostOf(client.key, lost.trace))?.upstream_id !== null)
    t.equal(kling.jobs.length, 1)
    t.equal(kling.jobs[0]?.reference, (await rowOf(service, client.key, lost.trace)).task_id)
    await checkWallet(t, service, client, '100', [])
  })
})
