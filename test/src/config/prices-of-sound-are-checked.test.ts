import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadConfigFile } from '../../../src/config/load.ts'

function messagesOf(test: Test, text: string): string[] {
  const path = join(test.testdir(), 'c.yaml')
  writeFileSync(path, text)
  const result = loadConfigFile(path, {})
  const isOfPrices = ({ field }: { field: string }) => /pricing|cost|videos/.test(field)
  const found = result.ok ? result.warnings : result.problems
  return found.filter(isOfPrices).map(({ field, message }) => `${field}: ${message}`)
}

const modelOf = (pricing: string, id = 'film', type = 'videos_generations', more = '') =>
  `models: [{ id: ${id}, endpoint_type: ${type}, ${more} pricing: { ${pricing} } }]\n`
const SOUND = 'unit: second, per_unit: 1, with_audio: { per_unit: 2 }'

t.test('prices with sound belong to videos that a request can have sound made for', async (t) => {
  t.same(messagesOf(t, modelOf(SOUND)), [])
  t.same(messagesOf(t, modelOf('unit: generation, per_unit: 1, with_audio: { variants: { 4k: 2 } }')), [])
  t.same(messagesOf(t, modelOf('unit: second, per_unit: 1, with_audio: {}')), [], 'sound is refused')
  const none = 'with_audio: does not go with this model: no request can ask it for sound.'
  t.same(messagesOf(t, modelOf(SOUND, 'dh-lipsync')), [`models[0].pricing.${none}`])
  t.same(messagesOf(t, modelOf('unit: task, per_unit: 1, with_audio: {}', 'song', 'music_generations')), [
    `models[0].pricing.${none}`,
  ])
  const planned = `unit: second, per_unit: 1, changes: [{ from: "2027-01-01T00:00:00Z", per_unit: 1, with_audio: { per_unit: abc } }]`
  t.match(messagesOf(t, modelOf(planned)), [
    /pricing\.changes\[0\]\.with_audio\.per_unit: A price must be a decimal number/,
  ])
  const tokens =
    'models: [{ id: a, pricing: { unit: 1M_tokens, input: 1, output: 1, with_audio: { per_unit: 2 } } }]'
  t.same(messagesOf(t, tokens), ['models[0].pricing.with_audio: does not go with unit 1M_tokens.'])
})

t.test('a model that makes sound by itself has a price for it', async (t) => {
  const loud = 'videos: { default_audio: true },'
  t.same(messagesOf(t, modelOf(SOUND, 'film', 'videos_generations', loud)), [])
  t.same(messagesOf(t, modelOf('unit: second, per_unit: 1', 'film', 'videos_generations', loud)), [])
  t.same(
    messagesOf(t, modelOf('unit: second, per_unit: 1, with_audio: {}', 'film', 'videos_generations', loud)),
    [
      'models[0].pricing.with_audio: needs a price: videos.default_audio gives sound to requests that do not say.',
    ],
  )
})

t.test('the default resolution is one that plain requests have a price for', async (t) => {
  const found = (default_audio: boolean) =>
    messagesOf(
      t,
      modelOf(
        'unit: second, variants: { 720p: 1, 4k: 2 }, with_audio: { variants: { 4k: 3 } }',
        ...(['film', 'videos_generations'] as const),
        `videos: { default_audio: ${default_audio}, default_resolution: 720p },`,
      ),
    )
  t.same(found(false), [])
  t.same(found(true), [
    'models[0].videos.default_resolution: must be one of the variants that have a price: 4k.',
  ])
})

t.test('gaps in the costs of sound are warnings', async (t) => {
  const warned = (price: string, cost: string) =>
    messagesOf(
      t,
      `${modelOf(price)}channels: [{ id: c, protocol: fal, base_url: "https://x.test", api_key: k, models: { film: up }, cost: { film: { ${cost} } } }]\n`,
    )
  t.same(warned(SOUND, SOUND), [])
  t.same(warned('unit: second, per_unit: 1', SOUND), [], 'one price for customers')
  t.same(warned(SOUND, 'unit: second, per_unit: 1'), [
    'channels[0].cost.film: has no with_audio: a video with sound costs what one without does.',
  ])
  const variants = 'unit: second, variants: { 720p: 1, 4k: 2 }, with_audio: { variants: { 720p: 3, 4k: 4 } }'
  t.same(
    warned(variants, 'unit: second, variants: { 720p: 1, 4k: 1 }, with_audio: { variants: { 720p: 1 } }'),
    ['channels[0].cost.film: has neither a price for 4k with sound nor per_unit.'],
  )
  t.same(warned(variants, 'unit: second, per_unit: 1, with_audio: { per_unit: 2 }'), [])
})
