/** "Balance and billing": the price of what a call used, and the wallet. */
import t from 'tap'
import { parseCredits, printCredits } from '../../schemas/money.ts'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../end-to-end/protocols/support.ts'
import { OUTPUT_TOKENS, PLAIN_COST, PROMPT_TOKENS, SERVER_TOOL_PRICE } from './configuration.ts'
import { section, statement, statements } from './statement.ts'
import { type Client, simulate, type World } from './world.ts'

const SEARCH: Readonly<Record<ChatProtocol, object>> = {
  'chat-completions': { tools: [{ type: 'web_search' }] },
  messages: { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 5 }] },
  'generate-content': { tools: [{ googleSearch: {} }] },
  responses: { tools: [{ type: 'web_search' }] },
}

const SEARCHES = 3

/** What a call of one token of output cost, whose upstream counted so. */
async function costOf(world: World, model: string, directives: string): Promise<string> {
  const client = await world.client('100000000')
  const answer = await client.call('chat-completions', model, { say: simulate(directives) })
  return (await client.row(answer)).cost
}

/** The call-log row of a call that went through. */
async function charged(client: Client, protocol: ChatProtocol, model: string, options: object) {
  const answer = await client.call(protocol, model, options)
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`)
  return client.row(answer)
}

await section(t, 'Balance and billing', [
  statements(
    CHAT_PROTOCOLS.flatMap((protocol) => [false, true].map((stream) => ({ protocol, stream }))),
    ({ protocol, stream }) =>
      `A chat call is billed by its tokens and leaves a row (${protocol}, ${stream ? 'streamed' : 'whole'})`,
    async (t, world, { protocol, stream }) => {
      const client = await world.client('10000')
      const row = await charged(client, protocol, `plain-${protocol}`, { stream })
      t.match(row, { input_tokens: PROMPT_TOKENS, output_tokens: OUTPUT_TOKENS, cost: PLAIN_COST })
      t.equal(await client.remaining('9982'), '9982')
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `Cached tokens have the cached rate without any switch (${protocol})`,
    async (t, world, protocol) => {
      // A tenth of the input price, where a family writes its cache.
      const client = await world.client()
      const row = await charged(client, protocol, `cache-${protocol}`, { say: simulate('cached=40') })
      t.match(row, { input_tokens: 100, cached_tokens: 40, output_tokens: 4, cost: '72' })
    },
  ),
  statement('Cache writes cost 1.25 and cache hits 0.1 of the input price', async (t, world) => {
    const client = await world.client()
    const say = simulate('cached=40,cache_write=20')
    for (const stream of [false, true]) {
      const row = await charged(client, 'messages', 'cache-messages', { stream, say })
      // 40 x 1 + 40 x 0.1 + 20 x 1.25 + 4 x 2
      t.match(row, { input_tokens: 100, cached_tokens: 40, cache_write_tokens: 20, cost: '77' })
    }
  }),
  statement(
    'Settlement does not gate again: the balance ends below zero, and the next call is 402',
    async (t, world) => {
      const client = await world.client('50')
      const answer = await client.call('chat-completions', 'plain-chat-completions', {
        say: simulate('prompt_tokens=60,tokens=1'),
        more: { max_tokens: 1 },
      })
      t.equal(answer.status, 200)
      t.equal(await client.remaining('-12'), '-12')
      for (const each of [client, await world.another(client)]) {
        const refused = await each.call('chat-completions', 'plain-chat-completions')
        t.match([refused.status, refused.body.error.code], [402, 'quota_exceeded'])
      }
    },
  ),
  statement(
    'Every key of an account draws on one balance, and another key adds nothing',
    async (t, world) => {
      const client = await world.client('1000')
      const other = await world.another(client)
      await other.call('chat-completions', 'plain-chat-completions')
      t.equal(await client.remaining('982'), '982')
      t.same(await client.balance(), await other.balance())
    },
  ),
  statement(
    'A prompt of 200K tokens or more bills input, cached input and output at 2x',
    async (t, world) => {
      t.equal(await costOf(world, 'tier-200k', 'prompt_tokens=199999,cached=1000'), '199101')
      t.equal(await costOf(world, 'tier-200k', 'prompt_tokens=200000,cached=1000'), '398204')
    },
  ),
  statement(
    'In another group 272K tokens bill input and cached input at 2x, output at 1.5x',
    async (t, world) => {
      t.equal(await costOf(world, 'tier-272k', 'prompt_tokens=271999,cached=1000'), '271101')
      t.equal(await costOf(world, 'tier-272k', 'prompt_tokens=272000,cached=1000'), '542203')
    },
  ),
  statements(
    CHAT_PROTOCOLS.flatMap((protocol) =>
      (protocol === 'chat-completions' ? [true] : [false, true]).map((stream) => ({ protocol, stream })),
    ),
    ({ protocol, stream }) =>
      `A server-side tool call costs 2.022, promotion or not, and is counted in the row (${protocol}, ${stream ? 'streamed' : 'whole'})`,
    async (t, world, { protocol, stream }) => {
      const client = await world.client()
      const row = await charged(client, protocol, `able-${protocol}`, { stream, more: SEARCH[protocol] })
      const tokens = parseCredits(PLAIN_COST) / 2n
      const cost = tokens + BigInt(SEARCHES) * parseCredits(SERVER_TOOL_PRICE)
      t.match(row, { server_tool_calls: SEARCHES, cost: printCredits(cost) })
    },
  ),
  statement('A promotion lowers the billed price while it lasts', async (t, world) => {
    const client = await world.client()
    const ask = (model: string) => charged(client, 'chat-completions', model, {})
    t.equal((await ask('promoted')).cost, '14.4')
    t.equal((await ask('ended-promotion')).cost, PLAIN_COST)
  }),
  statement('A call that the upstream refuses costs nothing', async (t, world) => {
    const client = await world.client('1000')
    for (const status of [400, 404, 429, 500, 503]) {
      const answer = await client.call('chat-completions', 'faulty-chat-completions', {
        say: simulate(`fault=status:${status}`),
        more: { max_tokens: 4 },
      })
      t.equal((await client.row(answer)).cost, '0', `${status}`)
    }
    t.equal((await client.balance()).remaining, '1000')
  }),
  statement('Logs, lists, models, balance and knowledge cost nothing', async (t, world) => {
    const client = await world.client('1000')
    for (const path of [
      '/v1/logs',
      '/v1/logs/summary',
      '/v1/models',
      '/v1/key/balance',
      '/v1/dashboard/billing/usage',
      '/v1/videos/generations',
      '/v1/videos/clip-templates',
      '/api/v1/ext/wiki/search?q=tea',
    ])
      t.equal((await client.get(path)).status, 200, path)
    t.match(await client.balance(), { remaining: '1000', used: '0', held: '0' })
  }),
  statement(
    'The balance says what is left, what was used and what there was, also at zero',
    async (t, world) => {
      const client = await world.client('18')
      await client.call('chat-completions', 'plain-chat-completions', { more: { max_tokens: 4 } })
      t.equal(await client.remaining('0'), '0')
      const { status, body } = await client.get('/v1/key/balance')
      t.equal(status, 200)
      t.match(body, { remaining: '0', used: PLAIN_COST, total: PLAIN_COST, held: '0' })
    },
  ),
  statements(
    [
      '/v1/dashboard/billing/subscription',
      '/v1/dashboard/billing/usage',
      '/v1/dashboard/billing/credit_grants',
    ],
    (path) => `${path} answers, also at a balance of zero`,
    async (t, world, path) => {
      const { status, body } = await (await world.client('0')).get(path)
      t.equal(status, 200)
      t.type(body, 'object')
    },
  ),
  statement(
    'The billing family shows the balance in numbers that third-party clients read',
    async (t, world) => {
      const client = await world.client('1000')
      await client.call('chat-completions', 'plain-chat-completions')
      await client.remaining('982')
      const get = async (path: string) => (await client.get(`/v1/dashboard/billing/${path}`)).body
      t.match(await get('subscription'), {
        hard_limit_usd: 1000,
        soft_limit_usd: 1000,
        system_hard_limit_usd: 1000,
      })
      t.match(await get('credit_grants'), { total_granted: 1000, total_used: 18, total_available: 982 })
    },
  ),
])
