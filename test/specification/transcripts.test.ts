/** "POST /v1/transcripts/extract": its request, its answer, its errors and its price. */
import t from 'tap'
import { section, statement, statements } from './statement.ts'
import type { Client } from './world.ts'

const PATH = '/v1/transcripts/extract'
const PRICE = '20.22'
const MAX_CHARS = 2000
const FIELDS = ['content', 'cover', 'duration_sec', 'model', 'origin_link', 'platform', 'title']
const invalid = { status: 400, body: { error: { code: 'invalid_request' } } }

const link = (directives: string) =>
  `https://v.example.com/Xy12ab/?simulate=${encodeURIComponent(`delay=100,${directives}`)}`
const extract = (client: Client, url: string) => client.post(PATH, { url })

/** How it ends upstream, and what the client gets. */
const FAILURES = [
  ['an invalid link', 'outcome=fail,code=invalid_link', 400, 'invalid_request'],
  ['an unsupported video', 'outcome=fail,code=unsupported_video', 400, 'invalid_request'],
  ['a script that is blocked', 'outcome=moderation', 400, 'invalid_request'],
  ['a timeout', 'outcome=fail,code=timeout', 504, 'upstream_timeout'],
  ['a quota that is exhausted for a time', 'outcome=fail,code=quota_exhausted', 503, null],
  ['a connection that failed', 'outcome=fail,code=connection_failed', 502, 'upstream_unreachable'],
] as const

await section(t, 'Transcripts', [
  statement('An answer has the words of the video and what is known of it', async (t, world) => {
    const { status, body } = await extract(await world.client(), link(''))
    t.equal(status, 200)
    t.same(Object.keys(body).sort(), FIELDS)
    t.match(body, { model: 'video-transcript', content: /\w/, platform: /\w/, origin_link: /^https?:/ })
    const left = Number(new URL(body.cover).searchParams.get('expires')) - Date.now() / 1000
    t.ok(Math.abs(left - 86_400) < 3600, 'the cover opens for about 24 hours')
  }),
  statement('A raw token goes where a link goes', async (t, world) => {
    t.equal((await extract(await world.client(), 'Xy12ab')).status, 200)
  }),
  statement('input is another name of url, and one of them is required', async (t, world) => {
    const client = await world.client()
    t.equal((await client.post(PATH, { input: link('') })).status, 200)
    t.match(await client.post(PATH, {}), invalid)
  }),
  statement('url has 2000 characters at most', async (t, world) => {
    const client = await world.client()
    const long = (chars: number) => link('').padEnd(chars, 'x')
    t.not((await extract(client, long(MAX_CHARS))).body.error?.message.includes('2000'), true)
    const over = await extract(client, long(MAX_CHARS + 1))
    t.match(over, invalid)
    t.match(over.body.error.message, '2000')
  }),
  statement('A successful call costs 20.22', async (t, world) => {
    const client = await world.client('100')
    const answer = await extract(client, link(''))
    t.match(await client.row(answer), { cost: PRICE, unit_type: 'transcript', status: 'success' })
    t.equal(await client.remaining('79.78'), '79.78')
    t.equal((await extract(await world.client('20.21'), link(''))).status, 402)
    t.equal((await extract(await world.client(PRICE), link(''))).status, 200)
  }),
  statements(
    FAILURES,
    ([what, , status]) => `${what} is ${status} and free`,
    async (t, world, [, directives, status, code]) => {
      const client = await world.client('100')
      const answer = await extract(client, link(directives))
      t.equal(answer.status, status)
      if (code !== null) t.equal(answer.body.error.code, code)
      t.equal((await client.row(answer)).cost, '0')
      t.match(await client.balance(), { remaining: '100', used: '0' })
    },
  ),
  statement("An upstream's own 504 stays one", async (t, world) => {
    const answer = await extract(await world.client(), link('fault=status:504'))
    t.equal(answer.status, 504)
  }),
  statement('A key may be limited to it', async (t, world) => {
    const client = await world.client('100', { allowedModels: ['video-transcript'] })
    t.equal((await extract(client, link(''))).status, 200)
    t.equal(
      (await client.call('chat-completions', 'plain-chat-completions')).body.error.code,
      'model_not_allowed',
    )
    const other = await world.client('100', { allowedModels: ['demo-image'] })
    t.match(await extract(other, link('')), { status: 403, body: { error: { code: 'model_not_allowed' } } })
  }),
])
