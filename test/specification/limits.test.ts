/** "Limits" and "Versioning": rates, timeouts, every bound of "Sizes and bounds" that no other section has, prefixes. */
import t from 'tap'
import { CHAT_PROTOCOLS, ERRORS } from '../end-to-end/protocols/support.ts'
import { section, statement, statements } from './statement.ts'
import { callOf, simulate } from './world.ts'

const invalid = { status: 400, body: { error: { code: 'invalid_request' } } }
const DEFAULT_LIMIT = 30

/** Lists of tasks; the most that each returns is 100. */
const LISTS = [
  '/v1/images/generations',
  '/v1/videos/generations',
  '/v1/music/generations',
  '/v1/audio/speech',
]

await section(t, 'Limits and versioning', [
  statements(
    LISTS,
    (path) => `${path} takes a limit of 1 to 100`,
    async (t, world, path) => {
      const client = await world.client()
      for (const limit of [1, 100])
        t.equal((await client.get(`${path}?limit=${limit}`)).status, 200, `${limit}`)
      for (const limit of [0, 101, 'x'])
        t.match(await client.get(`${path}?limit=${limit}`), invalid, `${limit}`)
    },
  ),
  statement(`A list of tasks has ${DEFAULT_LIMIT} by default`, async (t, world) => {
    const client = await world.client()
    const body = { model: 'demo-image', prompt: simulate('delay=0'), async: true }
    const path = '/v1/images/generations'
    const made = await Promise.all(Array.from({ length: DEFAULT_LIMIT + 1 }, () => client.post(path, body)))
    const short = (await client.get(path)).body
    t.same([short.data.length, short.has_more], [DEFAULT_LIMIT, true])
    const whole = (await client.get(`${path}?limit=100`)).body
    t.same([whole.data.length, whole.has_more], [DEFAULT_LIMIT + 1, false])
    for (const { body } of made) await client.ended(`${path}/${body.id}`)
  }),
  statement('Without a limit no response carries x-ratelimit headers', async (t, world) => {
    const client = await world.client()
    const answer = await client.call('chat-completions', 'plain-chat-completions')
    t.same(
      [...answer.headers.keys()].filter((name) => name.startsWith('x-ratelimit')),
      [],
    )
  }),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `With limits every successful response carries x-ratelimit headers (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const limits = { requestsPerMinute: 20, concurrency: 5 }
      await world.service.database.accounts.setLimits(client.accountId, limits)
      const { headers, status } = await client.call(protocol, `plain-${protocol}`)
      t.equal(status, 200)
      const said = (name: string) => headers.get(`x-ratelimit-${name}`)
      t.same([said('limit'), said('remaining')], ['20', '19'])
      t.match(said('reset'), /^[1-9]\d*$/)
      t.same([said('limit-concurrency'), said('remaining-concurrency')], ['5', '4'])
    },
  ),
  statements(
    CHAT_PROTOCOLS.flatMap((protocol) => [false, true].map((stream) => ({ protocol, stream }))),
    ({ protocol, stream }) =>
      `The time of a call ends it with 504, streaming included (${protocol}, ${stream ? 'streamed' : 'whole'})`,
    async (t, world, { protocol, stream }) => {
      const client = await world.client()
      t.equal((await client.call(protocol, `silent-${protocol}`, { stream })).status, ERRORS.timeout.status)
    },
  ),
  statements(
    ['/v1/videos/generations', '/v1/music/generations', '/v1/audio/speech', '/v1/images/generations'],
    (path) => `${path} lists all statuses by default`,
    async (t, world, path) => {
      const client = await world.client()
      const [plain, all] = [await client.get(path), await client.get(`${path}?status=all`)]
      t.same([plain.status, plain.body], [all.status, all.body])
    },
  ),
  statements(
    [
      ['/models', 404],
      ['/v2/models', 404],
      ['/v1beta/logs', 404],
      ['/api/v1/logs', 404],
      ['/v1/ext/wiki/kbs', 404],
      ['/v1/models', 200],
      ['/api/v1/usage', 200],
      ['/api/v1/ext/wiki/kbs', 200],
      ['/api/v1/models/public', 200],
    ] as const,
    ([path, status]) => `Paths have the prefix of their family: ${path} is ${status}`,
    async (t, world, [path, status]) => {
      t.equal((await (await world.client()).get(path)).status, status)
    },
  ),
  statement('Templates and recognitions have an api_version', async (t, world) => {
    const client = await world.client()
    t.equal((await client.get('/v1/videos/clip-templates')).body.api_version, 'old')
    const video_url = 'https://example.com/a.mp4?simulate=delay%3D100'
    t.equal((await client.post('/v1/videos/clip-subtitles', { video_url })).body.api_version, 'old')
  }),
  statement('The messages protocol is served by its version 2023-06-01', async (t, world) => {
    const client = await world.client()
    const { path, body } = callOf('messages', 'plain-messages', {})
    t.equal((await client.post(path, body, { 'vendor-version': '2023-06-01' })).status, 200)
  }),
])
