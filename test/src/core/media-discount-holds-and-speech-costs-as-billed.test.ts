/** A discount of media holds for a request from its instant on, and speech costs the operator what its provider bills. */
import t from 'tap'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { mediaJob, taskResult } from '../../../schemas/media/job.ts'
import { printCredits } from '../../../schemas/money.ts'
import { chargeOf, costOf, holdOf, mediaPriceOf } from '../../../src/core/media/pricing.ts'
import { modelAt } from '../../../src/core/pricing/changes.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')
const modelOf = (pricing: object) => ({
  entry: modelEntry.parse({ id: 'm', endpoint_type: 'audio_speech', pricing }),
})
const speech = (input: string) => mediaJob.parse({ work: 'speech', input, speed: 1 })

t.test('the discount at the instant of the request holds while its body comes', async (t) => {
  const discounted = { per_unit: '1', discount: '0.8' }
  const prices = { unit: 'call', ...discounted }
  const until = '2026-06-01T00:00:00.001Z'
  const change = { from: '2026-01-01T00:00:00Z', ...discounted, discount_until: until }
  for (const [pricing, requested, held] of [
    [{ ...prices, discount_until: until }, NOW, '0.8'],
    [{ ...prices, discount_until: until }, NOW + 1, '1'],
    [{ unit: 'call', per_unit: '9', changes: [change] }, NOW, '0.8'],
    [prices, NOW, '0.8'],
  ] as const) {
    const price = mediaPriceOf(modelAt(modelOf(pricing), requested).entry, null, NOW + 60_000)!
    t.equal(printCredits(holdOf(price, speech('hi'))), held)
  }
})

t.test('speech costs the operator the characters that the provider bills', async (t) => {
  const price = mediaPriceOf(modelOf({ unit: '1000_characters', per_unit: '1000' }).entry, null, NOW)!
  const made = taskResult.parse({ seconds: 3, billed_characters: 9 })
  t.equal(chargeOf(price, speech('日本語🎉'), made).units, '4', 'each is charged once')
  t.equal(costOf(price, speech('日本語🎉'), made).units, '9')
  t.equal(
    costOf(price, speech('日本語🎉'), taskResult.parse({ seconds: 3 })).units,
    '4',
    'of an upstream that does not report them',
  )
})
