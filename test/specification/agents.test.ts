/** "Agent API": what an agent adds to a call, what its key may do, and what is refused. */
import t from 'tap'
import type { AgentFile } from '../../schemas/accounts/agent.ts'
import { parseCredits } from '../../schemas/money.ts'
import { agentFile, newOrganization, write } from '../end-to-end/knowledge/support.ts'
import { PNG_URI } from '../end-to-end/sdk/support.ts'
import { draft } from '../src/postgres/knowledge/wiki-support.ts'
import { until } from '../support/eventually.ts'
import { PLAIN_COST } from './configuration.ts'
import { section, statement, statements } from './statement.ts'
import { Client, type World } from './world.ts'

const PERSONA = 'You are Acme support.'
const user = (content: unknown) => ({ role: 'user', content })
const denied = (status: number, code: string) => ({ status, body: { error: { code } } })

/** A published agent of a new organization, its key, and a key that reads the organization's log. */
async function newAgent(world: World, file: Partial<AgentFile> = {}, spendCap: string | null = null) {
  const { service } = world
  const { database } = service
  const accountId = await newOrganization(database, 'Acme')
  const { id } = await database.agents.create(
    accountId,
    agentFile({ model: 'plain-chat-completions', persona: PERSONA, temperature: 0.2, ...file }),
  )
  await database.agents.setState(id, 'published')
  const made = await database.keys.create({
    name: 'agent',
    accountId,
    kind: 'agent',
    agentId: id,
    spendCap: spendCap === null ? null : parseCredits(spendCap),
  })
  const reading = await database.keys.create({ name: 'reader', accountId, accountLogs: true })
  return {
    id,
    agent: new Client(service, { accountId, keyId: made.key.id, key: made.raw }),
    reader: new Client(service, { accountId, keyId: reading.key.id, key: reading.raw }),
  }
}

const ask = (agent: Client, more: object = {}, stream = false) =>
  agent.call('chat-completions', 'any-placeholder', { stream, more: { messages: [user('hi')], ...more } })

/** Everything else that a key may ask for. */
const CLOSED: readonly (readonly [method: string, path: string, body?: object])[] = [
  ['POST', '/v1/messages', { model: 'plain-messages', max_tokens: 1, messages: [user('hi')] }],
  ['POST', '/v1/responses', { model: 'plain-responses', input: [user('hi')] }],
  ['POST', '/v1beta/models/plain-generate-content:generateContent', {}],
  ['POST', '/v1beta/models/plain-generate-content:streamGenerateContent', {}],
  ['POST', '/v1/completions', { model: 'plain', prompt: 'hi' }],
  ['POST', '/v1/messages/count_tokens', { model: 'plain-messages', messages: [user('hi')] }],
  ['POST', '/v1/embeddings', { model: 'x', input: 'x' }],
  ['GET', '/v1/models'],
  ['GET', '/v1/key/balance'],
  ['GET', '/v1/dashboard/billing/usage'],
  ['GET', '/api/v1/usage'],
  ['POST', '/v1/images/generations', { model: 'demo-image', prompt: 'x' }],
  ['POST', '/v1/images/edits', { model: 'demo-image', prompt: 'x', image: PNG_URI }],
  ['POST', '/v1/videos/generations', { model: 'demo-video', prompt: 'x' }],
  ['GET', '/v1/videos/generations'],
  ['POST', '/v1/music/generations', { model: 'demo-music', prompt: 'x' }],
  ['POST', '/v1/audio/speech', { model: 'voice-tts-pro', input: 'x' }],
  ['GET', '/v1/audio/voices'],
  ['POST', '/v1/transcripts/extract', { url: 'https://example.com/v' }],
  ['GET', '/v1/videos/avatars/presets'],
  ['GET', '/v1/videos/clip-templates'],
  ['GET', '/v1/logs'],
  ['GET', '/v1/logs/1'],
  ['GET', '/v1/logs/summary'],
  ['GET', '/api/v1/ext/wiki/search?q=x'],
  ['GET', '/api/v1/ext/wiki/kbs'],
  ['POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
]

await section(t, 'Agents', [
  statements(
    CLOSED,
    ([method, path]) => `An agent key is refused on ${method} ${path}`,
    async (t, world, [method, path, body]) => {
      const { agent } = await newAgent(world)
      const { status, text } = await agent.send(method, path, body, {
        accept: 'application/json, text/event-stream',
      })
      t.equal(status, 403)
      t.match(text, /permission_denied|permission_error|PERMISSION_DENIED/)
    },
  ),
  statement('An agent key has the format of any other', async (t, world) => {
    t.match((await newAgent(world)).agent.key, /^sk-tollgate-[0-9a-f]{64}$/)
  }),
  statements(
    [false, true],
    (stream) =>
      `The persona comes first, the model is the agent's and the body's is ignored (${stream ? 'streamed' : 'whole'})`,
    async (t, world, stream) => {
      const { agent } = await newAgent(world)
      const messages = [{ role: 'system', content: 'Speak as a pirate.' }, user('hi')]
      const answer = await ask(agent, { messages }, stream)
      t.equal(answer.status, 200)
      const sent = await world.received(answer.trace)
      t.match(sent.model, /^sim-plain/)
      t.same(sent.messages, [{ role: 'system', content: PERSONA }, ...messages])
    },
  ),
  statement('Tools and functions of the client are ignored', async (t, world) => {
    const { agent } = await newAgent(world)
    const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }]
    const functions = [{ name: 'g', parameters: {} }]
    const answer = await ask(agent, { tools, functions, tool_choice: 'required' })
    t.equal(answer.status, 200)
    const sent = await world.received(answer.trace)
    for (const name of ['tools', 'functions', 'tool_choice']) t.notOk(name in sent, name)
  }),
  statement("The agent's temperature holds unless the client sets one", async (t, world) => {
    const { agent } = await newAgent(world)
    const sent = async (more: object) => (await world.received((await ask(agent, more)).trace)).temperature
    t.equal(await sent({}), 0.2)
    t.equal(await sent({ temperature: 1 }), 1)
  }),
  statement('Attached bases are searched with the latest user message', async (t, world) => {
    const { agent } = await newAgent(world, { knowledge: ['default'] })
    await write(world.service.database, agent.accountId, [
      draft('kettle.md', {
        title: 'Returning a kettle',
        text: 'A kettle may be returned.',
        body: 'A **kettle** may be returned.',
      }),
      draft('bread.md', { title: 'Bread', text: 'Flour and water.', body: 'Flour and water.' }),
    ])
    const messages = [
      user('bread?'),
      { role: 'assistant', content: 'Yes.' },
      user('May I return the kettle?'),
    ]
    const answer = await ask(agent, { messages })
    const { messages: sent } = await world.received(answer.trace)
    t.match(JSON.stringify(sent), '**kettle** may be returned')
    t.notMatch(JSON.stringify(sent), 'Flour')
  }),
  statement('Web search is on where the agent has it, also in whole answers', async (t, world) => {
    const { agent } = await newAgent(world, { model: 'able-chat-completions', web_search: true })
    const streamed = await ask(agent, {}, true)
    t.equal(streamed.status, 200)
    t.same((await world.received(streamed.trace)).tools, [{ type: 'web_search' }])
    const whole = await ask(agent)
    t.match(whole, { status: 200, body: { object: 'chat.completion' } })
    t.same((await world.received(whole.trace)).tools, [{ type: 'web_search' }])
    const without = await newAgent(world, { model: 'able-chat-completions' })
    t.notOk('tools' in (await world.received((await ask(without.agent)).trace)))
  }),
  statement('Image generation is on where the agent has it', async (t, world) => {
    const { agent } = await newAgent(world, { model: 'able-chat-completions', image_generation: true })
    const answer = await ask(agent, {}, true)
    t.same((await world.received(answer.trace)).tools, [{ type: 'image_generation' }])
  }),
  statement('Images go to a model that sees, and are 400 model_no_vision for another', async (t, world) => {
    const messages = [user([{ type: 'image_url', image_url: { url: PNG_URI } }])]
    const seeing = await newAgent(world, { model: 'seeing' })
    t.equal((await ask(seeing.agent, { messages })).status, 200)
    const blind = await newAgent(world)
    t.match(await ask(blind.agent, { messages }), denied(400, 'model_no_vision'))
  }),
  statements(
    ['session_id', 'session-id', 'conversation_id', 'conversation-id'],
    (name) => `A header ${name} is taken`,
    async (t, world, name) => {
      const { agent } = await newAgent(world)
      const answer = await agent.call('chat-completions', 'any', { headers: { [name]: 'talk-1' } })
      t.equal(answer.status, 200)
    },
  ),
  statement("Calls are billed by tokens on the organization's account, a retry again", async (t, world) => {
    const { agent, reader } = await newAgent(world)
    const before = parseCredits((await reader.balance()).remaining)
    for (const _ of [1, 2]) await ask(agent)
    const rows = await world.service.logs(reader.key, (found) => found.length >= 2, '&scope=account')
    t.same(
      rows.map(({ cost }) => cost),
      [PLAIN_COST, PLAIN_COST],
    )
    await until('both are booked', async () => {
      return before - parseCredits((await reader.balance()).remaining) === 2n * parseCredits(PLAIN_COST)
    })
  }),
  statement('402: the spend cap of the key is reached', async (t, world) => {
    const { agent } = await newAgent(world, {}, '250')
    t.equal((await ask(agent)).status, 200)
    t.match(await ask(agent, { max_tokens: 900 }), denied(402, 'quota_exceeded'))
  }),
  statement('402: the balance of the organization is used up', async (t, world) => {
    const { agent } = await newAgent(world)
    const answer = await ask(agent, { max_tokens: 5_000_000 })
    t.match(answer, denied(402, 'quota_exceeded'))
  }),
  statement('403: the agent is unpublished or deleted', async (t, world) => {
    const { agent, id } = await newAgent(world)
    const { database } = world.service
    t.equal((await ask(agent)).status, 200)
    for (const state of ['draft', 'deleted'] as const) {
      await database.agents.setState(id, state)
      await until('it is refused', async () => (await ask(agent)).status === 403)
      t.match(await ask(agent), denied(403, 'permission_denied'), state)
    }
  }),
  statement('403: the organization does not allow the model of the agent', async (t, world) => {
    const { agent } = await newAgent(world)
    await world.service.database.accounts.setModels(agent.accountId, ['seeing'])
    await until('it is refused', async () => (await ask(agent)).status === 403)
    t.match(await ask(agent), denied(403, 'permission_denied'))
  }),
  statement('403: a base of the agent is not readable', async (t, world) => {
    const { database } = world.service
    const lender = await newOrganization(database, 'Lender')
    const { id } = await database.knowledge.createBase(lender, 'Closed')
    const { agent } = await newAgent(world, { knowledge: [id] })
    t.match(await ask(agent), denied(403, 'permission_denied'))
  }),
  statement('400: a malformed body', async (t, world) => {
    const { agent } = await newAgent(world)
    t.match(await ask(agent, { messages: 'hi' }), denied(400, 'invalid_request'))
  }),
  statement('401: a revoked key, at once and for ever', async (t, world) => {
    const { agent } = await newAgent(world)
    t.equal((await ask(agent)).status, 200)
    await world.service.database.keys.revoke(agent.keyId)
    await until('it is refused', async () => (await ask(agent)).status === 401)
    t.match(await ask(agent), denied(401, 'invalid_api_key'))
  }),
])
