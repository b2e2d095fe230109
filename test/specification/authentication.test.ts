/** "Authentication": where a key is read from, what is refused, and where no key is needed. */
import t from 'tap'
import { CHAT_PROTOCOLS } from '../end-to-end/protocols/support.ts'
import { section, statement, statements } from './statement.ts'
import { type Answer, type Client, callOf, type World } from './world.ts'

const UNKNOWN = `sk-tollgate-${'0'.repeat(64)}`
const LONGER_MS = 3_600_000

interface Place {
  readonly name: string
  readonly headers: (key: string) => Record<string, string>
  readonly query: (key: string) => string
}
const header = (name: string, scheme = ''): Place => ({
  name,
  headers: (key) => ({ [name]: scheme + key }),
  query: () => '',
})
/** In the order in which they are read. */
const PLACES: readonly Place[] = [
  header('x-api-key'),
  header('x-partner-api-key'),
  { name: 'the query parameter key', headers: () => ({}), query: (key) => `?key=${key}` },
  header('authorization', 'Bearer '),
]

/** One request of each family, which a key with credit may send. */
const FAMILIES: readonly (readonly [method: string, path: string, body?: object])[] = [
  ...CHAT_PROTOCOLS.flatMap((protocol) => {
    const call = (stream: boolean) => callOf(protocol, `plain-${protocol}`, { stream })
    return [call(false), call(true)].map(({ path, body }) => ['POST', path, body] as const)
  }),
  ['GET', '/v1/models'],
  ['GET', '/v1/key/balance'],
  ['GET', '/v1/dashboard/billing/subscription'],
  ['GET', '/v1/dashboard/billing/usage'],
  ['GET', '/v1/dashboard/billing/credit_grants'],
  ['POST', '/v1/images/generations', { model: 'demo-image', prompt: 'a kite' }],
  ['GET', '/v1/images/generations'],
  ['POST', '/v1/videos/generations', { model: 'demo-video', prompt: 'a kite', duration: 1 }],
  ['GET', '/v1/videos/generations'],
  ['POST', '/v1/music/generations', { model: 'demo-music', prompt: 'a waltz' }],
  ['GET', '/v1/music/generations'],
  ['POST', '/v1/audio/speech', { model: 'voice-tts-pro', input: 'Good day' }],
  ['GET', '/v1/audio/speech'],
  ['GET', '/v1/audio/voices'],
  ['GET', '/v1/videos/avatars'],
  ['GET', '/v1/videos/avatars/presets'],
  ['GET', '/v1/videos/clip-templates'],
  ['GET', '/v1/videos/clip-templates/categories'],
  ['GET', '/v1/logs'],
  ['GET', '/v1/logs/summary'],
  ['GET', '/api/v1/usage'],
  ['GET', '/api/v1/ext/wiki/search?q=tea'],
  ['GET', '/api/v1/ext/wiki/kbs'],
  ['GET', '/api/v1/ext/wiki/tags'],
]
/** Those, and some that would be refused for another reason. */
const CLOSED: readonly (readonly [method: string, path: string, body?: object])[] = [
  ...FAMILIES,
  ['POST', '/v1/embeddings', { model: 'x', input: 'y' }],
  ['POST', '/v1/images/edits', { model: 'x' }],
  ['POST', '/v1/audio/voices', { name: 'Ada' }],
  ['GET', '/v1/audio/voices/voi_1'],
  ['DELETE', '/v1/audio/voices/voi_1'],
  ['POST', '/v1/transcripts/extract', { url: 'x' }],
  ['POST', '/v1/videos/avatars', { name: 'Ada' }],
  ['GET', '/v1/videos/avatars/ava_1'],
  ['DELETE', '/v1/videos/avatars/ava_1'],
  ['POST', '/v1/videos/clip-subtitles', { video_url: 'x' }],
  ['GET', '/v1/videos/clip-subtitles/asr_1'],
  ['GET', '/v1/videos/generations/vid_1'],
  ['GET', '/v1/music/generations/mus_1'],
  ['GET', '/v1/audio/speech/spc_1'],
  ['GET', '/v1/logs/1'],
  ['GET', '/api/v1/ext/wiki/tags/tea'],
  ['GET', '/api/v1/ext/wiki/pages?ids=page_1'],
  ['GET', '/api/v1/ext/wiki/pages/page_1'],
  ['GET', '/api/v1/ext/wiki/pages/page_1/backlinks'],
  ['GET', '/api/v1/ext/wiki/pages/page_1/source'],
  ['POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
]

/** A chat call with these credentials alone. */
async function chat(
  client: Client,
  credentials: readonly (readonly [place: Place, key: string])[],
): Promise<Answer> {
  const { path, body } = callOf('chat-completions', 'plain-chat-completions', {})
  const query = credentials.map(([place, key]) => place.query(key)).join('')
  const headers = Object.assign({}, ...credentials.map(([place, key]) => place.headers(key)))
  return bare(client, 'POST', path + query, body, headers)
}

/** A request without the client's own key. */
async function bare(
  { service }: Pick<Client, 'service'>,
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(service.baseUrl + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const trace = response.headers.get('x-gateway-trace') ?? ''
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: text.startsWith('{') ? JSON.parse(text) : null,
    trace,
  }
}

const REFUSED = { error: { type: 'authentication_error', code: 'invalid_api_key' } }

/** A key that nobody may use, and why. */
const USELESS: readonly (readonly [
  what: string,
  message: string,
  make: (world: World) => Promise<string>,
])[] = [
  ['malformed', 'API key is missing or malformed.', async () => 'sk-somebody'],
  ['shorter than 76 characters', 'API key is missing or malformed.', async () => UNKNOWN.slice(0, -1)],
  ['longer than 76 characters', 'API key is missing or malformed.', async () => `${UNKNOWN}0`],
  ['unknown', 'API key is invalid.', async () => UNKNOWN],
  [
    'revoked',
    'API key has been revoked.',
    async (world) => {
      const { key, keyId } = await world.client()
      await world.service.database.keys.revoke(keyId)
      return key
    },
  ],
  [
    'disabled',
    'API key has been revoked.',
    async (world) => {
      const { key, keyId } = await world.client()
      await world.service.database.keys.update(keyId, { enabled: false })
      return key
    },
  ],
  [
    'expired',
    'API key has expired.',
    async (world) => (await world.client('1', { expiresAt: new Date(Date.now() - 1) })).key,
  ],
  [
    'of an inactive account',
    'Account is not active.',
    async (world) => {
      const { key, accountId } = await world.client()
      await world.service.database.accounts.setEnabled(accountId, false)
      return key
    },
  ],
]

await section(t, 'Authentication', [
  statements(
    PLACES,
    ({ name }) => `A key is accepted in ${name}`,
    async (t, world, place) => {
      const client = await world.client()
      t.equal((await chat(client, [[place, client.key]])).status, 200)
      t.match(await chat(client, [[place, UNKNOWN]]), { status: 401, body: REFUSED })
    },
  ),
  statement(
    'The header of the generative-content SDK is accepted under its real name too',
    async (t, world) => {
      const client = await world.client()
      t.equal((await chat(client, [[header('x-goog-api-key'), client.key]])).status, 200)
    },
  ),
  statements(
    PLACES.flatMap((first, index) => PLACES.slice(index + 1).map((second) => [first, second] as const)),
    ([first, second]) => `Of ${first.name} and ${second.name} the former is read`,
    async (t, world, [first, second]) => {
      const client = await world.client()
      const good = await chat(client, [
        [first, client.key],
        [second, UNKNOWN],
      ])
      t.equal(good.status, 200)
      const bad = await chat(client, [
        [first, UNKNOWN],
        [second, client.key],
      ])
      t.match(bad, { status: 401, body: REFUSED })
    },
  ),
  statement(
    'GET /v1/models reads Authorization, x-api-key and x-goog-api-key, and no other place',
    async (t, world) => {
      const client = await world.client()
      const [own, partner, query, bearer] = PLACES
      const list = (place: Place) =>
        bare(client, 'GET', `/v1/models${place.query(client.key)}`, undefined, place.headers(client.key))
      for (const place of [own!, bearer!, header('x-goog-api-key')])
        t.equal((await list(place)).status, 200, place.name)
      for (const place of [partner!, query!])
        t.match(await list(place), { status: 401, body: REFUSED }, place.name)
    },
  ),
  statements(
    FAMILIES,
    ([method, path, body]) =>
      `One key works by Authorization Bearer on ${method} ${path}${body && 'stream' in body ? `, stream ${body.stream}` : ''}`,
    async (t, world, [method, path, body]) => {
      const client = await world.client()
      const answer = await client.send(method, path, body)
      t.equal(answer.status, 200, answer.text.slice(0, 200))
      t.match(answer.trace, /^req_/)
    },
  ),
  statements(
    CLOSED,
    ([method, path, body]) =>
      `Without a key ${method} ${path}${body && 'stream' in body ? `, stream ${body.stream}` : ''} is 401`,
    async (t, world, [method, path, body]) => {
      const answer = await bare(world, method, path, body)
      t.equal(answer.status, 401)
      t.match(answer.trace, /^req_/)
      t.match(answer.text, /API key is missing or malformed\./)
    },
  ),
  statement('The public catalog needs no key', async (t, world) => {
    t.equal((await bare(world, 'GET', '/api/v1/models/public')).status, 200)
  }),
  statements(
    USELESS,
    ([what]) => `A key that is ${what} is 401 invalid_api_key, with its own message`,
    async (t, world, [, message, make]) => {
      const key = await make(world)
      for (const [method, path, body] of FAMILIES) {
        if (path.includes('/v1beta/') || path === '/v1/messages') continue
        const answer = await bare(world, method, path, body, { authorization: `Bearer ${key}` })
        t.same([answer.status, answer.body?.error], [401, { ...REFUSED.error, message }], `${method} ${path}`)
      }
    },
  ),
  statement(
    'A key is usable until its expiry has passed, and one without expiry stays so',
    async (t, world) => {
      const client = await world.client('1', { expiresAt: new Date(Date.now() + LONGER_MS) })
      t.equal((await client.get('/v1/models')).status, 200)
      t.equal((await (await world.client()).get('/v1/models')).status, 200)
    },
  ),
  statement('No endpoint of the gateway checks an Origin or a CSRF token', async (t, world) => {
    const client = await world.client()
    const foreign = { origin: 'https://evil.example', referer: 'https://evil.example/page', cookie: 'a=b' }
    const { path, body } = callOf('chat-completions', 'plain-chat-completions', {})
    t.equal((await client.post(path, body, foreign)).status, 200)
    for (const each of ['/v1/models', '/v1/logs', '/v1/key/balance', '/api/v1/ext/wiki/kbs'])
      t.equal((await client.get(each, foreign)).status, 200, each)
  }),
  statement('The console does not take a key: it signs in by cookie', async (t, world) => {
    const client = await world.client()
    t.equal((await client.get('/api/manage/v1/keys')).status, 401)
  }),
  statement(
    'Scope account of the log needs the toggle of the key, else 403 permission_denied',
    async (t, world) => {
      const client = await world.client()
      const toggled = await world.another(client, { accountLogs: true })
      for (const path of ['/v1/logs?scope=account', '/v1/logs/summary?scope=account']) {
        t.match(await client.get(path), { status: 403, body: { error: { code: 'permission_denied' } } }, path)
        t.equal((await toggled.get(path)).status, 200, path)
      }
    },
  ),
  statement('A key has 12 characters of prefix and 64 of hexadecimal digits, 76 in all', async (t, world) => {
    const { key } = await world.client()
    t.match(key, /^sk-tollgate-[0-9a-f]{64}$/)
    t.equal(key.length, 76)
    t.equal('sk-tollgate-'.length, 12)
  }),
])
