/** "What the service does" and "Resources": families, the catalog, keys, the wallet, the trace of every answer. */
import t from 'tap'
import { CHAT_PROTOCOLS } from '../end-to-end/protocols/support.ts'
import { signIn } from '../support/manage.ts'
import { section, statement, statements } from './statement.ts'
import { Client, callOf, type World } from './world.ts'

interface Entry {
  readonly id: string
  readonly callable: boolean
  readonly endpoint_type: string | null
  readonly supported_protocols: readonly string[]
  readonly pricing: Readonly<Record<string, unknown>>
  readonly aliases: readonly string[]
}
const catalog = async ({ service }: World): Promise<Entry[]> =>
  ((await (await fetch(`${service.baseUrl}/api/v1/models/public`)).json()) as { models: Entry[] }).models

/** Requests of the media endpoints that end in each kind of status. */
const TRACED = [
  ['GET', '/v1/videos/generations', undefined, 200],
  ['GET', '/v1/videos/generations/vid_1', undefined, 404],
  ['POST', '/v1/images/generations', { model: 'demo-image', prompt: 'x' }, 200],
  ['POST', '/v1/images/generations', { model: 'demo-image' }, 400],
  ['POST', '/v1/images/generations', { model: 'demo-video', prompt: 'x' }, 503],
  ['POST', '/v1/images/edits', {}, 400],
  ['POST', '/v1/music/generations', {}, 400],
  ['POST', '/v1/audio/speech', {}, 400],
  ['GET', '/v1/audio/voices/voi_1', undefined, 404],
  ['POST', '/v1/transcripts/extract', {}, 400],
  ['GET', '/v1/videos/avatars/presets', undefined, 200],
  ['GET', '/v1/videos/clip-templates', undefined, 200],
  ['GET', '/v1/videos/clip-subtitles/asr_1', undefined, 404],
  ['PUT', '/v1/videos/generations', undefined, 405],
  ['POST', '/v1/videos/nowhere', {}, 404],
] as const

await section(t, 'What the service does, and its resources', [
  statements(
    [
      ['plain-chat-completions', null, '1M_tokens'],
      ['demo-image', 'images_generations', 'image'],
      ['demo-video', 'videos_generations', 'second'],
      ['demo-music', 'music_generations', 'generation'],
      ['voice-tts-pro', 'audio_speech', '1000_characters'],
      ['voice-clone-pro', 'audio_voices', 'call'],
      ['video-transcript', 'transcripts_extract', 'call'],
      ['dh-avatar-create', 'videos_avatars', 'call'],
      ['dh-avatar', 'videos_generations', 'second'],
      ['clip-subtitle', 'clip_subtitles', 'call'],
      ['clip-compose', 'clip_compose', 'task'],
    ] as const,
    ([id, type]) => `The catalog has ${id} with the endpoint_type ${type} and its unit of price`,
    async (t, world, [id, endpoint_type, unit]) => {
      const entry = (await catalog(world)).find((model) => model.id === id)
      t.match(entry, { callable: true, endpoint_type, pricing: { unit } })
    },
  ),
  statement('callable false marks a placeholder', async (t, world) => {
    const entry = (await catalog(world)).find(({ id }) => id === 'placeholder')
    t.equal(entry?.callable, false)
  }),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `supported_protocols names the native ones (${protocol})`,
    async (t, world, protocol) => {
      const entry = (await catalog(world)).find(({ id }) => id === `plain-${protocol}`)
      t.same(entry?.supported_protocols, [protocol])
    },
  ),
  statement(
    'Text models have an input, an output and perhaps a cached price per 1M tokens',
    async (t, world) => {
      const entry = (await catalog(world)).find(({ id }) => id === 'tier-200k')
      t.match(entry?.pricing, {
        unit: '1M_tokens',
        input: '1000000',
        output: '2000000',
        cached_input: '100000',
      })
    },
  ),
  statement('The catalog shows a promotion beside the price', async (t, world) => {
    const entry = (await catalog(world)).find(({ id }) => id === 'promoted')
    t.match(entry?.pricing, { discount: '0.8', discount_until: /^2999/ })
  }),
  statement('The catalog shows aliases of older ids', async (t, world) => {
    const entry = (await catalog(world)).find(({ id }) => id === 'plain-messages')
    t.same(entry?.aliases, ['old-messages'])
  }),
  statement('Embedding models are withdrawn: the catalog has none', async (t, world) => {
    t.notOk((await catalog(world)).some(({ endpoint_type }) => /embed/.test(endpoint_type ?? '')))
  }),
  statement('GET /v1/models lists what the key may call', async (t, world) => {
    const client = await world.client()
    const { status, body } = await client.get('/v1/models')
    t.equal(status, 200)
    const ids = body.data.map(({ id }: { id: string }) => id)
    t.ok(ids.includes('plain-messages') && ids.includes('demo-image'))
    t.notOk(ids.includes('placeholder'))
    const limited = await world.another(client, { allowedModels: ['demo-image'] })
    t.match((await limited.get('/v1/models')).body.data, [{ id: 'demo-image', object: 'model' }])
    t.equal((await limited.get('/v1/models')).body.data.length, 1)
  }),
  statement('A key without an allowlist may call every model', async (t, world) => {
    for (const allowedModels of [null, undefined]) {
      const client = await world.client('1000000', allowedModels === undefined ? {} : { allowedModels })
      for (const protocol of CHAT_PROTOCOLS)
        t.equal((await client.call(protocol, `plain-${protocol}`)).status, 200)
    }
  }),
  statement('A key with an empty allowlist may call none', async (t, world) => {
    const client = await world.client('1000000', { allowedModels: [] })
    for (const protocol of CHAT_PROTOCOLS)
      t.equal((await client.call(protocol, `plain-${protocol}`)).status, 400)
    const image = { model: 'demo-image', prompt: 'x' }
    t.match(await client.post('/v1/images/generations', image), {
      status: 403,
      body: { error: { code: 'model_not_allowed' } },
    })
  }),
  statement('A key has no budget of its own in what it shows', async (t, world) => {
    const client = await world.client('100')
    const { body } = await client.get('/v1/key/balance')
    t.match(body, { remaining: '100', used: '0', total: '100' })
    t.equal(body.spend_cap ?? null, null)
  }),
  statement('A key needs a name, and is shown again in the console', async (t, world) => {
    const session = await signIn(world.service)
    const account_id = session.user.accountId
    t.equal((await session.send('POST', '/keys', { account_id })).status, 400)
    const made = await session.send('POST', '/keys', { account_id, name: 'mine' })
    t.equal(made.status, 201)
    t.match(made.body, { name: 'mine', allowed_models: null, expires_at: null, enabled: true })
    const shown = await session.send('POST', `/keys/${made.body.id}/reveal`, {})
    t.same([shown.status, shown.body.key], [200, made.body.key])
  }),
  statement('A new account has a trial credit of 121.32', async (t, world) => {
    const operator = await signIn(world.service, { role: 'operator' })
    const { status, body } = await operator.send('POST', '/accounts', { name: 'Newcomer' })
    t.equal(status, 201)
    const { raw } = await world.service.database.keys.create({ name: 'first', accountId: body.id })
    const newcomer = new Client(world.service, { accountId: body.id, keyId: '', key: raw })
    t.match(await newcomer.balance(), { remaining: '121.32', total: '121.32' })
  }),
  statement('A top-up is at least 404.4', async (t, world) => {
    const session = await signIn(world.service)
    const account_id = session.user.accountId
    t.equal((await session.send('GET', `/payments/offer?account_id=${account_id}`)).body.minimum, '404.4')
    const short = await session.send('POST', '/payments', { account_id, credits: '404.39' })
    t.match(short, { status: 400, body: { error: { message: '404.4' } } })
  }),
  statements(
    TRACED,
    ([method, path, , status]) => `${method} ${path} with ${status} carries x-gateway-trace`,
    async (t, world, [method, path, body, status]) => {
      const answer = await (await world.client()).send(method, path, body)
      t.equal(answer.status, status)
      t.match(answer.trace, /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
    },
  ),
  statements(
    CHAT_PROTOCOLS.flatMap((protocol) => [false, true].map((stream) => ({ protocol, stream }))),
    ({ protocol, stream }) =>
      `The trace of a call is the request_id of its row (${protocol}, ${stream ? 'streamed' : 'whole'})`,
    async (t, world, { protocol, stream }) => {
      const client = await world.client()
      const answer = await client.call(protocol, `plain-${protocol}`, { stream })
      t.equal((await client.row(answer)).request_id, answer.trace)
    },
  ),
  statement('A model that exists and has no channel on the protocol is 503', async (t, world) => {
    const client = await world.client()
    for (const protocol of CHAT_PROTOCOLS) t.equal((await client.call(protocol, 'unserved')).status, 503)
  }),
  statement('The path of generate-content names the model, also by an alias', async (t, world) => {
    const client = await world.client()
    const { path, body } = callOf('generate-content', 'old-generate-content', {})
    t.equal((await client.post(path, body)).status, 200)
  }),
])
