/**
 * Videos with and without sound behind the whole service: held and charged by the price of the model, costed by that of
 * the channel, and asked for in the provider's words.
 */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { falDialect } from '../../support/media-providers/fal.ts'
import { KEY, startProvider } from '../../support/media-providers/provider.ts'
import { rowOf } from '../support.ts'
import { checkEntries, checkWallet, demonstrationWith, newClient } from './support.ts'

const VIDEOS = '/v1/videos/generations'
const MODELS = `
  - id: film-with-sound
    endpoint_type: videos_generations
    videos: { default_audio: true }
    pricing:
      unit: second
      variants: { 720p: "2", 4k: "4" }
      with_audio: { variants: { 720p: "4", 4k: "6" } }
`
const channelAt = (fal: string): string => `
  - id: fal-sound
    provider: fal
    base_url: ${fal}
    api_key: ${KEY}
    models: { film-with-sound: fal-ai/veo3.1 }
    cost:
      film-with-sound:
        { unit: second, variants: { 720p: "1.5", 4k: "3" }, with_audio: { per_unit: "3.25" } }
`

t.test('sound', async (t) => {
  const provider = await startProvider(t, falDialect)
  const service = await borrowService(t, demonstrationWith(MODELS, channelAt(provider.url)))
  const operator = await signIn(service, { role: 'operator' })

  const run = async (prompt: string, generate_audio: boolean | null, resolution = '720p') => {
    const client = await newClient(service, '100')
    const body = { model: 'film-with-sound', prompt, duration: 5, resolution, generate_audio }
    const submitted = await client.post(VIDEOS, body)
    t.equal(submitted.status, 200, prompt)
    const id = String(submitted.body.id)
    t.match(await client.ended(`${VIDEOS}/${id}`), { status: 'succeeded', duration_sec: 4 })
    const row = await rowOf(service, client.key, submitted.trace)
    const path = `/calls/${row.id}?account_id=${client.accountId}`
    const { body: call } = await operator.send('GET', path)
    const sent = provider.jobs.find((job) => job.prompt === prompt)?.call.body
    return { client, id, call, sent }
  }

  await t.test('four seconds came where five were asked for, each with its sound', async (t) => {
    for (const [prompt, asked, held, charged, paid] of [
      ['good with sound', true, '20', '16', '13'],
      ['good without', false, '10', '8', '6'],
      ['good as it is', null, '20', '16', '13'],
    ] as const) {
      const { client, id, call, sent } = await run(prompt, asked)
      t.equal(sent?.generate_audio, asked ?? undefined, `${prompt}: as it was asked for`)
      await checkEntries(t, service, client, id, { held, charged })
      t.match(call, { call: { cost: charged }, operator: { upstream_cost: paid } }, prompt)
      const request = JSON.stringify(call)
      t.match(request, new RegExp(`"generate_audio"[^}]*${asked ?? 'by default'}`), 'in the detail')
      await checkWallet(t, service, client, '100', [charged])
    }
  })

  await t.test('a smaller video is charged at its own price with sound', async (t) => {
    const { client, id, call } = await run('good in small', true, '4k')
    await checkEntries(t, service, client, id, { held: '30', charged: '16' })
    t.match(call, { call: { cost: '16' }, operator: { upstream_cost: '13' } })
  })

  await t.test('the catalog says both', async (t) => {
    const answer = await fetch(`${service.baseUrl}/api/v1/models/public`)
    const { models } = (await answer.json()) as { models: { id: string }[] }
    const film = models.find(({ id }) => id === 'film-with-sound')
    t.match(film, {
      videos: { default_audio: true },
      pricing: { variants: { '720p': '2' }, with_audio: { per_unit: null, variants: { '720p': '4' } } },
    })
  })
})
