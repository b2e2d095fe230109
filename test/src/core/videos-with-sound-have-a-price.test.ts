/** A video with sound is held, charged and costed at the price that was agreed for it. */
import t from 'tap'
import { channelEntry, modelEntry } from '../../../schemas/config/catalog.ts'
import { mediaJob, taskResult } from '../../../schemas/media/job.ts'
import { mediaPrice } from '../../../schemas/media/price.ts'
import { printCredits } from '../../../schemas/money.ts'
import { clampToOrder } from '../../../src/core/media/order.ts'
import { chargeOf, costOf, holdOf, mediaPriceOf, upstreamPriceOf } from '../../../src/core/media/pricing.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')
const job = mediaJob.parse({ work: 'video', content: [], duration: 5 })
const made = (height: number) =>
  taskResult.parse({ files: [{ role: 'video', width: Math.round((height * 16) / 9), height }], seconds: 4 })

const entryOf = (pricing: object) =>
  modelEntry.parse({ id: 'm', endpoint_type: 'videos_generations', pricing: { unit: 'second', ...pricing } })

function agreed(pricing: object, sound: boolean, variant: string | null = null, now = NOW) {
  const price = mediaPriceOf(entryOf(pricing), variant, now, sound)
  // As it comes back from the row of its task.
  return price === null ? null : mediaPrice.parse(JSON.parse(JSON.stringify(price)))
}

const held = (...of: Parameters<typeof agreed>) => printCredits(holdOf(agreed(...of)!, job))

t.test('sound has its price; without one it has the price of every video', async (t) => {
  const both = { per_unit: '0.2', with_audio: { per_unit: '0.4' } }
  t.same([held(both, false), held(both, true)], ['1', '2'])
  t.equal(held({ ...both, discount: '0.5' }, true), '1')
  t.equal(held({ per_unit: '0.2' }, true), '1')
  t.equal(agreed({ per_unit: '0.2', with_audio: {} }, true), null, 'sound is not for sale')
  t.equal(chargeOf(agreed(both, true)!, job, made(720)).line, '4 seconds x 0.4 = 1.6')
})

const VARIANTS = {
  variants: { '720p': '1', '1080p': '2' },
  with_audio: { variants: { '720p': '3', '4k': '9' } },
}

t.test('the delivered resolution is charged with the sound that was agreed', async (t) => {
  const silent = agreed(VARIANTS, false, '1080p')!
  const loud = agreed(VARIANTS, true, '4k')!
  const charged = (price: typeof silent, height: number) =>
    printCredits(chargeOf(price, job, made(height)).cost)
  t.same([charged(silent, 720), charged(silent, 1080)], ['4', '8'])
  t.same([charged(loud, 720), charged(loud, 2160)], ['12', '36'])
  t.equal(agreed(VARIANTS, true, '1080p'), null, 'a price without sound is none with it')
  const reported = { ...made(1080), variant: '1080p' }
  const { beyond } = clampToOrder(job, agreed(VARIANTS, true, '720p')!, reported)
  t.same(beyond, ['1080p, which has no price: charged as 720p'])
})

t.test('a planned change brings its own prices of sound, or takes them away', async (t) => {
  const changes = [
    { from: '2026-07-01T00:00:00Z', per_unit: '0.3', with_audio: { per_unit: '0.5' } },
    { from: '2026-08-01T00:00:00Z', per_unit: '0.6' },
  ]
  const prices = { per_unit: '0.2', changes }
  const at = (day: string) => held(prices, true, null, Date.parse(day))
  t.same(['2026-06-01', '2026-07-01', '2026-08-01'].map(at), ['1', '2.5', '3'])
})

t.test('the operator pays the price of the channel, with the sound that was agreed', async (t) => {
  const paid = (cost: object, sound: boolean, variant: string | null = null) => {
    const channel = channelEntry.parse({
      ...{ id: 'c', protocol: 'ark-video', base_url: 'https://c.example', models: { m: 'up' } },
      cost: { m: { unit: 'second', ...cost } },
    })
    const pricing = variant === null ? { per_unit: '1' } : VARIANTS
    const price = agreed(pricing, sound, variant)!
    const task = { model: 'm', channelId: 'c', price, submittedAt: NOW }
    const upstream = upstreamPriceOf({ channels: [channel], models: [entryOf(pricing)] }, task)
    if (upstream === null || upstream.unit === '1M_tokens') return null
    return printCredits(costOf(upstream, job, made(720)).cost)
  }
  const both = { per_unit: '0.1', with_audio: { per_unit: '0.2' } }
  t.same([paid(both, false), paid(both, true)], ['0.4', '0.8'], 'also where the customer has one price')
  t.equal(paid({ per_unit: '0.1' }, true), '0.4')
  t.equal(paid({ per_unit: '0.1', with_audio: { variants: { '720p': '0.3' } } }, true, '720p'), '1.2')
  t.equal(paid({ per_unit: '0.1', with_audio: {} }, true), null, 'an unknown cost is no cost of a silent one')
})
