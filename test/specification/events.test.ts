/** "Events": what the streams of each protocol hold, in which order, and how they end. */
import t from 'tap'
import { TEXT, WORDS } from '../end-to-end/money/upstream-answers.ts'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../end-to-end/protocols/support.ts'
import { until } from '../support/eventually.ts'
import { FIRST, SECOND } from './configuration.ts'
import { events, eventsThenCut } from './scripted-upstream.ts'
import { section, statement, statements } from './statement.ts'
import { simulate, type World } from './world.ts'

const REPORTED_OUTPUT = 40
const REPORTED_PROMPT = 100
/** Longer than a gateway waits that keeps streams alive. */
const SILENCE_MS = 7_000

/** Payloads of the complete events of a stream, and their names where they have one. */
function eventsOf(text: string): { name: string | null; data: string }[] {
  return text
    .replaceAll('\r\n', '\n')
    .split('\n\n')
    .filter((event) => event.includes('data: '))
    .map((event) => ({
      name: /^event: (.*)$/m.exec(event)?.[1] ?? null,
      data: /^data: (.*)$/m.exec(event)?.[1] ?? '',
    }))
}
const dataOf = (text: string) =>
  eventsOf(text)
    .filter(({ data }) => data !== '[DONE]')
    .map(({ data }) => JSON.parse(data))

/** A stream that ends as it should. In responses the event that reports usage is the last. */
const finished = (protocol: ChatProtocol): string => {
  const { opening, said, report, ending } = WORDS[protocol]
  return opening + said + report(REPORTED_OUTPUT) + (protocol === 'responses' ? '' : ending)
}

/** So that no chunk is withheld. */
const WITH_USAGE: Readonly<Record<ChatProtocol, object>> = {
  'chat-completions': { stream_options: { include_usage: true } },
  messages: {},
  'generate-content': {},
  responses: {},
}

/** What a client that closes its connection at the last event waits for. */
const LAST_EVENT: Readonly<Record<ChatProtocol, RegExp>> = {
  'chat-completions': /data: \[DONE\]\n\n$/,
  messages: /message_stop[^\n]*\n\n$/,
  'generate-content': /"finishReason":"STOP"[^\n]*\n\n$/,
  responses: /response\.completed[^\n]*\n\n$/,
}

const chatError = (code: string) =>
  `data: ${JSON.stringify({ error: { message: 'No.', type: 'invalid_request_error', param: null, code } })}\n\n`
const messagesError = (type: string) =>
  `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type, message: 'No.' } })}\n\n`
const generateError = (code: number, status: string) =>
  `data: ${JSON.stringify({ error: { code, message: 'No.', status } })}\n\n`
const responsesError = (code: string) =>
  `event: error\ndata: ${JSON.stringify({ type: 'error', code, message: 'No.', param: null, sequence_number: 0 })}\n\n`

const CAUSED_CODES = [
  'context_length_exceeded',
  'invalid_prompt',
  'content_filter',
  'content_policy_violation',
  'string_above_max_length',
  'invalid_image',
  'invalid_image_format',
  'unsupported_parameter',
  'unsupported_value',
]
/** Errors that the request itself caused: what they are called, and the event. */
const CAUSED: Readonly<Record<ChatProtocol, readonly (readonly [name: string, event: string])[]>> = {
  'chat-completions': CAUSED_CODES.map((code) => [code, chatError(code)]),
  messages: ['invalid_request_error', 'request_too_large'].map((type) => [type, messagesError(type)]),
  'generate-content': [
    ['INVALID_ARGUMENT', generateError(400, 'INVALID_ARGUMENT')],
    ['a blocked prompt', `data: ${JSON.stringify({ promptFeedback: { blockReason: 'SAFETY' } })}\n\n`],
  ],
  responses: CAUSED_CODES.map((code) => [code, responsesError(code)]),
}
/** One that it did not. */
const FAILED: Readonly<Record<ChatProtocol, string>> = {
  'chat-completions': chatError('server_error'),
  messages: messagesError('overloaded_error'),
  'generate-content': generateError(503, 'UNAVAILABLE'),
  responses: responsesError('server_error'),
}

/** A call whose two channels answer so, and the channels that were asked. */
async function failover(world: World, protocol: ChatProtocol, first: string, second: string) {
  const client = await world.client()
  const { word, received } = world.upstream.script((response, { path, text }) =>
    events(path.startsWith(FIRST) ? first : second)(response, { path, text, headers: {} }),
  )
  const answer = await client.stream(protocol, `pair-${protocol}`, { say: word })
  const asked = received.map(({ path }) => (path.startsWith(SECOND) ? SECOND : FIRST))
  return { client, answer, asked }
}

await section(t, 'Events', [
  statement(
    'Each data line of a chat-completions stream is one JSON chunk, and the last is [DONE]',
    async (t, world) => {
      const client = await world.client()
      const answer = await client.call('chat-completions', 'plain-chat-completions', { stream: true })
      t.match(answer.headers.get('content-type'), /^text\/event-stream/)
      const all = eventsOf(answer.text)
      t.equal(all.at(-1)?.data, '[DONE]')
      for (const chunk of dataOf(answer.text)) t.match(chunk, { id: String, object: 'chat.completion.chunk' })
      t.ok(dataOf(answer.text).some(({ choices }) => choices[0]?.finish_reason))
    },
  ),
  statement(
    'With include_usage the trailing chunk of a chat-completions stream has the token counts',
    async (t, world) => {
      const client = await world.client()
      const more = { stream_options: { include_usage: true } }
      const answer = await client.call('chat-completions', 'plain-chat-completions', { stream: true, more })
      const last = dataOf(answer.text).at(-1)
      t.match(last.usage, { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 })
      const plain = await client.call('chat-completions', 'plain-chat-completions', { stream: true })
      t.notOk(
        dataOf(plain.text).some(({ usage }) => usage),
        'and without it no chunk has',
      )
    },
  ),
  statement(
    'A responses stream has its events in order, under a rising sequence_number',
    async (t, world) => {
      const client = await world.client()
      const { text } = await client.call('responses', 'plain-responses', { stream: true })
      const all = dataOf(text)
      const types = all.map(({ type }) => type)
      const first = (type: string) => types.indexOf(type)
      const sequence = [
        'response.created',
        'response.in_progress',
        'response.output_item.added',
        'response.output_text.delta',
        'response.output_text.done',
        'response.output_item.done',
        'response.completed',
      ]
      t.same(
        [...sequence].sort((a, b) => first(a) - first(b)),
        sequence,
      )
      for (const type of sequence) t.ok(types.includes(type), type)
      t.equal(types.at(-1), 'response.completed')
      for (const [index, { sequence_number }] of all.entries())
        if (index > 0) t.ok(sequence_number > all[index - 1].sequence_number)
      for (const { name, data } of eventsOf(text)) t.equal(name, JSON.parse(data).type)
      t.equal(all[0].response.usage ?? null, null)
      t.match(all.at(-1).response.usage, { input_tokens: 10, output_tokens: 4 })
      t.ok(all.every(({ type, delta }) => type !== 'response.output_text.delta' || typeof delta === 'string'))
    },
  ),
  statement('A messages stream goes from message_start to message_stop', async (t, world) => {
    const client = await world.client()
    const { text } = await client.call('messages', 'plain-messages', { stream: true })
    const names = eventsOf(text).map(({ name }) => name)
    t.equal(names[0], 'message_start')
    t.equal(names.at(-1), 'message_stop')
    for (const name of ['content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta'])
      t.ok(names.includes(name), name)
  }),
  statement('The last chunk of a generate-content stream has a finishReason', async (t, world) => {
    const client = await world.client()
    const { text } = await client.call('generate-content', 'plain-generate-content', { stream: true })
    t.match(dataOf(text).at(-1), { candidates: [{ finishReason: String }] })
  }),
  statements(
    CHAT_PROTOCOLS,
    (protocol) =>
      `A stream that the upstream breaks off ends so: nothing is added, and HTTP's last chunk is missing (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const { opening, said } = WORDS[protocol]
      const { word } = world.upstream.script(eventsThenCut(opening + said))
      const answer = await client.stream(protocol, `script-${protocol}`, { say: word })
      t.equal(answer.status, 200)
      t.equal(answer.text, opening + said)
      t.equal(answer.isWhole, false)
      t.match(await client.row(answer), { status: 'error' })
    },
  ),
  statements(
    ['messages', 'generate-content'] as const,
    (upstream) =>
      `A translated stream that the upstream breaks off has no [DONE], no finish_reason, no error (${upstream})`,
    async (t, world, upstream) => {
      const client = await world.client()
      const { opening, said } = WORDS[upstream]
      const { word } = world.upstream.script(eventsThenCut(opening + said))
      const answer = await client.stream('chat-completions', `script-${upstream}`, { say: word })
      t.match(answer.text, TEXT.slice(-5))
      t.notMatch(answer.text, /\[DONE\]|"finish_reason":"|"error"/)
      t.equal(answer.isWhole, false)
    },
  ),
  statement('On the built-in tool path a broken stream gets an error chunk and [DONE]', async (t, world) => {
    const client = await world.client()
    const { opening, said } = WORDS['chat-completions']
    const { word } = world.upstream.script(eventsThenCut(opening + said))
    const more = { tools: [{ type: 'web_search' }] }
    const answer = await client.stream('chat-completions', 'script-chat-completions', { say: word, more })
    t.ok(answer.text.startsWith(opening + said))
    t.equal(eventsOf(answer.text).at(-1)?.data, '[DONE]')
    t.match(dataOf(answer.text).at(-1), { error: { type: 'api_error', code: 'upstream_error' } })
  }),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `An error event of the upstream in mid-stream is forwarded unchanged (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const { opening, said } = WORDS[protocol]
      const text = opening + said + FAILED[protocol]
      const { word } = world.upstream.script(events(text))
      const answer = await client.stream(protocol, `script-${protocol}`, { say: word })
      t.equal(answer.text, text)
      t.match(await client.row(answer), { status: 'error' })
    },
  ),
  statements(
    CHAT_PROTOCOLS.flatMap((protocol) =>
      CAUSED[protocol].map(([name, error]) => ({ protocol, name, error })),
    ),
    ({ protocol, name }) =>
      `A first event that says the request is at fault is forwarded unchanged, and no other channel tried (${protocol}: ${name})`,
    async (t, world, { protocol, error }) => {
      const { answer, asked } = await failover(world, protocol, error, finished(protocol))
      t.same(asked, [FIRST])
      t.same([answer.status, answer.text], [200, error])
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `Any other error as first event is tried on another channel (${protocol})`,
    async (t, world, protocol) => {
      const { answer, asked } = await failover(world, protocol, FAILED[protocol], finished(protocol))
      t.same(asked, [FIRST, SECOND])
      t.equal(answer.status, 200)
      t.notMatch(answer.text, 'No.')
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) =>
      `With no channel left the last error event is forwarded unchanged, and is no 502 (${protocol})`,
    async (t, world, protocol) => {
      const last = FAILED[protocol].replace('No.', 'Neither.')
      const { answer, asked, client } = await failover(world, protocol, FAILED[protocol], last)
      t.same(asked, [FIRST, SECOND])
      t.same([answer.status, answer.text], [200, last])
      t.match(await client.row(answer), { status: 'error', cost: '0' })
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `What is no answer at all is 502 (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      for (const stream of [false, true]) {
        const { word } = world.upstream.script((response) =>
          response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome</html>'),
        )
        t.equal((await client.call(protocol, `script-${protocol}`, { stream, say: word })).status, 502)
      }
    },
  ),
  statements(
    CHAT_PROTOCOLS.flatMap((protocol) => [0, 5, 40, 400].map((late) => ({ protocol, late }))),
    ({ protocol, late }) =>
      `A stream whose last event was sent is a success though client and upstream part ways: ${late} ms late (${protocol})`,
    async (t, world, { protocol, late }) => {
      const client = await world.client()
      const { word, received } = world.upstream.script((response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(finished(protocol))
        setTimeout(() => response.end(), late)
      })
      const options = { say: word, more: WITH_USAGE[protocol], headers: { 'idempotency-key': 'finished' } }
      const leave = (text: string) => LAST_EVENT[protocol].test(text)
      const answer = await client.stream(protocol, `script-${protocol}`, { ...options, leave })
      t.equal(answer.text, finished(protocol))
      t.match(await client.row(answer), {
        status: 'success',
        input_tokens: REPORTED_PROMPT,
        output_tokens: REPORTED_OUTPUT,
        cost: '180',
      })
      const again = await client.stream(protocol, `script-${protocol}`, options)
      t.same([again.headers.get('idempotency-replayed'), again.text], ['true', answer.text])
      t.equal(received.length, 1)
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `Without a usage report the output is estimated from what was said (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const { opening, said, ending } = WORDS[protocol]
      const { word } = world.upstream.script(events(opening + said + ending))
      const answer = await client.stream(protocol, `script-${protocol}`, { say: word })
      const row = await client.row(answer)
      t.match(row, { status: 'success', output_tokens: 5 })
      t.equal(row.cost, String(row.input_tokens + 2 * row.output_tokens))
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `A broken stream is charged by the usage that was reported, or what was said (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const { opening, said } = WORDS[protocol]
      const { word } = world.upstream.script(eventsThenCut(opening + said))
      const row = await client.row(await client.stream(protocol, `script-${protocol}`, { say: word }))
      t.match(row, { status: 'error', output_tokens: 5 })
      t.equal(row.cost, String(row.input_tokens + 2 * row.output_tokens))
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) =>
      `A client that leaves ends the upstream call; the row is interrupted and bills what was sent (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const say = simulate('tokens=900,fault=hang:5000')
      const leave = (text: string) => text.length > 4000
      const answer = await client.stream(protocol, `plain-${protocol}`, { say, leave })
      await until('the upstream call has ended', async () => {
        const [call] = await world.upstreamCalls(answer.trace)
        return call?.state === 'client_closed'
      })
      const row = await client.row(answer)
      t.equal(row.status, 'interrupted')
      t.ok(row.output_tokens > 0 && row.output_tokens < 900, `${row.output_tokens} tokens`)
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) =>
      `A native stream that is silent for seconds gets no byte of the gateway's own (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const { word } = world.upstream.script((response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        setTimeout(() => response.end(finished(protocol)), SILENCE_MS)
      })
      const options = { say: word, more: WITH_USAGE[protocol] }
      const answer = await client.stream(protocol, `script-${protocol}`, options)
      t.equal(answer.text, finished(protocol))
    },
  ),
])
