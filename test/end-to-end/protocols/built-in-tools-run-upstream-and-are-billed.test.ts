/** Built-in tools run at the upstream and are billed. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { rowsOf, traceOf, upstreamRequest } from '../support.ts'
import {
  ask,
  Books,
  CHAT_PROTOCOLS,
  type ChatProtocol,
  checkRefused,
  checkTranslation,
  configOf,
  ERRORS,
  simulated,
} from './support.ts'

const SEARCH: Readonly<Record<ChatProtocol, object>> = {
  'chat-completions': { type: 'web_search' },
  messages: { type: 'web_search_20250305', name: 'web_search', max_uses: 5 },
  'generate-content': { googleSearch: {} },
  responses: { type: 'web_search' },
}
const DRAWING = { type: 'image_generation' }
const FUNCTION = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }
const SEARCHES = 3
const TOKENS = 6
const PROMPT_TOKENS = 50
const DIRECTIVES = `tokens=${TOKENS},prompt_tokens=${PROMPT_TOKENS},searches=${SEARCHES},images=2`
const both = { web_search: true, image_generation: true }

/** Models that can do both, one, or none of it, each on a channel of every protocol that can do both. */
const ABLE = CHAT_PROTOCOLS.map((protocol) => `able.${protocol}`)
const CONFIG = configOf(
  {
    ...Object.fromEntries(ABLE.map((id) => [id, { capabilities: both }])),
    searching: { capabilities: { web_search: true } },
    plain: {},
    unwired: { capabilities: both },
    partly: { capabilities: both },
  },
  [
    ...CHAT_PROTOCOLS.map((protocol) =>
      simulated(
        protocol,
        { [`able.${protocol}`]: `sim-able@${DIRECTIVES}` },
        { tools: ['web_search', 'image_generation'] },
      ),
    ),
    simulated(
      'chat-completions',
      { searching: `sim-first@${DIRECTIVES}`, plain: 'sim-plain' },
      { id: 'wired', tools: ['web_search', 'image_generation'] },
    ),
    simulated('chat-completions', { unwired: 'sim-plain' }, { id: 'unwired' }),
    // The first in line cannot search; the second can, but cannot draw.
    simulated('chat-completions', { partly: 'sim-unable' }, { id: 'partly-first' }),
    simulated(
      'chat-completions',
      { partly: 'sim-able' },
      { id: 'partly-second', priority: 1, tools: ['web_search'] },
    ),
  ],
)

t.test('built-in tools', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { key } = await service.newKey('10000000')
  const chat = (model: string, tools: readonly object[], stream = true) =>
    ask(service, key, 'chat-completions', model, { stream, more: { tools } })

  /** Error codes by request. */
  const refused = new Map<string, string>()

  await t.test('need a stream, whatever the model supports', async (t) => {
    for (const model of ['plain', 'unwired'])
      for (const tool of [SEARCH['chat-completions'], DRAWING])
        await checkRefused(
          t,
          await chat(model, [tool], false),
          'chat-completions',
          ERRORS.invalidRequest,
          /stream/,
        )
    t.equal((await chat('plain', [FUNCTION], false)).status, 200, 'function tools do not')
  })

  await t.test('work in streams alone', async (t) => {
    for (const tool of [SEARCH['chat-completions'], DRAWING]) {
      const response = await chat('able.chat-completions', [FUNCTION, tool], false)
      await checkRefused(t, response, 'chat-completions', ERRORS.invalidRequest, /stream/)
      refused.set(traceOf(response), 'invalid_request')
      t.equal((await chat('able.chat-completions', [FUNCTION, tool])).status, 200)
    }
  })

  await t.test('are refused where model or channel does not have them', async (t) => {
    const calls: readonly (readonly [model: string, tool: object, message: RegExp])[] = [
      ['plain', SEARCH['chat-completions'], /'web_search'/],
      ['plain', DRAWING, /'image_generation'/],
      ['searching', DRAWING, /'image_generation'/],
      ['unwired', SEARCH['chat-completions'], /'web_search'/],
      ['unwired', DRAWING, /'image_generation'/],
      ['partly', DRAWING, /'image_generation'/],
    ]
    for (const [model, tool, message] of calls) {
      const response = await chat(model, [tool])
      await checkRefused(t, response, 'chat-completions', ERRORS.toolNotSupported, message)
      refused.set(traceOf(response), 'tool_not_supported')
    }
  })

  await t.test('leave a row where they were refused', async (t) => {
    for (const row of await rowsOf(service, key, [...refused.keys()])) {
      const code = refused.get(row.request_id)
      t.match(row, { status: 'rejected', error_code: code, cost: '0', attempts_count: 0 })
    }
  })

  await t.test('go to a channel that has them, wherever it stands in line', async (t) => {
    const modelOf = async (response: Response) => {
      t.equal(response.status, 200)
      await response.arrayBuffer()
      return JSON.parse((await upstreamRequest(service, traceOf(response))).body).model
    }
    t.equal(await modelOf(await chat('partly', [SEARCH['chat-completions']])), 'sim-able')
    t.equal(await modelOf(await chat('partly', [FUNCTION])), 'sim-unable')
  })

  await t.test('say nothing of functions, streamed or not', async (t) => {
    for (const model of ['plain', 'unwired'])
      for (const stream of [false, true]) t.equal((await chat(model, [FUNCTION], stream)).status, 200)
  })

  for (const protocol of CHAT_PROTOCOLS)
    await t.test(`are counted and billed, by ${protocol}`, async (t) => {
      const books = await Books.open(service)
      for (const stream of protocol === 'chat-completions' ? [true] : [false, true]) {
        const more = { tools: [SEARCH[protocol]] }
        const response = await ask(service, books.key, protocol, `able.${protocol}`, { stream, more })
        t.equal(response.status, 200)
        await response.arrayBuffer()
        await books.charged(traceOf(response), {
          input: PROMPT_TOKENS,
          output: TOKENS,
          serverToolCalls: SEARCHES,
        })
        const without = await ask(service, books.key, protocol, `able.${protocol}`, { stream })
        await without.arrayBuffer()
        await books.charged(traceOf(without), { input: PROMPT_TOKENS, output: TOKENS, serverToolCalls: 0 })
      }
      if (protocol === 'responses')
        for (const stream of [false, true]) {
          const more = { tools: [SEARCH.responses, DRAWING] }
          const response = await ask(service, books.key, protocol, 'able.responses', { stream, more })
          await response.arrayBuffer()
          await books.charged(traceOf(response), {
            input: PROMPT_TOKENS,
            output: TOKENS,
            serverToolCalls: SEARCHES + 2,
          })
        }
      await books.close(t)
    })

  for (const upstream of ['messages', 'generate-content'] as const)
    await t.test(`are translated to ${upstream}, but for drawing, which is left out`, async (t) => {
      const books = await Books.open(service)
      const call = (tools: readonly object[]) =>
        ask(service, books.key, 'chat-completions', `able.${upstream}`, { stream: true, more: { tools } })
      const searched = await call([SEARCH['chat-completions']])
      checkTranslation(t, searched.headers, upstream)
      t.match(await searched.text(), /\[DONE\]/)
      await books.charged(traceOf(searched), {
        input: PROMPT_TOKENS,
        output: TOKENS,
        serverToolCalls: SEARCHES,
      })
      const drawn = await call([DRAWING, SEARCH['chat-completions']])
      checkTranslation(t, drawn.headers, upstream, /^image_generation$/)
      t.match(await drawn.text(), /\[DONE\]/)
      await books.charged(traceOf(drawn), {
        input: PROMPT_TOKENS,
        output: TOKENS,
        serverToolCalls: SEARCHES,
      })
      await books.close(t)
    })
})
