import t from 'tap'
import { configFile } from '../../../schemas/config/file.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { jsonOf } from '../../support/reply-to.ts'
import { contentModel, contentModels, model, models, publicModels } from './support.ts'

const UNTIL = '2026-12-31T00:00:00.000Z'

const catalog = createCatalog(
  configFile.parse({
    models: [
      {
        id: 'sonata-large',
        family: 'sonata',
        display_name: 'Sonata Large',
        aliases: ['sonata-large-2025'],
        context_window: 400_000,
        max_output_tokens: 32_768,
        default_max_tokens: 8192,
        capabilities: { vision: true },
        pricing: {
          unit: '1M_tokens',
          input: '12.50',
          output: 100,
          tiers: [{ from_prompt_tokens: 272_000, input: '25', output: '150' }],
          server_tool_call: '2.022',
          discount: '0.8',
          discount_until: UNTIL,
        },
      },
      { id: 'upcoming', callable: false },
      {
        id: 'voice-tts-pro',
        endpoint_type: 'audio_speech',
        owned_by: 'studio',
        pricing: { unit: '1000_characters', per_unit: '125.36', variants: { hd: '250' } },
      },
    ],
    channels: [
      {
        id: 'a',
        protocol: 'chat-completions',
        base_url: 'http://127.0.0.1/v1',
        api_key: 'k',
        models: { 'sonata-large': 'x' },
      },
      {
        id: 'off',
        protocol: 'messages',
        base_url: 'http://127.0.0.1',
        api_key: '',
        models: { 'sonata-large': 'x' },
      },
    ],
  }),
)

const INSTALLED_AT = new Date(1_772_000_000_789)

const keyFor = (allowedModels: readonly string[] | null, ofAccount: readonly string[] | null = null) => ({
  key: { allowedModels },
  account: { allowedModels: ofAccount },
})
const listFor = (allowedModels: readonly string[] | null, ofAccount: readonly string[] | null = null) =>
  jsonOf(models({ catalog: () => catalog, installedAt: INSTALLED_AT })(keyFor(allowedModels, ofAccount)))

t.test('GET /v1/models answers one body that both SDKs read', async (t) => {
  const body = await listFor(null)
  t.strictSame(body, {
    object: 'list',
    data: [
      {
        id: 'sonata-large',
        object: 'model',
        created: 1_772_000_000,
        owned_by: 'tollgate',
        type: 'model',
        display_name: 'Sonata Large',
        created_at: INSTALLED_AT.toISOString(),
      },
      {
        id: 'voice-tts-pro',
        object: 'model',
        created: 1_772_000_000,
        owned_by: 'studio',
        type: 'model',
        display_name: 'voice-tts-pro',
        created_at: INSTALLED_AT.toISOString(),
      },
    ],
    has_more: false,
    first_id: 'sonata-large',
    last_id: 'voice-tts-pro',
  })
})

t.test('GET /v1/models lists what the key may call, aliases understood', async (t) => {
  const ids = async (allowed: readonly string[], ofAccount: readonly string[] | null = null) =>
    (await listFor(allowed, ofAccount)).data.map((model: { id: string }) => model.id)
  t.strictSame(await ids(['sonata-large-2025', 'upcoming', 'unknown']), ['sonata-large'])
  t.strictSame(
    await ids(['sonata-large', 'voice-tts-pro'], ['voice-tts-pro']),
    ['voice-tts-pro'],
    'of both lists',
  )
  t.strictSame(await ids(['sonata-large'], []), [], 'the account may call none')
  t.strictSame(await listFor([]), {
    object: 'list',
    data: [],
    has_more: false,
    first_id: null,
    last_id: null,
  })
})

t.test('GET /api/v1/models/public answers the whole catalog', async (t) => {
  const at = (now: string) => jsonOf(publicModels({ catalog: () => catalog, now: () => Date.parse(now) })())
  const body = await at('2026-12-30T23:59:59.999Z')
  const off = {
    vision: false,
    function_tools: false,
    web_search: false,
    image_generation: false,
    reasoning: false,
  }
  const [sonata, upcoming, voice] = body.models
  t.strictSame(sonata, {
    id: 'sonata-large',
    display_name: 'Sonata Large',
    family: 'sonata',
    owned_by: 'tollgate',
    callable: true,
    endpoint_type: null,
    supported_protocols: ['chat-completions'],
    aliases: ['sonata-large-2025'],
    context_window: 400_000,
    max_output_tokens: 32_768,
    default_max_tokens: 8192,
    capabilities: { ...off, vision: true },
    images: null,
    pricing: {
      unit: '1M_tokens',
      input: '12.5',
      output: '100',
      cached_input: '1.25',
      cache_write: '15.625',
      cache_write_1h: '25',
      reasoning: '100',
      input_audio: '12.5',
      output_audio: '100',
      input_image: '12.5',
      output_image: '100',
      per_unit: null,
      variants: null,
      pixel_tiers: [],
      tiers: [
        {
          ...{ from_prompt_tokens: 272_000, input: '25', output: '150' },
          ...{ cached_input: '2.5', cache_write: '31.25', cache_write_1h: '50' },
          ...{ reasoning: '150', input_audio: '25', output_audio: '150' },
          ...{ input_image: '25', output_image: '150' },
        },
      ],
      server_tool_call: '2.022',
      server_tools: null,
      service_tiers: null,
      minimum: null,
      discount: '0.8',
      discount_until: UNTIL,
      changes: [],
    },
  })
  t.match(upcoming, {
    id: 'upcoming',
    callable: false,
    pricing: null,
    supported_protocols: { length: 0 },
    family: null,
  })
  t.match(voice, {
    endpoint_type: 'audio_speech',
    supported_protocols: { length: 0 },
    pricing: {
      unit: '1000_characters',
      per_unit: '125.36',
      variants: { hd: '250' },
      input: null,
      cache_write: null,
    },
  })
  const after = (await at(UNTIL)).models[0].pricing
  t.match(
    after,
    { discount: null, discount_until: null, input: '12.5' },
    'a discount that has ended is not shown',
  )
})

t.test('videos with sound are shown with their prices, and whether they are made unasked', async (t) => {
  const pricing = { unit: 'second', per_unit: '0.20' }
  const with_audio = { variants: { '720p': '0.40', '4k': '0.6' } }
  const changes = [{ from: UNTIL, per_unit: '0.1', with_audio: { per_unit: '0.3' } }]
  const film = (id: string, more: object, videos?: object) => ({
    ...{ id, endpoint_type: 'videos_generations', pricing: { ...pricing, ...more } },
    ...(videos !== undefined && { videos }),
  })
  const films = createCatalog(
    configFile.parse({
      models: [
        film('loud', { with_audio, changes }, { default_audio: true }),
        film('silent', { with_audio: {} }, { default_duration: 5 }),
        film('one-price', {}),
      ],
    }),
  )
  const body = await jsonOf(publicModels({ catalog: () => films, now: () => 0 })())
  const [loud, silent, onePrice] = body.models
  t.match(loud, { videos: { default_audio: true }, pricing: { per_unit: '0.2', variants: null } })
  t.strictSame(loud.pricing.with_audio, { per_unit: null, variants: { '720p': '0.4', '4k': '0.6' } })
  t.strictSame(loud.pricing.changes[0].with_audio, { per_unit: '0.3', variants: null })
  t.strictSame(silent.pricing.with_audio, { per_unit: null, variants: null })
  t.notOk('videos' in silent || 'videos' in onePrice || 'with_audio' in onePrice.pricing)
})

const deps = { catalog: () => catalog, installedAt: INSTALLED_AT }

t.test('GET /v1/models/{model} answers what the list has of it', async (t) => {
  const list = await listFor(null)
  const show = (name: string, allowed: readonly string[] | null = null) =>
    jsonOf(model(deps)(keyFor(allowed), name))
  for (const listed of list.data) t.strictSame(await show(listed.id), listed)
  t.equal((await show('sonata-large-2025')).id, 'sonata-large', 'by an alias')
  for (const [name, allowed] of [
    ['unheard-of', null],
    ['upcoming', null],
    ['%ff', null],
    ['sonata-large', ['voice-tts-pro']],
    ['sonata-large', []],
  ] as const)
    await t.rejects(show(name, allowed), { code: 'model_not_found', status: 404 }, name)
})

t.test('GET /v1beta/models answers in the shape of its protocol, page by page', async (t) => {
  const list = (query: string, allowed: readonly string[] | null = null) =>
    jsonOf(contentModels(deps)(keyFor(allowed), query))
  const sonata = {
    name: 'models/sonata-large',
    displayName: 'Sonata Large',
    inputTokenLimit: 400_000,
    outputTokenLimit: 32_768,
    supportedGenerationMethods: [],
  }
  const voice = { name: 'models/voice-tts-pro', displayName: 'voice-tts-pro', supportedGenerationMethods: [] }
  t.strictSame(await list(''), { models: [sonata, voice] })
  t.strictSame(await list('pageSize=1'), { models: [sonata], nextPageToken: 'sonata-large' })
  t.strictSame(await list('pageSize=1&pageToken=sonata-large'), { models: [voice] })
  t.strictSame(await list('pageSize=100000'), { models: [sonata, voice] })
  t.strictSame(await list('', []), { models: [] })
  for (const query of ['pageSize=-1', 'pageSize=x', 'pageToken=nowhere'])
    await t.rejects(list(query), { code: 'invalid_request' }, query)
  const show = (name: string) => jsonOf(contentModel(deps)(keyFor(null), name))
  for (const name of ['sonata-large', 'models/sonata-large', 'sonata-large-2025'])
    t.strictSame(await show(name), sonata)
  await t.rejects(show('upcoming'), { code: 'model_not_found', status: 404 })
})
