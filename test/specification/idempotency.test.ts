/** "Idempotency": the header Idempotency-Key on every billed POST. */
import t, { type Test } from 'tap'
import { WORDS } from '../end-to-end/money/upstream-answers.ts'
import { CHAT_PROTOCOLS, WAYS } from '../end-to-end/protocols/support.ts'
import { PNG_URI } from '../end-to-end/sdk/support.ts'
import { until } from '../support/eventually.ts'
import { sendRaw } from './raw-request.ts'
import { json } from './scripted-upstream.ts'
import { section, statement, statements } from './statement.ts'
import { type Answer, type Client, callOf, simulate, type World } from './world.ts'

const MIB = 1024 * 1024
const KEY = { 'idempotency-key': 'intent' }

/** Every billed POST, with a request that goes through. */
const BILLED: readonly (readonly [path: string, body: object])[] = [
  ...CHAT_PROTOCOLS.flatMap((protocol) =>
    [false, true].map((stream) => {
      const { path, body } = callOf(protocol, `plain-${protocol}`, { stream })
      return [path, body] as const
    }),
  ),
  ['/v1/images/generations', { model: 'demo-image', prompt: 'a kite' }],
  ['/v1/images/generations', { model: 'demo-image', prompt: 'a kite', async: true }],
  ['/v1/images/edits', { model: 'demo-image', prompt: 'a kite', image: PNG_URI }],
  ['/v1/videos/generations', { model: 'demo-video', prompt: 'a kite', duration: 1 }],
  ['/v1/music/generations', { model: 'demo-music', prompt: 'a waltz' }],
  ['/v1/audio/speech', { model: 'voice-tts-pro', input: 'Good day' }],
  ['/v1/audio/speech', { model: 'voice-tts-pro', input: 'Good day', async: true }],
  ['/v1/audio/voices', { name: 'Ada', audio_url: 'https://example.com/a.mp3' }],
  ['/v1/audio/voices', { name: 'Ada', audio_url: 'https://example.com/a.mp3', async: true }],
  ['/v1/transcripts/extract', { url: 'https://example.com/v/1' }],
  ['/v1/videos/avatars', { name: 'Ada', source_url: 'https://example.com/a.png' }],
  ['/v1/videos/clip-subtitles', { video_url: 'https://example.com/a.mp4' }],
  ['/v1/videos/clip-subtitles', { video_url: 'https://example.com/a.mp4', async: true }],
]
const nameOf = ([path, body]: (typeof BILLED)[number]) =>
  path +
  (('stream' in body && body.stream) || 'async' in body ? ('async' in body ? ', async' : ', streamed') : '')

const codeOf = ({ body }: Answer) => body?.error?.code

/** A request whose Idempotency-Key is these bytes. */
function withKeyBytes(
  client: Client,
  path: string,
  body: object,
  ...keys: readonly Buffer[]
): Promise<Answer | null> {
  const text = JSON.stringify(body)
  return sendRaw(
    client.service,
    [
      `POST ${path} HTTP/1.1`,
      'Host: gateway',
      `Authorization: Bearer ${client.key}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(text)}`,
      ...keys.map((key) => Buffer.concat([Buffer.from('Idempotency-Key: '), key])),
    ],
    text,
  )
}

/**
 * The byte at the start, in the middle and at the end of a key. One from 0x80 stands in the middle only: the HTTP server
 * removes those at both ends of a value before anything sees them; see docs/operating.md, "In front and behind".
 */
const keysWith = (byte: number): Buffer[] =>
  [
    [0x6f, byte, 0x72, 0x64],
    ...(byte < 0x80
      ? [
          [byte, 0x6f, 0x72, 0x64],
          [0x6f, 0x72, 0x64, byte],
        ]
      : []),
  ].map((bytes) => Buffer.from(bytes))

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)
const [NUL, TAB, LF, CR, DEL] = [0x00, 0x09, 0x0a, 0x0d, 0x7f]
/** Those between lines, and NUL, end the request for HTTP itself; blanks around a value are none of it. */
const FRAMING: readonly number[] = [NUL, TAB, LF, CR]
const CONTROLS = range(0x01, 0x1f).filter((byte) => !FRAMING.includes(byte))
const REFUSED_BYTES = [DEL, ...range(0x80, 0xff)]
const SOME_BYTES = [DEL, 0x80, 0xa0, 0xe9, 0xff]

/** Whether it is `invalid_idempotency_key`, as the protocol of the path names it. */
function isMalformed(path: string, answer: Answer | null): boolean {
  if (answer === null || answer.status !== 400) return false
  const { code, type, status, message } = answer.body?.error ?? {}
  if (path === '/v1/messages') return type === 'invalid_request_error' && /idempotency/i.test(message)
  if (path.startsWith('/v1beta/')) return status === 'INVALID_ARGUMENT' && /idempotency/i.test(message)
  return code === 'invalid_idempotency_key'
}

/** Those of the keys that are not refused. */
async function takenOf(
  client: Client,
  path: string,
  body: object,
  keys: readonly Buffer[],
): Promise<string[]> {
  const answers = await Promise.all(keys.map((key) => withKeyBytes(client, path, body, key)))
  return keys.filter((_, index) => !isMalformed(path, answers[index]!)).map((key) => key.toString('hex'))
}

/** The same request twice under one key: the second is the first one's answer. */
async function checkReplay(
  t: Test,
  client: Client,
  path: string,
  body: unknown,
  again: unknown = body,
): Promise<void> {
  const first = await client.post(path, body, KEY)
  t.ok([200, 202].includes(first.status), `${first.status} ${first.text.slice(0, 200)}`)
  t.equal(first.headers.get('idempotency-replayed'), null)
  const second = await client.post(path, again, KEY)
  t.same([second.status, second.text], [first.status, first.text])
  t.equal(second.headers.get('idempotency-replayed'), 'true')
}

/** A whole answer of the upstream, with so many bytes in it. */
const answerOfBytes = (world: World, bytes: number) =>
  world.upstream.script(
    json(
      200,
      WORDS['chat-completions'].whole(
        { prompt_tokens: 1, completion_tokens: 1 },
        { padding: 'x'.repeat(bytes) },
      ),
    ),
  )

await section(t, 'Idempotency', [
  statement('Without the header nothing is deduplicated', async (t, world) => {
    const client = await world.client('1000')
    for (const _ of [1, 2]) await client.call('chat-completions', 'plain-chat-completions')
    t.equal((await client.rows(2)).length, 2)
    t.equal(await client.remaining('964'), '964')
  }),
  statements(
    BILLED,
    (each) => `The same key and body get the original answer, marked as replayed (${nameOf(each)})`,
    async (t, world, [path, body]) => checkReplay(t, await world.client(), path, body),
  ),
  statements(
    WAYS.flatMap((way) => [false, true].map((stream) => ({ way, stream }))),
    ({ way: [client, upstream], stream }) =>
      `A replay runs and charges nothing (${client} to ${upstream}, ${stream ? 'streamed' : 'whole'})`,
    async (t, world, { way: [protocol, upstream], stream }) => {
      const client = await world.client('10000')
      const options = { stream, headers: KEY }
      const first = await client.call(protocol, `plain-${upstream}`, options)
      const second = await client.call(protocol, `plain-${upstream}`, options)
      t.same(
        [second.text, second.headers.get('content-type')],
        [first.text, first.headers.get('content-type')],
      )
      t.equal(second.headers.get('idempotency-replayed'), 'true')
      t.equal((await world.upstreamCalls(first.trace)).length, 1)
      t.equal(await client.remaining('9982'), '9982')
      t.equal((await client.rows(1)).length, 1)
    },
  ),
  statement(
    'The key belongs to the account: another of its keys is replayed, another account is not',
    async (t, world) => {
      const client = await world.client()
      const ask = (who: Client) => who.call('chat-completions', 'plain-chat-completions', { headers: KEY })
      await ask(client)
      t.equal((await ask(await world.another(client))).headers.get('idempotency-replayed'), 'true')
      t.equal((await ask(await world.client())).headers.get('idempotency-replayed'), null)
    },
  ),
  statements(
    BILLED,
    (each) => `Another body under the same key is 409 idempotency_key_reuse (${nameOf(each)})`,
    async (t, world, [path, body]) => {
      const client = await world.client()
      const first = await client.post(path, body, KEY)
      t.ok([200, 202].includes(first.status), first.text.slice(0, 200))
      const second = await client.post(path, { ...body, user: 'another' }, KEY)
      t.equal(second.status, 409)
      if (path === '/v1/messages') t.equal(second.body.error.type, 'invalid_request_error')
      else if (path.startsWith('/v1beta/')) t.equal(second.body.error.status, 'ALREADY_EXISTS')
      else t.equal(codeOf(second), 'idempotency_key_reuse')
    },
  ),
  statement(
    'Bodies are compared by meaning: white space and the order of names change nothing',
    async (t, world) => {
      const body = callOf('chat-completions', 'plain-chat-completions', {}).body
      const respelt = JSON.stringify(Object.fromEntries(Object.entries(body).reverse()), null, 3)
      await checkReplay(t, await world.client(), '/v1/chat/completions', body, respelt)
    },
  ),
  statement('url and its alias input are one request', async (t, world) => {
    const [url, input] = [{ url: 'https://example.com/v/2' }, { input: 'https://example.com/v/2' }]
    await checkReplay(t, await world.client(), '/v1/transcripts/extract', url, input)
  }),
  statement(
    'Forms are compared by meaning: another boundary and another order change nothing',
    async (t, world) => {
      const form = (fields: readonly string[]) => {
        const made = new FormData()
        const image = Buffer.from(PNG_URI.split(',')[1] ?? '', 'base64')
        const values: Readonly<Record<string, () => void>> = {
          model: () => made.set('model', 'demo-image'),
          prompt: () => made.set('prompt', 'a kite'),
          image: () => made.set('image', new Blob([image], { type: 'image/png' }), 'a.png'),
        }
        for (const name of fields) values[name]?.()
        return made
      }
      const client = await world.client()
      const [first, again] = [form(['model', 'prompt', 'image']), form(['image', 'prompt', 'model'])]
      await checkReplay(t, client, '/v1/images/edits', first, again)
      const other = form(['model', 'image'])
      other.set('prompt', 'another')
      t.equal(codeOf(await client.post('/v1/images/edits', other, KEY)), 'idempotency_key_reuse')
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `While the first call runs the same key is 409 idempotency_in_flight (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const say = simulate('tokens=900,tps=50')
      const { path, body } = callOf(protocol, `plain-${protocol}`, { stream: true, say })
      const leave = new AbortController()
      const running = await client.open('POST', path, body, KEY, leave.signal)
      t.equal(running.status, 200)
      const second = await client.post(path, body, KEY)
      t.equal(second.status, 409)
      t.match(second.text, /idempotency_in_flight|invalid_request_error|ALREADY_EXISTS/)
      leave.abort()
    },
  ),
  statements(
    BILLED,
    (each) => `A key is 1 to 200 printable ASCII characters (${nameOf(each)})`,
    async (t, world, [path, body]) => {
      const client = await world.client()
      const bad = ['', 'x'.repeat(201), 'two words', 'a\tb', 'caf\u00e9s'].map((key) => Buffer.from(key))
      t.same(await takenOf(client, path, body, bad), [])
    },
  ),
  statement(
    'A key of 1 and one of 200 characters are taken, and every printable character',
    async (t, world) => {
      const client = await world.client()
      const printable = String.fromCharCode(...range(0x21, 0x7e))
      for (const key of ['x', 'x'.repeat(200), printable]) {
        const options = { headers: { 'idempotency-key': key } }
        t.equal((await client.call('chat-completions', 'plain-chat-completions', options)).status, 200, key)
        const again = await client.call('chat-completions', 'plain-chat-completions', options)
        t.equal(again.headers.get('idempotency-replayed'), 'true', key)
      }
    },
  ),
  statement('No byte beyond printable ASCII is taken in a key', async (t, world) => {
    const client = await world.client()
    const { path, body } = callOf('chat-completions', 'plain-chat-completions', {})
    for (const byte of REFUSED_BYTES) t.same(await takenOf(client, path, body, keysWith(byte)), [])
  }),
  statement('A key with a control character is never taken: its request has no answer', async (t, world) => {
    const client = await world.client()
    const { path, body } = callOf('chat-completions', 'plain-chat-completions', {})
    const keys = CONTROLS.flatMap(keysWith)
    const answers = await Promise.all(keys.map((key) => withKeyBytes(client, path, body, key)))
    t.same(
      keys.filter((_, index) => (answers[index]?.status ?? 400) !== 400).map((key) => key.toString('hex')),
      [],
    )
  }),
  statements(
    BILLED,
    (each) => `Such bytes are refused by every endpoint, and so are two keys (${nameOf(each)})`,
    async (t, world, [path, body]) => {
      const client = await world.client()
      t.same(await takenOf(client, path, body, SOME_BYTES.flatMap(keysWith)), [])
      const [one, two] = [Buffer.from('one'), Buffer.from('two')]
      t.ok(isMalformed(path, await withKeyBytes(client, path, body, one, two)), 'two keys')
      t.ok(isMalformed(path, await withKeyBytes(client, path, body, one, one)), 'one key twice')
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `Refusals and errors do not use the key up (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const options = { headers: KEY }
      t.equal((await client.call(protocol, 'unheard-of', options)).status, 400)
      for (const status of [400, 429, 500]) {
        const say = simulate(`fault=status:${status}`)
        t.equal((await client.call(protocol, `faulty-${protocol}`, { ...options, say })).status, status)
      }
      const answer = await client.call(protocol, `plain-${protocol}`, options)
      t.same([answer.status, answer.headers.get('idempotency-replayed')], [200, null])
    },
  ),
  statement(
    'An answer of pictures as base64 is too large to keep: 409, and a new key bills again',
    async (t, world) => {
      const client = await world.client('100')
      const body = { model: 'demo-image', prompt: 'a kite', response_format: 'b64_json' }
      const ask = (key: string) => client.post('/v1/images/generations', body, { 'idempotency-key': key })
      t.equal((await ask('first')).status, 200)
      const again = await ask('first')
      t.same([again.status, codeOf(again)], [409, 'idempotency_response_not_cached'])
      t.equal((await ask('second')).status, 200)
      t.equal(await client.remaining('75'), '75')
    },
  ),
  statement('An answer of 7 MiB is kept, one of more than 8 MiB is not', async (t, world) => {
    const client = await world.client()
    const ask = async (bytes: number, key: string) => {
      const { word } = answerOfBytes(world, bytes)
      const options = { say: word, headers: { 'idempotency-key': key } }
      const first = await client.call('chat-completions', 'script-chat-completions', options)
      t.equal(first.status, 200)
      const again = await client.call('chat-completions', 'script-chat-completions', options)
      return [
        again.status,
        codeOf(again),
        again.headers.get('idempotency-replayed'),
        again.text === first.text,
      ]
    }
    t.same(await ask(7 * MIB, 'kept'), [200, undefined, 'true', true])
    t.same(await ask(9 * MIB, 'large'), [409, 'idempotency_response_not_cached', null, false])
  }),
  statement('A failed job gives the key free', async (t, world) => {
    const client = await world.client()
    const ask = (prompt: string) =>
      client.post('/v1/videos/generations', { model: 'demo-video', prompt, duration: 1 }, KEY)
    t.equal((await ask(simulate('fault=status:400'))).status, 400)
    t.equal((await ask('a kite')).status, 200)
  }),
  statement(
    'Two calls of one key at a time: one runs, the other waits for nothing and is 409',
    async (t, world) => {
      const client = await world.client()
      const { path, body } = callOf('chat-completions', 'plain-chat-completions', {
        say: simulate('ttft=500'),
      })
      const answers = await Promise.all([1, 2].map(() => client.post(path, body, KEY)))
      t.same(answers.map(({ status }) => status).sort(), [200, 409])
      await until('its answer is kept', async () => (await client.post(path, body, KEY)).status === 200)
    },
  ),
])
