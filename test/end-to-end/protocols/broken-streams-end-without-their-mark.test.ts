/**
 * An upstream that fails in mid-stream. Nothing is added to what it sent, except with built-in tools. Its own error
 * events pass natively, and end a translated stream.
 * See docs/failure-modes.md, "Streams", row 38; docs/api-rules.md, "Streams".
 */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { post, readUntil, rowsOf, traceOf, upstreamRequest } from '../support.ts'
import {
  ask,
  CHAT_PROTOCOLS,
  type ChatProtocol,
  configOf,
  postUntilBroken,
  simulated,
  WAYS,
} from './support.ts'

/** Behind the first words of every stream, inside an event. */
const BROKEN_AT = 6001
const TOKENS_BEFORE_ERROR = 4
const FAULTS = {
  resets: `fault=reset:${BROKEN_AT}`,
  cuts: `fault=cut:${BROKEN_AT}`,
  truncates: `fault=truncate:${BROKEN_AT}`,
  errs: `fault=stream_error:${TOKENS_BEFORE_ERROR}`,
}
const TOKENS = 400

/** What only a complete answer has. */
const MARKS: Readonly<Record<ChatProtocol, RegExp>> = {
  'chat-completions': /\[DONE\]|"finish_reason":"/,
  messages: /message_stop|"stop_reason":"/,
  'generate-content': /"finishReason"/,
  responses: /response\.(completed|incomplete|failed)"/,
}

t.test('a stream that breaks', async (t) => {
  const channels = CHAT_PROTOCOLS.map((protocol) =>
    simulated(
      protocol,
      Object.fromEntries(
        Object.entries(FAULTS).map(([name, fault]) => [
          `${protocol}.${name}`,
          `sim-${name}@tokens=${TOKENS},${fault}`,
        ]),
      ),
      { tools: ['web_search'] },
    ),
  )
  const ids = channels.flatMap(({ models }) => Object.keys(models))
  const capabilities = { web_search: true }
  const service = await borrowService(
    t,
    configOf(Object.fromEntries(ids.map((id) => [id, { capabilities }])), channels),
  )
  const { key } = await service.newKey('10000000')

  const broken: string[] = []

  for (const [client, upstream] of WAYS)
    await t.test(client === upstream ? client : `${client} to ${upstream}`, async (t) => {
      for (const fault of Object.keys(FAULTS)) {
        const response = await ask(service, key, client, `${upstream}.${fault}`, {
          stream: true,
          send: postUntilBroken,
        })
        const bytes = Buffer.from(await response.arrayBuffer())
        const text = bytes.toString()
        t.equal(response.status, 200)
        t.notMatch(text, MARKS[client], fault)
        const passes = fault === 'errs' && client === upstream
        if (passes) t.match(text, /simulated/, "the upstream's own error event passes")
        else t.notMatch(text, /"error":\{|event: error/, 'nothing is said of it')
        if (fault !== 'errs' && client === upstream) t.equal(bytes.length, BROKEN_AT, fault)
        broken.push(traceOf(response))
      }
    })

  await t.test('in one JSON array is not closed', async (t) => {
    for (const fault of ['resets', 'truncates']) {
      const path = `/v1beta/models/generate-content.${fault}:streamGenerateContent`
      const response = await post(service, key, path, { contents: [{ parts: [{ text: 'hi' }] }] })
      const text = (await readUntil(response)).toString()
      t.match(text, /^\[\{/)
      t.throws(() => JSON.parse(text))
      broken.push(traceOf(response))
    }
  })

  await t.test('with built-in tools says so, and then ends with [DONE]', async (t) => {
    for (const upstream of ['chat-completions', 'messages', 'generate-content'] as const)
      for (const fault of Object.keys(FAULTS)) {
        const more = { tools: [{ type: 'web_search' }] }
        const response = await ask(service, key, 'chat-completions', `${upstream}.${fault}`, {
          stream: true,
          more,
        })
        const text = (await readUntil(response)).toString()
        const payloads = text
          .split('\n\n')
          .filter((event) => event.startsWith('data: '))
          .map((event) => event.slice('data: '.length))
        t.equal(payloads.at(-1), '[DONE]', `${upstream}, ${fault}`)
        t.match(JSON.parse(payloads.at(-2) ?? ''), {
          error: { message: String, type: 'api_error', code: 'upstream_error' },
        })
        t.notMatch(text, /"finish_reason":"/)
        t.match((await upstreamRequest(service, traceOf(response))).body, /search/i)
        broken.push(traceOf(response))
      }
  })

  await t.test('with function tools does not', async (t) => {
    const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }
    const more = { tools: [tool] }
    const response = await ask(service, key, 'chat-completions', 'chat-completions.truncates', {
      stream: true,
      more,
    })
    t.notMatch((await readUntil(response)).toString(), /"error"|\[DONE\]/)
  })

  await t.test('with built-in tools of another protocol does not either', async (t) => {
    const tools: readonly (readonly [ChatProtocol, object])[] = [
      ['messages', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
      ['generate-content', { tools: [{ googleSearch: {} }] }],
      ['responses', { tools: [{ type: 'web_search' }] }],
    ]
    for (const [protocol, more] of tools) {
      const response = await ask(service, key, protocol, `${protocol}.truncates`, {
        stream: true,
        more,
        send: postUntilBroken,
      })
      t.equal(response.status, 200)
      const bytes = Buffer.from(await response.arrayBuffer())
      t.equal(bytes.length, BROKEN_AT)
      t.notMatch(bytes.toString(), /"error":\{|\[DONE\]/)
      broken.push(traceOf(response))
    }
  })

  await t.test('is billed for what went out, whether or not the upstream had told some of it', async (t) => {
    for (const row of await rowsOf(service, key, broken)) {
      t.match(row, { status: 'error', error_code: 'upstream_error', attempts_count: 1 })
      t.ok(row.output_tokens > 0 && row.output_tokens < TOKENS, `${row.output_tokens} tokens`)
      const tools = Number(row.server_tool_calls)
      t.equal(Number(row.cost), row.input_tokens + 2 * row.output_tokens + 5 * tools)
    }
  })
})
