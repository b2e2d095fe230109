/** A request that says whether its video has sound, or leaves it to the model, is priced by what its channel makes. */
import t from 'tap'
import { pricedJob } from '../../../pipelines/media/priced-job.ts'
import { VIDEO_JOBS, type VideoParams, type VideoSources } from '../../../pipelines/media/videos/jobs.ts'
import { type ChannelEntry, modelEntry } from '../../../schemas/config/catalog.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import { channelAt } from './support.ts'

const caller = {} as VideoParams['caller']

const routeTo = (
  id: string,
  protocol: ChannelEntry['protocol'],
  more: Partial<ChannelEntry> = {},
): Route => ({
  channel: { ...channelAt('https://up.example', { id }), protocol, ...more },
  upstreamModel: 'm',
  protocol,
  cost: null,
  isTranslated: false,
})
const ark = routeTo('ark', 'ark-video')
const vertex = routeTo('vertex', 'veo', { provider: 'vertex' })
const gemini = routeTo('gemini', 'veo')
const minimax = routeTo('minimax', 'minimax-video')
const nameless = routeTo('nameless', 'fal', { input_names: { generate_audio: '' } })

const BOTH = { unit: 'second', per_unit: '1', with_audio: { per_unit: '3' } }

interface Asked {
  readonly generate_audio?: boolean | null
  readonly resolution?: string
  readonly content?: unknown
}

/** Returns what is held for a second, what of sound is sent on, and the channels. */
async function made(asked: Asked, pricing: object, default_audio?: boolean, routes = [ark]) {
  const entry = modelEntry.parse({
    ...{ id: 'film', endpoint_type: 'videos_generations', pricing },
    ...(default_audio !== undefined && { videos: { default_audio } }),
  })
  const body = { model: 'film', prompt: 'A fox', duration: 1, ...asked }
  // Runway makes a video of a video in the default length alone.
  const videos = { ...entry.videos, default_duration: 1 }
  const params = { caller, body, entry: { ...entry, videos }, routes }
  const { job, variant, routes: able } = await VIDEO_JOBS.video({} as VideoSources, params)
  const { hold, price } = pricedJob(
    { id: 'film', entry: params.entry, price: null, strategy: 'priority' },
    job,
    variant,
  )
  const { sound } = price as { sound: boolean }
  const { generate_audio } = job as { generate_audio: boolean | null }
  return { held: printCredits(hold), sound, sent: generate_audio, to: able.map(({ channel }) => channel.id) }
}

const refusal = (message: RegExp) => ({ code: 'invalid_request', status: 400, message })

t.test('sound is priced as asked for, else as the model makes it, and nothing is sent unasked', async (t) => {
  t.match(await made({}, BOTH), { held: '1', sound: false, sent: null })
  t.match(await made({ generate_audio: true }, BOTH), { held: '3', sound: true, sent: true })
  t.match(await made({ generate_audio: false }, BOTH), { held: '1', sound: false, sent: false })
  t.match(await made({}, BOTH, true), { held: '3', sound: true, sent: null })
  t.match(await made({ generate_audio: null }, BOTH, true), { held: '3', sound: true, sent: null })
  t.match(await made({ generate_audio: false }, BOTH, true), { held: '1', sound: false, sent: false })
})

t.test('a model with one price has it with sound too, through every channel', async (t) => {
  const one = { unit: 'second', per_unit: '1' }
  for (const generate_audio of [true, false, null])
    t.match(await made({ generate_audio }, one, undefined, [ark, gemini, minimax, nameless]), {
      held: '1',
      sent: generate_audio,
      to: ['ark', 'gemini', 'minimax', 'nameless'],
    })
})

t.test('a resolution without a price for it is refused, and so is sound without any', async (t) => {
  const pricing = {
    unit: 'second',
    variants: { '720p': '1', '1080p': '2' },
    with_audio: { variants: { '1080p': '4' } },
  }
  t.match(await made({ generate_audio: true, resolution: '1080P' }, pricing), { held: '4' })
  t.match(await made({ resolution: '720p' }, pricing), { held: '1' })
  const asked = { generate_audio: true, resolution: '720p' }
  await t.rejects(made(asked, pricing), refusal(/'resolution'.*the model has 1080p with sound$/))
  const unheard = { resolution: '4k' }
  await t.rejects(made(unheard, pricing), refusal(/'resolution'.*720p, 1080p without sound$/))
  const silent = { unit: 'second', per_unit: '1', with_audio: {} }
  t.match(await made({}, silent), { held: '1' })
  await t.rejects(made({ generate_audio: true }, silent), refusal(/'generate_audio'.*no price/))
})

t.test('a channel that cannot be asked is used for what it makes by itself alone', async (t) => {
  const all = [gemini, vertex, nameless, minimax]
  t.same((await made({}, BOTH, true, all)).to, ['gemini', 'vertex', 'nameless', 'minimax'])
  t.same((await made({ generate_audio: true }, BOTH, true, all)).to.length, 4)
  t.match(await made({ generate_audio: false }, BOTH, true, all), { held: '1', to: ['vertex'] })
  t.match(await made({ generate_audio: true }, BOTH, false, all), { held: '3', to: ['vertex'] })
  const always = refusal(/'generate_audio'.*always made with sound: leave the field out/)
  await t.rejects(made({ generate_audio: false }, BOTH, true, [gemini]), always)
  const never = refusal(/'generate_audio'.*always made without sound/)
  await t.rejects(made({ generate_audio: true }, BOTH, false, [minimax]), never)
})

t.test('so it is where only the operator pays for sound', async (t) => {
  const cost = { film: { ...BOTH, changes: [], pixel_tiers: [], tiers: [] } } as unknown as NonNullable<
    ChannelEntry['cost']
  >
  const paid = routeTo('paid', 'runway', { cost })
  const content = [{ type: 'video_url', video_url: 'https://example.com/c.mp4' }]
  const one = { unit: 'second', per_unit: '1' }
  t.same((await made({ generate_audio: true, content }, one, false, [paid, ark])).to, ['ark'])
  t.same((await made({ generate_audio: true }, one, false, [paid, ark])).to, ['paid', 'ark'])
})
