/** "Cross-protocol behaviour": bytes that pass unchanged, what is translated, and which headers say so. */
import t from 'tap'
import { WORDS } from '../end-to-end/money/upstream-answers.ts'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../end-to-end/protocols/support.ts'
import { events, json } from './scripted-upstream.ts'
import { section, statement, statements } from './statement.ts'
import { callOf, simulate } from './world.ts'

const TRANSLATED = ['messages', 'generate-content'] as const
const TRANSLATION = 'x-protocol-translation'
const WARNING = 'x-protocol-warning'
const CHANGES = 'x-protocol-changes'

/** A request whose bytes no JSON writer would choose, with its own output limit. */
const ODD: Readonly<Record<ChatProtocol, (word: string) => string>> = {
  'chat-completions': (word) =>
    ` {"max_tokens":7,\n"messages" : [{"role":"user","content":"${word} \\u00e9"}],"x":1.50, "model":"script-chat-completions"}\n`,
  messages: (word) =>
    ` {"max_tokens":7,\n"messages" : [{"role":"user","content":"${word} \\u00e9"}],"x":1.50, "model":"script-messages"}\n`,
  'generate-content': (word) =>
    ` {"generationConfig":{"maxOutputTokens":7},\n"contents" : [{"role":"user","parts":[{"text":"${word} \\u00e9"}]}],"x":1.50}\n`,
  responses: (word) =>
    ` {"max_output_tokens":17,\n"input" : [{"role":"user","content":"${word} \\u00e9"}],"x":1.50, "model":"script-responses"}\n`,
}

/** A whole answer, spaced as no JSON writer would. */
const oddAnswer = (protocol: ChatProtocol) =>
  `\n ${JSON.stringify(WORDS[protocol].whole(WORDS[protocol].usage(40), { odd: 1 }), null, 3)} `

/** A stream with comments, spaces and fields of the upstream's own. */
const oddStream = (protocol: ChatProtocol) => {
  const { opening, said, report, ending } = WORDS[protocol]
  return [': hello\n\n', opening, 'id:  7\nretry: 3\n', said, ':\n\n', report(40), ending].join('')
}

await section(t, 'Cross-protocol behaviour', [
  statements(
    CHAT_PROTOCOLS,
    (protocol) =>
      `Natively the request goes upstream as it came, but for the name of the model (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const { word, received } = world.upstream.script(json(400, {}))
      const body = ODD[protocol](word)
      const { path } = callOf(protocol, `script-${protocol}`, {})
      await client.post(path, body)
      t.equal(received[0]?.text, body.replace(`"script-${protocol}"`, '"scripted"'))
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) =>
      `Natively a whole answer comes back byte for byte, and no header speaks of translation (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const text = oddAnswer(protocol)
      const { word } = world.upstream.script((response) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(text),
      )
      const answer = await client.call(protocol, `script-${protocol}`, { say: word })
      t.equal(answer.text, text)
      for (const name of [TRANSLATION, WARNING, CHANGES]) t.equal(answer.headers.get(name), null, name)
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `Natively a stream comes back byte for byte (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const text = oddStream(protocol)
      const { word } = world.upstream.script(events(text))
      const more = protocol === 'chat-completions' ? { stream_options: { include_usage: true } } : {}
      const answer = await client.call(protocol, `script-${protocol}`, { stream: true, say: word, more })
      t.equal(answer.text, text)
      t.equal(answer.headers.get(TRANSLATION), null)
    },
  ),
  statements(
    TRANSLATED.flatMap((upstream) => [false, true].map((stream) => ({ upstream, stream }))),
    ({ upstream, stream }) =>
      `A chat-completions call is translated to ${upstream}, ${stream ? 'streamed' : 'whole'}, and a header says so`,
    async (t, world, { upstream, stream }) => {
      const client = await world.client()
      const answer = await client.call('chat-completions', `plain-${upstream}`, { stream })
      t.equal(answer.status, 200)
      t.equal(answer.headers.get(TRANSLATION), `chat-completions to ${upstream}`)
      t.equal(answer.headers.get(WARNING), null, 'nothing was left out')
      if (stream) t.match(answer.text, /"finish_reason":"(stop|length)"[\s\S]*data: \[DONE\]\n\n$/)
      else t.match(answer.body, { object: 'chat.completion', choices: [{ message: { content: String } }] })
      t.match(
        (await world.upstreamCalls(answer.trace))[0]?.path,
        upstream === 'messages' ? '/v1/messages' : 'enerateContent',
      )
    },
  ),
  statement(
    'The names of fields that were left out are in X-Protocol-Warning, joined by a semicolon and a space',
    async (t, world) => {
      const client = await world.client()
      const more = { response_format: { type: 'json_object' }, n: 2, seed: 7 }
      const answer = await client.call('chat-completions', 'plain-messages', { more })
      t.equal(answer.status, 200)
      const names = answer.headers.get(WARNING)?.split('; ') ?? []
      t.same(names.sort(), ['n', 'response_format', 'seed'])
    },
  ),
  statement('The image tool is left out of a translated call, and named', async (t, world) => {
    const client = await world.client()
    const more = { tools: [{ type: 'image_generation' }] }
    const answer = await client.call('chat-completions', 'able-messages', { stream: true, more })
    t.equal(answer.status, 200)
    t.match(answer.headers.get(WARNING), /image_generation/)
    t.notMatch(JSON.stringify((await world.received(answer.trace)).tools ?? []), /image_generation/)
  }),
  statement('What was changed and not left out is in X-Protocol-Changes', async (t, world) => {
    const client = await world.client()
    const answer = await client.call('chat-completions', 'plain-messages', { more: { temperature: 2, n: 2 } })
    t.equal(answer.headers.get(WARNING), 'n', 'names, and nothing else')
    t.match(answer.headers.get(CHANGES), /temperature/)
  }),
  statements(
    TRANSLATED,
    (upstream) =>
      `X-Protocol-Translation is there on a translated call that failed or was refused (${upstream})`,
    async (t, world, upstream) => {
      const client = await world.client()
      const header = `chat-completions to ${upstream}`
      const say = simulate('fault=status:418')
      const failed = await client.call('chat-completions', `faulty-${upstream}`, { say })
      t.same([failed.status, failed.headers.get(TRANSLATION)], [418, header])
      const dead = await client.call('chat-completions', `dead-${upstream}`)
      t.same([dead.status, dead.headers.get(TRANSLATION)], [502, header])
      const more = {
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'ftp://a/b' } }] }],
      }
      const refused = await client.call('chat-completions', `plain-${upstream}`, { more })
      t.same([refused.status, refused.headers.get(TRANSLATION)], [400, header])
    },
  ),
  statements(
    [
      ['messages', 'canto-small'],
      ['responses', 'ballad-small'],
    ] as const,
    ([protocol, model]) =>
      `Where the upstream converts, bytes pass unchanged and no header says so (${model} on ${protocol})`,
    async (t, world, [protocol, model]) => {
      const client = await world.client()
      const limit = protocol === 'messages' ? { max_tokens: 20 } : { max_output_tokens: 20 }
      const answer = await client.call(protocol, model, { more: { ...limit, cache_marker: { type: 'x' } } })
      t.not(answer.status, 503)
      for (const name of [TRANSLATION, WARNING]) t.equal(answer.headers.get(name), null, name)
      const received = await world.received(answer.trace)
      t.same(received.cache_marker, { type: 'x' })
      const { body } = callOf(protocol, model, {})
      const prompt = protocol === 'messages' ? 'messages' : 'input'
      t.same(received[prompt], body[prompt])
    },
  ),
  statements(
    [
      ['messages', 'plain-chat-completions'],
      ['messages', 'plain-responses'],
      ['generate-content', 'plain-chat-completions'],
      ['generate-content', 'plain-messages'],
      ['responses', 'plain-chat-completions'],
      ['responses', 'plain-generate-content'],
      ['chat-completions', 'plain-responses'],
    ] as const,
    ([client, model]) => `A combination without a channel is 503 and not 404: ${client} to ${model}`,
    async (t, world, [protocol, model]) => {
      const client = await world.client()
      for (const stream of [false, true]) {
        const { status, text } = await client.call(protocol, model, { stream })
        t.equal(status, 503)
        t.match(text, protocol === 'messages' ? 'overloaded_error' : /no_channel_available|UNAVAILABLE/)
      }
    },
  ),
])
