/** The demonstration has each fixed id at its price, with a channel. */
import t from 'tap'
import { CHAT_PROTOCOLS, MEDIA_ADAPTERS } from '../../../schemas/config/catalog.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { printCredits } from '../../../schemas/money.ts'
import { MEDIA_DIALECTS } from '../../../simulator/dialects.ts'
import { splitModelName } from '../../../simulator/directives/grammar.ts'
import { worksOf } from '../../../src/channels/media/registry.ts'
import { DEMONSTRATION_FILE } from '../../../src/config/demonstration.ts'
import { loadConfigFile } from '../../../src/config/load.ts'
import { holdOf, mediaPriceOf } from '../../../src/core/media/pricing.ts'
import { isRequestedModel } from '../../../src/core/routing/answered-model.ts'
import { createCatalog, type Model } from '../../../src/core/routing/catalog.ts'

const loaded = loadConfigFile(DEMONSTRATION_FILE, { TOLLGATE_SIMULATOR_URL: 'http://127.0.0.1:1' })
if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
const catalog = createCatalog(loaded.config)

const model = (id: string): Model => {
  const found = catalog.resolve(id)
  if (found === null) throw new Error(`no model ${id}`)
  return found
}

/** What is held for the job, in credits. */
function priceOf(id: string, job: object, variant: string | null = null): string {
  const price = mediaPriceOf(model(id).entry, variant, Date.now())
  return price === null ? 'no price' : printCredits(holdOf(price, mediaJob.parse(job)))
}

const picture = { from: 'url', url: 'https://x.test/a.png' }
const image = (more: object) => ({ work: 'image', prompt: 'a cat', n: 1, ...more })
const voice = { work: 'voice', name: 'Ada', audio: picture }
const transcript = { work: 'transcript', url: 'x' }
const avatar = { work: 'avatar', name: 'Ada', source: picture, source_kind: 'image' }
const speaks = { work: 'avatar_video', avatar: 'a', duration: 1 }
const lips = { work: 'lipsync', source_video: picture, audio: picture, duration: 1 }
const moves = (resolution: string) => ({
  work: 'motion',
  source_video: picture,
  portraits: [picture],
  face_count: 1,
  resolution,
  duration: 1,
})
const subtitle = { work: 'subtitle', video: picture }
const clip = {
  work: 'clip_compose',
  video: picture,
  asr_id: 'a',
  enable_title_effect: false,
  enable_caption_effect: true,
  enable_keyword_effect: true,
}

t.test('each fixed id at its price', async (t) => {
  t.equal(priceOf('voice-tts-pro', { work: 'speech', input: 'x'.repeat(1000), speed: 1 }), '125.36')
  t.equal(priceOf('voice-clone-pro', voice), '40.44')
  t.equal(priceOf('video-transcript', transcript), '20.22')
  t.equal(priceOf('dh-avatar-create', avatar), '220.11')
  t.equal(priceOf('dh-avatar', speaks), '3.96')
  t.equal(priceOf('dh-lipsync', lips), '4.04')
  t.equal(priceOf('dh-lipsync-pro', lips), '8.09')
  t.equal(priceOf('dh-lipsync-max', lips), '12.13')
  t.equal(priceOf('dh-motion', moves('fast'), 'fast'), '4.04')
  t.equal(priceOf('dh-motion', moves('standard'), 'standard'), '8.09')
  t.equal(priceOf('dh-motion', moves('max'), 'max'), '12.13')
  t.equal(priceOf('clip-compose', clip), '48')
  t.equal(priceOf('clip-subtitle', subtitle), '0')
  t.equal(priceOf('demo-music', { work: 'music', prompt: 'x', instrumental: false }), '19.41')
})

t.test('the image model with tiers: its threshold lies between two known sizes', async (t) => {
  t.equal(priceOf('demo-image-tiered', image({ size: '1536x1536' })), '17.79', '2.36 megapixels')
  t.equal(priceOf('demo-image-tiered', image({ size: '1616x1616' })), '35.58', '2.61 megapixels')
  t.equal(priceOf('demo-image-tiered', image({})), '35.58')
  t.equal(priceOf('demo-image-tiered', image({ images: [picture] })), '37.08')
  t.equal(priceOf('demo-image-grid', image({})), priceOf('demo-image-grid', image({ n: 4 })))
})

t.test('each model of media has a channel, and each simulated adapter a model', async (t) => {
  const media = catalog.models.filter(({ entry }) => entry.endpoint_type !== null)
  t.ok(media.length >= 20)
  const used = new Set<string>()
  for (const model of media) {
    const protocols = MEDIA_ADAPTERS.filter((protocol) => catalog.routes(model, protocol).length > 0)
    t.ok(
      protocols.some((protocol) => worksOf(protocol).length > 0),
      model.id,
    )
    for (const protocol of protocols) used.add(protocol)
  }
  const simulated = MEDIA_ADAPTERS.filter((name) => MEDIA_DIALECTS.some((dialect) => dialect.name === name))
  t.same([...used].sort(), simulated.toSorted())
  t.ok(simulated.length >= 7)
})

t.test('the simulated provider answers each chat model under the name that was asked for', async (t) => {
  for (const { protocol, models } of loaded.config.channels)
    if (CHAT_PROTOCOLS.some((name) => name === protocol))
      for (const asked of Object.values(models))
        t.ok(isRequestedModel(asked, splitModelName(asked).model), asked)
})
