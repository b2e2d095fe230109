/** What an agent makes of a call, what it is refused for, and what its row says. */
import t from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import { parseCredits } from '../../../schemas/money.ts'
import { readDetail } from '../../../src/core/call-log/detail-text.ts'
import { ASK, agentWith, Call, type Made, OnePageWiki, PERSONA } from './agent-call-support.ts'
import { DONE, event, FINISH, usageChunk, word } from './forward-support.ts'

t.test('a call is that of the agent, down to its row', async (t) => {
  const call = new Call({
    body: { ...ASK, tools: [{ type: 'function' }], tool_choice: 'required', user: 'u' },
  })
  t.same(call.sent, {
    model: 'wire-blind',
    messages: [{ role: 'system', content: PERSONA }, ...ASK.messages],
    temperature: 0.2,
    user: 'u',
  })
  const upstream = call.attempts[0]!
  upstream.answer({
    choices: [{ message: { content: 'yes' } }],
    usage: { prompt_tokens: 7, completion_tokens: 3 },
  })
  t.match(call.row, {
    status: 'success',
    model: 'blind',
    key_id: 'key_a',
    account_id: 'acc_a',
    cost: '1300000000',
  })
  t.match(readDetail(call.row.detail ?? ''), { agent: 'agt_a', messages: 2, temperature: 0.2 })
  t.notOk('knowledge_pages' in readDetail(call.row.detail ?? ''))
  const bytes = Buffer.byteLength(JSON.stringify(call.sent.messages))
  t.equal(
    call.row.estimate,
    parseCredits(String(Math.ceil(bytes / 4) + 2 * 10)).toString(),
    'of the persona as well',
  )
})

t.test('another model serves when those of the agent failed, with its persona, price and cost', async (t) => {
  const call = new Call({ agent: agentWith({ model: 'failing' }) })
  t.equal(call.sent.model, 'wire-failing')
  call.attempts[0]!.fail('connect')
  t.match(call.sent, {
    model: 'wire-blind',
    messages: [{ role: 'system', content: PERSONA }, ...ASK.messages],
    temperature: 0.2,
  })
  const upstream = call.attempts[1]!
  upstream.answer({
    choices: [{ message: { content: 'yes' } }],
    usage: { prompt_tokens: 8, completion_tokens: 4 },
  })
  t.match(call.row, { status: 'success', model: 'blind', attempts_count: 2 })
  // 8 x 1 + 4 x 2, and 8 x 0.25 + 4 x 0.5
  t.match(call.row, { cost: parseCredits('16').toString(), upstream_cost: parseCredits('4').toString() })
  t.match(readDetail(call.row.detail ?? ''), { agent: 'agt_a' })
})

t.test('its knowledge is searched once, and given before the latest message', async (t) => {
  const wiki = new OnePageWiki()
  const agent = agentWith({ knowledge: ['default', 'row_kb_shared', 'kb_empty', 'kb_shared'] })
  const messages = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Hi' },
    { role: 'user', content: [{ type: 'text', text: ' May I return it? ' }] },
  ]
  const call = await new Call({ wiki, agent, body: { messages, stream: true } }).settled()
  t.same(wiki.asked, [
    { accountId: 'acc_a', agentId: 'agt_a' },
    { bases: ['default', 'kb_shared'], query: 'May I return it?', range: { limit: 5, offset: 0 } },
  ])
  const sent = call.sent.messages
  t.same([sent[0].role, sent[1], sent[2], sent[4]], ['system', messages[0], messages[1], messages[2]])
  t.match(sent[3], {
    role: 'user',
    content: /id "page_1", title "Returns"\nThirty days, with the receipt\.\n/,
  })
  const marks = new Set(String(sent[3].content).match(/[0-9a-f]{32}/g))
  t.equal(marks.size, 1)
  const upstream = call.attempts[0]!
  upstream.head()
  for (const piece of [word('yes'), FINISH, usageChunk(50, 1), DONE]) upstream.data(piece)
  upstream.end()
  t.match(readDetail(call.row.detail ?? ''), { agent: 'agt_a', knowledge_pages: 1, messages: 5 })
  t.ok(BigInt(call.row.estimate) > parseCredits(String(String(sent[3].content).length / 4)))

  const again = await new Call({ agent: agentWith({ knowledge: ['default'] }) }).settled()
  t.notOk(
    marks.has(/[0-9a-f]{32}/.exec(again.sent.messages[1].content)![0]),
    'each call has a mark of its own',
  )
})

t.test('there is nothing to search for without a question, and nothing in an empty base', async (t) => {
  for (const [knowledge, content] of [
    [['default'], '  '],
    [['default'], [{ type: 'file', file: {} }]],
    [['kb_empty'], 'What?'],
  ] as const) {
    const wiki = new OnePageWiki()
    const call = await new Call({
      wiki,
      agent: agentWith({ knowledge: [...knowledge] }),
      body: { messages: [{ role: 'user', content }] },
    }).settled()
    t.equal(call.sent.messages.length, 2)
    t.equal(wiki.asked.length, 1)
  }
})

t.test('a long question is asked by its beginning', async (t) => {
  const wiki = new OnePageWiki()
  const body = { messages: [{ role: 'user', content: `${'w'.repeat(998)}😀😀😀` }] }
  await new Call({ wiki, agent: agentWith({ knowledge: ['default'] }), body }).settled()
  t.match(wiki.asked[1], { query: `${'w'.repeat(998)}😀😀` })
})

t.test('each refusal, in its order, leaves a row at no cost', async (t) => {
  const knowing = agentWith({ knowledge: ['kb_x'] })
  const image = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] }]
  const away = new OnePageWiki()
  away.isAway = true
  const cases: readonly (readonly [made: Made, status: number, code: string, message: RegExp])[] = [
    [{ balance: '0', agent: agentWith({}, { state: 'draft' }) }, 402, 'quota_exceeded', /balance/],
    [{ agent: null }, 403, 'permission_denied', /no agent/],
    [{ agent: agentWith({}, { state: 'draft' }), body: 'x' }, 403, 'permission_denied', /not published/],
    [{ agent: agentWith({}, { state: 'deleted' }) }, 403, 'permission_denied', /deleted/],
    [{ agent: agentWith({}, { accountId: 'acc_b' }) }, 403, 'permission_denied', /another organization/],
    [{ accountModels: ['seeing'], body: 'x' }, 403, 'permission_denied', /does not allow the model 'blind'/],
    [{ agent: knowing, body: 'x' }, 403, 'permission_denied', /'kb_x'/],
    [{ agent: agentWith({ knowledge: ['default'] }), wiki: away }, 503, 'service_unavailable', /knowledge/],
    [{ body: 'x' }, 400, 'invalid_request', /JSON/],
    [{ body: { messages: [{ role: 'system', content: 'x' }] } }, 400, 'invalid_request', /role user/],
    [{ agent: agentWith({ model: 'gone' }) }, 400, 'model_not_found', /'gone'/],
    [{ key: { allowedModels: [] } }, 400, 'model_not_allowed', /'blind'/],
    [{ body: { messages: image } }, 400, 'model_no_vision', /images/],
    [{ body: { messages: [...image, ...ASK.messages] } }, 400, 'model_no_vision', /images/],
    [
      { agent: agentWith({ web_search: true }), body: { ...ASK, stream: true } },
      400,
      'tool_not_supported',
      /web_search/,
    ],
    [{ balance: '10' }, 402, 'quota_exceeded', /balance/],
  ]
  for (const [made, status, code, message] of cases) {
    const name = `${code} ${message}`
    const call = await new Call(made).settled()
    t.ok(call.error instanceof Failure, `${name}: ${call.error}`)
    t.match(call.error, { status, code, message }, name)
    t.equal(call.attempts.length, 0, name)
    t.match(call.row, { status: 'rejected', error_code: code, cost: '0', key_id: 'key_a' }, name)
    t.equal(call.row.model, made.agent === null ? 'whatever' : (made.agent?.file.model ?? 'blind'), name)
    t.equal(call.view.inFlight, 0n, name)
  }
})

t.test('images go to a model that sees, and the built-in tools into streams', async (t) => {
  const content = [{ type: 'image_url', image_url: { url: 'data:,' } }]
  const seen = new Call({
    agent: agentWith({ model: 'seeing' }),
    body: { messages: [{ role: 'user', content }] },
  })
  t.same(seen.sent.messages[1].content, content)
  const agent = agentWith({ model: 'searching', web_search: true })
  t.same(new Call({ agent, body: { ...ASK, stream: true } }).sent.tools, [{ type: 'web_search' }])
})

t.test('an agent with built-in tools answers in one piece what its upstream streams', async (t) => {
  const agent = agentWith({ model: 'searching', web_search: true })
  const ask = () => new Call({ agent, body: { ...ASK, stream: false } })
  const call = ask()
  t.match(call.sent, {
    stream: true,
    stream_options: { include_usage: true },
    tools: [{ type: 'web_search' }],
  })
  const [upstream] = call.attempts
  upstream!.head()
  upstream!.data(word('ye') + word('s'))
  t.same(call.replies, [], 'nothing goes out before it is whole')
  upstream!.data(FINISH + usageChunk(7, 3) + DONE)
  upstream!.end()
  const [reply] = call.replies
  t.match(reply, { type: 'full', status: 200, headers: [['content-type', 'application/json']] })
  t.match(JSON.parse(String(reply?.type === 'full' && reply.body)), {
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 7, completion_tokens: 3 },
  })
  t.match(call.row, { status: 'success', stream: false, cost: parseCredits('13').toString() })

  const whole = ask()
  whole.attempts[0]!.answer({
    choices: [{ message: { content: 'yes' } }],
    usage: { prompt_tokens: 7, completion_tokens: 3 },
  })
  t.match(
    whole.replies,
    [{ type: 'full', body: /"content":"yes"/ }],
    'as is where the upstream does not stream',
  )

  const broken = ask()
  broken.attempts[0]!.head()
  broken.attempts[0]!.data(word('ye'))
  broken.attempts[0]!.fail('reset', { headReceived: true })
  t.match(broken.error, { status: 502, code: 'upstream_unreachable' })
  t.match(broken.row, { status: 'error', cost: '0' })
  const unfinished = ask()
  unfinished.attempts[0]!.stream(word('ye'))
  t.match(unfinished.error, { status: 502, code: 'upstream_error' })
  const erred = ask()
  erred.attempts[0]!.stream(word('ye') + event({ error: { message: 'no capacity' } }))
  t.match(erred.error, { status: 502, message: /no capacity/ })
})

t.test('without knowledge nobody is asked, and the upstream is called at once', async (t) => {
  const wiki = new OnePageWiki()
  wiki.isAway = true
  t.equal(new Call({ wiki }).attempts.length, 1)
  t.same(wiki.asked, [])
})

t.test('what is found for a client that has left goes nowhere', async (t) => {
  const wiki = new OnePageWiki()
  const { promise, resolve } = Promise.withResolvers<void>()
  wiki.hold = promise
  const call = await new Call({ wiki, agent: agentWith({ knowledge: ['default'] }) }).settled()
  t.equal(wiki.asked.length, 2, 'it is being searched')
  call.subscription.unsubscribe()
  resolve()
  await call.settled()
  t.same([call.attempts.length, call.settlements.length, call.view.inFlight], [0, 0, 0n])
})

t.test('a conversation that is named stays with one channel', async (t) => {
  const channelOf = (headers: Readonly<Record<string, string>>) =>
    new Call({ headers }).attempts[0]!.request.channel.id
  for (const name of ['session_id', 'conversation_id']) {
    const first = channelOf({ [name]: 'abc' })
    for (let turn = 0; turn < 10; turn++) t.equal(channelOf({ [name]: 'abc' }), first)
  }
  const channels = new Set(
    Array.from({ length: 40 }, (_, session) => channelOf({ session_id: String(session) })),
  )
  t.equal(channels.size, 2)
})
