/** What every chat protocol of the simulated provider does alike. */
import { once } from 'node:events'
import { createParser } from 'eventsource-parser'
import t, { type Test } from 'tap'
import { type Prompt, writeScript } from '../../simulator/answers/script.ts'
import type { Frame } from '../../simulator/answers/sse.ts'
import { Ticker } from '../../simulator/answers/ticker.ts'
import { makeSeededRandom, tokensOfJson, tokensOfLiteral } from '../../simulator/answers/words.ts'
import type { CallStats } from '../../simulator/calls.ts'
import { type Dialect, jsonAnswer, SimulatedFailure } from '../../simulator/dialect.ts'
import { DIALECTS } from '../../simulator/dialects.ts'
import { startSimulator } from '../../simulator/server.ts'
import { until } from '../support/eventually.ts'
import {
  askChat,
  askGenerateContent,
  askMessages,
  askResponses,
  EVERY_DIALECT,
  eventsOf,
  type Json,
  jsonOf,
} from './dialects-support.ts'
import { readPng } from './media/probe.ts'
import {
  call,
  callsOf,
  chatBody,
  chatRequest,
  chunksOf,
  dataOf,
  lastCallThat,
  open,
  simulatorFor,
  textOf,
} from './support.ts'

/** The history of a call of `look`, whose result has directives, and the tool, in the fields of each dialect. */
function toolHistory(result: string): Readonly<Record<string, object>> {
  const parameters = { type: 'object', properties: { at: { type: 'string' } } }
  const described = { name: 'look', description: 'Looks.' }
  const said = { role: 'user', content: 'Hi' }
  const named = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }
  return {
    'chat-completions': {
      messages: [
        ...[said, { role: 'assistant', content: null, tool_calls: [named] }],
        { role: 'tool', tool_call_id: 'c1', content: result },
      ],
      tools: [{ type: 'function', function: { ...described, parameters } }],
    },
    messages: {
      messages: [
        ...[said, { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: {} }] }],
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: result }] },
      ],
      tools: [{ ...described, input_schema: parameters }],
    },
    'generate-content': {
      contents: [
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: result } } }] },
      ],
      tools: [{ functionDeclarations: [{ ...described, parameters }] }],
    },
    responses: {
      input: [
        ...[said, { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' }],
        { type: 'function_call_output', call_id: 'c1', output: result },
      ],
      tools: [{ type: 'function', ...described, parameters, strict: false }],
    },
  }
}

t.test('dialects alike', async (t) => {
  const STREAM = { stream: true }

  for (const [name, ask] of Object.entries(EVERY_DIALECT)) {
    t.test(`${name}: the same request gives the same bytes, from another simulator too`, async (t) => {
      const [first, second] = [await simulatorFor(t), await simulatorFor(t)]
      for (const options of [STREAM, {}]) {
        const answer = await ask(first.url, '@tokens=20,reasoning=3,reasoning_text', options)
        t.equal(answer.status, 200)
        t.equal(answer.complete, true)
        for (const { url } of [first, second])
          t.same((await ask(url, '@tokens=20,reasoning=3,reasoning_text', options)).body, answer.body)
      }
    })

    const fieldsAfter = (result: string) => toolHistory(result)[name.split(' ')[0]!]!

    t.test(`${name}: a result of a tool may say which tools are called next, with what`, async (t) => {
      const { url } = await simulatorFor(t)
      const calls = [
        ['look', { at: 'home' }],
        ['fly', {}],
      ]
      const directive = encodeURIComponent(JSON.stringify(calls))
      const { body, status } = await ask(url, '', {
        fields: fieldsAfter(`Well. [simulate: calls=${directive}]`),
      })
      t.equal(status, 200)
      t.match(body.toString(), /home/)
      t.notMatch(body.toString(), /fly/)
      const wrong = await ask(url, '', { fields: fieldsAfter('[simulate: calls=look]') })
      t.match(wrong.body.toString(), /takes a JSON array/)
    })

    t.test(`${name}: directives, pace and framing work as anywhere`, async (t) => {
      const { url } = await simulatorFor(t)
      const whole = await ask(url, '', STREAM)
      for (const directives of [
        '@ttft=5',
        '@pause=5',
        '@tps=100000',
        '@linger=5',
        '@split=7',
        '@split=50',
        '@tag=other',
      ])
        t.same((await ask(url, directives, STREAM)).body, whole.body, directives)
      const unlike = await ask(url, '', { ...STREAM, fields: { simulate: 'text=Hello' } })
      t.match(unlike.body.toString(), '"Hello"')
      const header = await ask(url, '', { ...STREAM, headers: { 'x-simulate': 'text=Header' } })
      t.match(header.body.toString(), '"Header"')
      t.match((await callsOf(url)).at(-1), { state: 'completed', output_tokens: 1, stream: true })
    })

    t.test(`${name}: faults strike at the byte`, async (t) => {
      const { url } = await simulatorFor(t)
      const whole = await ask(url, '', STREAM)
      for (const bytes of [0, 1, 100, 333]) {
        for (const fault of ['reset', 'truncate', 'cut']) {
          const answer = await ask(url, `@fault=${fault}:${bytes}`, STREAM)
          t.same(answer.body, whole.body.subarray(0, bytes), `${fault}:${bytes}`)
          t.equal(answer.complete, fault === 'truncate')
          t.equal(answer.ending, fault === 'reset' ? 'reset' : 'end')
        }
      }
      const garbage = await ask(url, '@fault=garbage', STREAM)
      t.equal(garbage.status, 0)
      t.ok(garbage.wire.length > 0)
      t.equal((await ask(url, '@fault=status:503', STREAM)).status, 503)
      const limited = await ask(url, '@fault=status:429', STREAM)
      t.match(limited.head, /retry-after: 1/)
    })

    t.test(`${name}: an error event, and a mark that is left out, leave what was before it`, async (t) => {
      const { url } = await simulatorFor(t)
      const whole = await ask(url, '@tokens=4', STREAM)
      const failed = await ask(url, '@tokens=4,fault=stream_error:2', STREAM)
      t.equal(failed.complete, true)
      t.match(failed.body.toString(), 'The server had an error while it was answering: simulated.')
      const first = await ask(url, '@fault=stream_error', STREAM)
      t.equal(first.status, 200)
      t.match(first.body.toString(), 'simulated.')
      t.match(jsonOf(await ask(url, '@fault=stream_error')), { error: { message: String } })
      const unmarked = await ask(url, '@tokens=4,fault=no_done', STREAM)
      t.ok(unmarked.body.length < whole.body.length)
      t.match((await callsOf(url)).at(-1), { state: 'faulted', output_tokens: 4 })
    })

    t.test(`${name}: reasoning and text count in the record, shown or hidden`, async (t) => {
      const { url } = await simulatorFor(t)
      await ask(url, '@tokens=9,reasoning=4,reasoning_text', STREAM)
      t.match((await callsOf(url)).at(-1), { output_tokens: 13 })
      await ask(url, '@tokens=9,reasoning=4')
      t.match((await callsOf(url)).at(-1), { output_tokens: 13 })
    })

    t.test(`${name}: a bad key is refused, and a directive that is none`, async (t) => {
      const { url } = await simulatorFor(t)
      const bad = 'sim-bad-key'
      const headers = { authorization: `Bearer ${bad}`, 'x-api-key': bad, 'x-goog-api-key': bad }
      const refused = await ask(url, '', { headers })
      t.equal(refused.status, name.startsWith('generate-content') ? 400 : 401)
      t.match(jsonOf(refused), { error: { message: /key/i } })
      const unknown = await ask(url, '@speed=1')
      t.equal(unknown.status, 400)
      t.match(jsonOf(unknown), { error: { message: /"speed"/ } })
    })
  }
})

t.test('dialect registry', async (t) => {
  /** A dialect with a model in the path, named events and an error shape of its own. */
  const parrot: Dialect = {
    name: 'parrot',
    endpoints: [
      {
        method: 'POST',
        path: /^\/parrot\/([^/]+)\/speak$/,
        open: (request) => {
          if (request.body.length === 0) throw new SimulatedFailure(400, 'invalid_request', 'Say something.')
          return {
            ...{ model: request.path[1] ?? null, stream: request.query.has('stream') },
            directives: [request.headers['x-parrot']],
            answer: (directives) => {
              const tokens = Array.from({ length: directives.tokens ?? 2 }, () => request.body.toString())
              const headers = { 'content-type': 'text/event-stream' }
              if (request.query.has('stream')) return { kind: 'streamed', headers, frames: squawks(tokens) }
              return { ...jsonAnswer(201, { tokens }), tokens: tokens.length }
            },
          }
        },
      },
    ],
    failure: (failure) => jsonAnswer(failure.status, { squawk: failure.message }),
    failureFrame: (failure) => ({ event: 'squawk', data: failure.message, tokens: 0 }),
  }

  function* squawks(tokens: readonly string[]): Iterator<Frame, void> {
    for (const token of tokens) yield { event: 'word', data: token, tokens: 1 }
    yield { event: 'silence', data: '.', tokens: 0, terminator: true }
  }

  async function withParrot(t: { teardown(task: () => Promise<void>): void }) {
    const simulator = await startSimulator({ host: '127.0.0.1', port: 0, dialects: [...DIALECTS, parrot] })
    t.teardown(() => simulator.close())
    const speak = (path: string, body: string, headers: Record<string, string> = {}) =>
      fetch(`${simulator.url}/parrot/${path}`, { method: 'POST', body, headers })
    return { ...simulator, speak }
  }

  t.test('a dialect that is added is spoken beside the others', async (t) => {
    const { url, speak } = await withParrot(t)
    const whole = await speak('grey/speak', 'hello')
    t.equal(whole.status, 201)
    t.same(await whole.json(), { tokens: ['hello', 'hello'] })
    t.equal((await call(url, chatBody('sim'))).status, 200)
  })

  t.test('it has pace, framing, faults and records without a line of its own', async (t) => {
    const { url, speak } = await withParrot(t)
    const say = async (directives: string) => {
      const response = await speak('grey/speak?stream', 'hi', { 'x-parrot': directives })
      return response.text()
    }
    const words = 'event: word\ndata: hi\n\nevent: word\ndata: hi\n\n'
    t.equal(await say('tps=1000'), `${words}event: silence\ndata: .\n\n`)
    t.equal(await say('fault=no_done'), words)
    t.equal(await say('fault=truncate:11'), 'event: word')
    t.equal(
      await say('tokens=1,sse=crlf+nospace'),
      'event:word\r\ndata:hi\r\n\r\nevent:silence\r\ndata:.\r\n\r\n',
    )
    t.match(await say('fault=stream_error:1'), /^event: word\ndata: hi\n\nevent: squawk\ndata: The server/)
    const calls = (await (await fetch(`${url}/simulator/calls`)).json()) as unknown[]
    t.match(calls.at(-1), { model: 'grey', stream: true, state: 'faulted', output_tokens: 1 })
  })

  t.test('its failures have its own shape', async (t) => {
    const { speak } = await withParrot(t)
    const refusals: [Response, number, RegExp][] = [
      [await speak('grey/speak', ''), 400, /Say something/],
      [await speak('grey/speak', 'hi', { 'x-parrot': 'speed=1' }), 400, /"speed"/],
      [await speak('grey/speak', 'hi', { 'x-simulate': 'fault=status:503' }), 503, /simulated/],
    ]
    for (const [response, status, squawk] of refusals) {
      t.equal(response.status, status)
      t.match(await response.json(), { squawk })
    }
  })
})

t.test('built in tools', async (t) => {
  const { url } = await simulatorFor(t)

  const SEARCH = { tools: [{ type: 'web_search' }] }
  const DRAW = { tools: [{ type: 'image_generation' }] }
  const SOURCE_URL = /^https:\/\/example\.com\//
  const askGenerate = askGenerateContent('?alt=sse')

  t.test('chat-completions: a search is cited and counted, streamed too', async (t) => {
    const cited = {
      type: 'url_citation',
      url_citation: { start_index: 0, end_index: Number, url: SOURCE_URL },
    }
    const whole = jsonOf(await askChat(url, '@tokens=3', { fields: SEARCH }))
    t.match(whole.choices, [{ message: { content: /\S/, annotations: [cited, cited] } }])
    t.match(whole.usage, { completion_tokens: 3, server_tool_use: { web_search_requests: 1 } })
    const fields = { ...SEARCH, stream_options: { include_usage: true } }
    const { body } = await askChat(url, '@tokens=3,searches=2', { fields, stream: true })
    const events = eventsOf(body).map(({ data }) => data)
    t.match(events.at(-4)?.choices, [
      { delta: { annotations: [cited, cited, cited, cited] }, finish_reason: null },
    ])
    t.match(events.at(-2)?.usage, { completion_tokens: 3, server_tool_use: { web_search_requests: 2 } })
    const options = { web_search_options: {} }
    t.match(jsonOf(await askChat(url, '', { fields: options })).usage, {
      server_tool_use: { web_search_requests: 1 },
    })
    t.notOk(
      'server_tool_use' in (jsonOf(await askChat(url, '@searches=2')).usage ?? {}),
      'no tool, no search',
    )
  })

  t.test('chat-completions: pictures are data URIs of valid PNGs', async (t) => {
    const whole = jsonOf(await askChat(url, '@tokens=1', { fields: DRAW }))
    const { body } = await askChat(url, '@tokens=1', { fields: DRAW, stream: true })
    const found = /data:image\/png;base64,([^"]*)"/.exec(body.toString())?.[1] ?? ''
    t.match(whole.choices, [
      { message: { images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${found}` } }] } },
    ])
    t.match(readPng(Buffer.from(found, 'base64')), { width: 8, height: 8 })
  })

  t.test('messages: a search is a server tool with its result, before the text that cites it', async (t) => {
    const fields = { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 3 }] }
    const whole = jsonOf(await askMessages(url, '@tokens=3', { fields }))
    const id = (whole.content as unknown as { id: string }[])[0]?.id
    t.match(whole.content, [
      { type: 'server_tool_use', id: /^srvtoolu_/, name: 'web_search', input: { query: /\S/ } },
      {
        type: 'web_search_tool_result',
        tool_use_id: id,
        content: [{ type: 'web_search_result', url: SOURCE_URL }],
      },
      { type: 'text', citations: [{ type: 'web_search_result_location', url: SOURCE_URL }] },
    ])
    t.match(whole.usage, { output_tokens: 3, server_tool_use: { web_search_requests: 1 } })
    const events = eventsOf((await askMessages(url, '@tokens=3', { fields, stream: true })).body)
    const query = events
      .filter(({ data }) => data.delta?.partial_json !== undefined)
      .map(({ data }) => data.delta?.partial_json)
    t.match(JSON.parse(query.join('')), { query: /\S/ })
    t.match(events.find(({ data }) => String(data.delta?.type) === 'citations_delta')?.data, {
      ...{ index: 2, delta: { citation: { url: SOURCE_URL } } },
    })
    t.match(events.at(-2)?.data.usage, { server_tool_use: { web_search_requests: 1 } })
  })

  t.test('generate-content: a search grounds the answer, an image modality draws', async (t) => {
    const grounded = { webSearchQueries: [/\S/], groundingChunks: [{ web: { uri: SOURCE_URL } }] }
    const searching = { tools: [{ googleSearch: {} }] }
    const whole = jsonOf(await askGenerate(url, '', { fields: searching }))
    t.match(whole.candidates, [{ groundingMetadata: grounded }])
    const events = eventsOf((await askGenerate(url, '', { fields: searching, stream: true })).body)
    t.match(events.at(-1)?.data.candidates, [{ groundingMetadata: grounded }])
    const drawing = { generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } }
    const drawn = jsonOf(await askGenerate(url, '', { fields: drawing })).candidates
    t.match(drawn, [
      { content: { parts: [{ inlineData: { mimeType: 'image/png', data: String } }, { text: /\S/ }] } },
    ])
  })

  t.test('responses: what the tools did are items, with events of their own', async (t) => {
    const fields = { tools: [...SEARCH.tools, ...DRAW.tools] }
    const whole = jsonOf(await askResponses(url, '@images=2', { fields }))
    const picture = { type: 'image_generation_call', id: /^ig_/, status: 'completed', result: /^iVBORw0KGgo/ }
    t.match(whole.output, [
      { type: 'web_search_call', id: /^ws_/, status: 'completed', action: { type: 'search', query: /\S/ } },
      picture,
      picture,
      { type: 'message', content: [{ annotations: [{ type: 'url_citation', url: SOURCE_URL }] }] },
    ])
    t.equal(whole.usage?.num_server_side_tools_used, 3)
    const [, first] = whole.output as unknown as { result: string }[]
    t.match(readPng(Buffer.from(first?.result ?? '', 'base64')), { width: 8 })
    const events = eventsOf((await askResponses(url, '', { fields, stream: true })).body)
    const told = events.map(({ event }) => event).filter((event) => /_call\.|annotation/.test(event ?? ''))
    t.same(told, [
      ...['in_progress', 'searching', 'completed'].map((state) => `response.web_search_call.${state}`),
      ...['in_progress', 'generating', 'partial_image', 'completed'].map(
        (state) => `response.image_generation_call.${state}`,
      ),
      ...['response.output_text.annotation.added', 'response.output_text.annotation.added'],
    ])
  })

  t.test('a tool is used unless the choice excludes it, and never changes the words', async (t) => {
    const searches = async (fields: object) => {
      const output = jsonOf(await askResponses(url, '', { fields })).output as unknown as Json[]
      return output.filter(({ type }) => String(type) === 'web_search_call').length
    }
    const named = { type: 'function', name: 'f' }
    const tools = [...SEARCH.tools, named]
    t.equal(await searches({ tools }), 1)
    t.equal(await searches({ tools, tool_choice: 'none' }), 0)
    t.equal(await searches({ tools, tool_choice: named }), 0)
    t.equal(await searches({ tools, tool_choice: 'required' }), 0)
    t.equal(await searches({ ...SEARCH, tool_choice: 'required' }), 1)
    t.equal(await searches({ tools, tool_choice: { type: 'web_search' } }), 1)
    const contentOf = async (fields: object) =>
      (jsonOf(await askChat(url, '', { fields })).choices as unknown as { message: Json }[])[0]?.message
        .content
    t.equal(await contentOf(SEARCH), await contentOf({}))
  })
})

t.test('log probabilities', async (t) => {
  // Log probabilities come where a request asks for them, in each dialect that has them.
  const { url } = await simulatorFor(t)

  const TOP = 3
  const SAYS = '@tokens=5'

  interface Token {
    readonly token: string
    readonly logprob: number
    readonly bytes: readonly number[]
    readonly top_logprobs: readonly Omit<Token, 'top_logprobs'>[]
  }

  const listOf = (value: unknown) => (value ?? []) as readonly Json[]
  const tokensOf = (value: unknown) => (value ?? []) as readonly Token[]

  /** The tokens are the text; each is the likeliest, and no more than certain together with the others. */
  function checkTokens(t: Test, tokens: readonly Token[], text: unknown): void {
    t.equal(tokens.map(({ token }) => token).join(''), text)
    for (const { token, logprob, bytes, top_logprobs: top } of tokens) {
      t.same(Buffer.from(bytes).toString(), token)
      t.equal(top.length, TOP)
      t.match(top[0], { token, logprob })
      t.equal(new Set(top.map((other) => other.token)).size, TOP)
      t.same(
        top.map((other) => other.logprob),
        top.map((other) => other.logprob).toSorted((a, b) => b - a),
      )
      t.ok(top.reduce((sum, other) => sum + Math.exp(other.logprob), 0) <= 1)
    }
  }

  t.test('chat-completions', async (t) => {
    const fields = { logprobs: true, top_logprobs: TOP, n: 2 }
    const whole = jsonOf(await askChat(url, SAYS, { fields }))
    for (const choice of listOf(whole.choices))
      checkTokens(t, tokensOf(choice.logprobs?.content), choice.message?.content)
    const streamed = eventsOf((await askChat(url, SAYS, { fields, stream: true })).body)
    const chunks = streamed.flatMap(({ data }) => listOf(data.choices))
    for (const [index, choice] of listOf(whole.choices).entries()) {
      const own = chunks.filter((chunk) => Number(chunk.index) === index)
      t.same(
        own.flatMap((chunk) => tokensOf(chunk.logprobs?.content)),
        choice.logprobs?.content,
      )
    }
    const alone = jsonOf(await askChat(url, SAYS, { fields: { logprobs: true } }))
    t.same(tokensOf(listOf(alone.choices)[0]?.logprobs?.content)[0]?.top_logprobs, [])
    const [unasked] = listOf(jsonOf(await askChat(url, SAYS)).choices)
    t.equal(unasked?.logprobs, null)
    t.equal(unasked?.message?.content, listOf(alone.choices)[0]?.message?.content, 'the words are the same')
    t.equal((await askChat(url, SAYS, { fields: { logprobs: true, top_logprobs: 21 } })).status, 400)
  })

  t.test('responses', async (t) => {
    const fields = { include: ['message.output_text.logprobs'], top_logprobs: TOP }
    const whole = jsonOf(await askResponses(url, SAYS, { fields }))
    const part = listOf(listOf(whole.output)[0]?.content)[0]
    checkTokens(t, tokensOf(part?.logprobs), part?.text)
    const events = eventsOf((await askResponses(url, SAYS, { fields, stream: true })).body)
    t.same(events.at(-1)?.data.response, whole)
    const deltas = events.filter(({ event }) => event === 'response.output_text.delta')
    t.same(
      deltas.map(({ data }) => tokensOf(data.logprobs).map(({ token }) => token)),
      deltas.map(({ data }) => [data.delta]),
    )
    const unasked = jsonOf(await askResponses(url, SAYS, { fields: { top_logprobs: TOP } }))
    t.same(listOf(listOf(unasked.output)[0]?.content)[0]?.logprobs, [])
    t.equal((await askResponses(url, SAYS, { fields: { top_logprobs: 21 } })).status, 400)
  })

  t.test('generate-content', async (t) => {
    const fields = { generationConfig: { responseLogprobs: true, logprobs: TOP } }
    const ask = askGenerateContent('?alt=sse')
    const [candidate] = listOf(jsonOf(await ask(url, SAYS, { fields })).candidates)
    const { chosenCandidates, topCandidates } = candidate?.logprobsResult ?? {}
    const chosen = listOf(chosenCandidates)
    t.equal(chosen.map(({ token }) => token).join(''), listOf(candidate?.content?.parts)[0]?.text)
    t.same(
      listOf(topCandidates).map(({ candidates }) => listOf(candidates).length),
      chosen.map(() => TOP),
    )
    const sum = chosen.reduce((total, { logProbability }) => total + Number(logProbability), 0)
    t.ok(Math.abs(Number(candidate?.avgLogprobs) - sum / chosen.length) < 1e-9)
    const events = eventsOf((await ask(url, SAYS, { fields, stream: true })).body)
    const sent = events.flatMap(({ data }) =>
      listOf(listOf(data.candidates)[0]?.logprobsResult?.chosenCandidates),
    )
    t.same(sent, chosen)
    const [unasked] = listOf(jsonOf(await ask(url, SAYS)).candidates)
    t.notOk('logprobsResult' in (unasked ?? {}))
  })
})

t.test('stop sequences end the text', async (t) => {
  // A text ends before the first stop sequence, in each dialect that has them, and usage counts what was said.
  const { url } = await simulatorFor(t)

  const headers = { 'x-simulate': `text=${encodeURIComponent('One,two, END three END four')}` }
  const SAID = 'One,two, '
  /** `One,two,` and the space before the sequence. */
  const TOKENS = 2

  const listOf = (value: unknown) => value as readonly Json[]
  const joined = (parts: readonly unknown[]) => parts.filter((part) => typeof part === 'string').join('')

  t.test('chat-completions', async (t) => {
    for (const stop of ['END', ['never', 'END']]) {
      const whole = jsonOf(await askChat(url, '', { headers, fields: { stop } }))
      const [choice] = listOf(whole.choices)
      t.match(choice, { message: { content: SAID }, finish_reason: 'stop' })
      t.equal(whole.usage?.completion_tokens, TOKENS)
      const { body } = await askChat(url, '', { headers, fields: { stop }, stream: true })
      const choices = eventsOf(body).flatMap(({ data }) => listOf(data.choices ?? []))
      t.equal(joined(choices.map(({ delta }) => delta?.content)), SAID)
      t.equal(choices.at(-1)?.finish_reason, 'stop')
      t.equal((await callsOf(url)).at(-1)?.output_tokens, TOKENS)
    }
  })

  t.test('messages: it names the sequence', async (t) => {
    const fields = { stop_sequences: ['never', 'END'] }
    const ending = { stop_reason: 'stop_sequence', stop_sequence: 'END' }
    const whole = jsonOf(await askMessages(url, '', { headers, fields }))
    t.match(whole, { ...ending, content: [{ text: SAID }], usage: { output_tokens: TOKENS } })
    const events = eventsOf((await askMessages(url, '', { headers, fields, stream: true })).body)
    t.equal(joined(events.map(({ data }) => data.delta?.text)), SAID)
    const end = events.findLast(({ event }) => event === 'message_delta')?.data
    t.match(end, { delta: ending, usage: { output_tokens: TOKENS } })
    const unsaid = jsonOf(await askMessages(url, '', { headers, fields: { stop_sequences: ['never'] } }))
    t.match(unsaid, { stop_reason: 'end_turn', stop_sequence: null })
  })

  t.test('generate-content', async (t) => {
    const fields = { generationConfig: { stopSequences: ['END'] } }
    const ask = askGenerateContent('?alt=sse')
    const whole = jsonOf(await ask(url, '', { headers, fields }))
    t.match(whole, {
      candidates: [{ content: { parts: [{ text: SAID }] }, finishReason: 'STOP' }],
      usageMetadata: { candidatesTokenCount: TOKENS },
    })
    const events = eventsOf((await ask(url, '', { headers, fields, stream: true })).body)
    const parts = events.flatMap(({ data }) => listOf(listOf(data.candidates)[0]?.content?.parts ?? []))
    t.equal(joined(parts.map(({ text }) => text)), SAID)
    t.match(events.at(-1)?.data, { usageMetadata: { candidatesTokenCount: TOKENS } })
  })

  const prompt: Prompt = {
    model: 'sim',
    asked: 'Hi',
    json: '"Hi"',
    seed: null,
    maxTokens: null,
    choices: 1,
    tools: [],
    builtIns: [],
    toolChoice: 'auto',
    format: 'text',
    thinking: 'off',
    stop: [],
    logprobs: null,
  }

  t.test('the sequence that is complete first ends the text, also where it stands first', (t) => {
    const said = (text: string, stop: readonly string[], maxTokens: number | null = null) => {
      const [choice] = writeScript({ ...prompt, stop, maxTokens }, { text }).choices
      return [choice?.text.join(''), choice?.stopSequence, choice?.finish, choice?.tokens]
    }
    t.same(said('a bc d', ['bc d', 'c']), ['a b', 'c', 'stop', 2])
    t.same(said('a bc d', ['c', 'bc']), ['a ', 'bc', 'stop', 2], 'of two that end together the longer')
    t.same(said('a bc d', ['a']), ['', 'a', 'stop', 0])
    t.same(said('a bc d', ['x']), ['a bc d', null, 'stop', 3])
    t.same(said('a bc d', ['d'], 2), ['a bc', null, 'length', 2], 'the limit came before it')
    t.end()
  })
})

t.test('determinism', async (t) => {
  const { url } = await simulatorFor(t)

  const STREAM = { stream: true }

  t.test('the same request gives the same bytes, from another simulator too', async (t) => {
    const [first, second] = [await simulatorFor(t), await simulatorFor(t)]
    const body = chatBody('sim-large@tokens=200,reasoning=3', { stream: true, n: 2 })
    const answer = await call(first.url, body)
    t.equal(answer.complete, true)
    t.same((await call(first.url, body)).body, answer.body)
    t.same((await call(second.url, body)).body, answer.body)
  })

  t.test('model, messages and seed change it; a seed alone decides', async (t) => {
    const say = async (model: string, extra: Record<string, unknown> = {}) =>
      textOf((await call(url, chatBody(model, { ...STREAM, ...extra }))).body)
    const messages = [{ role: 'user', content: 'Something else.' }]
    const said = [
      await say('sim'),
      await say('sim-b'),
      await say('sim', { messages }),
      await say('sim', { seed: 1 }),
    ]
    t.equal(new Set(said).size, said.length)
    t.equal(await say('sim@seed=9'), await say('sim-b@seed=9', { messages, seed: 4 }))
  })

  t.test('sixty-four words unless told otherwise, some of them of many bytes', async (t) => {
    const text = textOf((await call(url, chatBody('sim', STREAM))).body)
    t.equal(text.split(' ').length, 64)
    t.ok(Buffer.byteLength(text) > text.length)
    t.notMatch(text, '\uFFFD')
    t.equal(textOf((await call(url, chatBody('sim@tokens=0', STREAM))).body), '')
  })

  t.test('a literal text is said as it is', async (t) => {
    const text = '  Two\n\nparagraphs, 你好 👩‍🚀 "quoted" and a-very-long-word-without-blanks \\ '
    t.equal(textOf((await call(url, chatBody('sim', { ...STREAM, simulate: { text } }))).body), text)
    for (const part of [text, '', ' ', 'a']) {
      t.equal(tokensOfLiteral(part).join(''), part)
      t.equal(tokensOfJson(part).join(''), part)
    }
  })

  t.test('of the three places the header is strongest and the model weakest', async (t) => {
    const say = async (body: string, headers: Record<string, string> = {}) =>
      textOf((await call(url, body, headers)).body)
    const model = 'sim@text=model'
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'Say it [simulate: text=message]' }] }]
    const simulate = 'text=body'
    t.equal(await say(chatBody(model, STREAM)), 'model')
    t.equal(await say(chatBody(model, { ...STREAM, messages })), 'message')
    t.equal(await say(chatBody(model, { ...STREAM, messages, simulate })), 'body')
    const header = { 'x-simulate': 'text=header' }
    t.equal(await say(chatBody(model, { ...STREAM, messages, simulate }), header), 'header')
  })

  t.test('the generator is even enough and never reaches one', async (t) => {
    const random = makeSeededRandom(42)
    const drawn = Array.from({ length: 10_000 }, random)
    t.ok(drawn.every((number) => number >= 0 && number < 1))
    const mean = drawn.reduce((sum, number) => sum + number, 0) / drawn.length
    t.ok(Math.abs(mean - 0.5) < 0.02)
  })
})

t.test('concurrent streams', async (t) => {
  const { url } = await simulatorFor(t)

  const STREAMS = 150

  t.test('many paced streams at once: each gets its own text when others leave', async (t) => {
    const leaving = Array.from({ length: STREAMS }, () => {
      const socket = open(url, chatRequest(chatBody('sim@tps=5,tokens=100000', { stream: true })))
      socket.once('data', () => socket.destroy())
      return socket
    })
    const answers = await Promise.all(
      Array.from({ length: STREAMS }, (_, index) => {
        const text = `This is the text of stream ${index}, word by word.`
        return call(url, chatBody('sim', { stream: true, simulate: { text, tps: 100, tag: String(index) } }))
      }),
    )
    for (const [index, answer] of answers.entries()) {
      t.equal(textOf(answer.body), `This is the text of stream ${index}, word by word.`)
      t.equal(chunksOf(answer.body).at(-1)?.choices[0]?.finish_reason, 'stop')
    }
    for (const socket of leaving) socket.destroy()
    const stats = async () => (await (await fetch(`${url}/simulator/stats`)).json()) as CallStats
    await until('no call runs', async () => (await stats()).running === 0)
    t.same(await stats(), {
      ...{ calls: 2 * STREAMS, running: 0, completed: STREAMS, client_closed: STREAMS, faulted: 0 },
    })
  })

  t.test('requests sent ahead on one connection are answered in order', async (t) => {
    const bodies = ['first', 'second', 'third'].map((text) =>
      chatBody('sim', { simulate: { text, ttft: 5 } }),
    )
    const last = bodies.length - 1
    const requests = bodies.map((body, index) =>
      chatRequest(body, index === last ? { connection: 'close' } : {}),
    )
    const socket = open(url, requests.join(''))
    let received = ''
    socket.on('data', (chunk) => {
      received += String(chunk)
    })
    await new Promise((resolve) => socket.once('close', resolve))
    const said = [...received.matchAll(/"content":"(\w+)"/g)].map((match) => match[1])
    t.same(said, ['first', 'second', 'third'])
  })
})

t.test('framing', async (t) => {
  const { url } = await simulatorFor(t)

  const STREAM = { stream: true, stream_options: { include_usage: true } }

  /** What a reader of the standard makes of the bytes: each JSON value, and the end mark. */
  function eventsOf(body: Buffer): unknown[] {
    const events: unknown[] = []
    const parser = createParser({
      onEvent: ({ data }) => events.push(data === '[DONE]' ? data : JSON.parse(data)),
    })
    parser.feed(body.toString('utf8'))
    return events
  }

  t.test('every framing says the same events in other bytes', async (t) => {
    const plain = (await call(url, chatBody('sim', STREAM))).body
    const expected = eventsOf(plain)
    t.equal(expected.length, 64 + 4)
    const written = new Map<string, string>()
    for (const sse of ['crlf', 'comments', 'nospace', 'multiline', 'crlf+comments+nospace+multiline']) {
      const { body } = await call(url, chatBody(`sim@sse=${sse}`, STREAM))
      t.same(eventsOf(body), expected, sse)
      t.notSame(body, plain, sse)
      written.set(sse, body.toString('utf8'))
    }
    t.match(written.get('crlf'), /^data: \{.*\}\r\n\r\ndata: /)
    t.match(written.get('comments'), /^:\n: .*\n\ndata: /)
    t.match(written.get('nospace'), /^data:\{/)
    t.match(written.get('multiline'), /^data: \{\ndata: {2}"id"/)
  })

  t.test(
    'split=N sends N bytes at a time, each its own chunk, between bytes of a character too',
    async (t) => {
      const simulate = { text: '你好 🚲', split: 1 }
      const answer = await call(url, chatBody('sim', { stream: true, simulate }))
      const plain = await call(url, chatBody('sim', { stream: true, simulate: { text: simulate.text } }))
      t.same(answer.body, plain.body)
      t.equal(answer.wire.toString('latin1').match(/1\r\n.\r\n/gs)?.length, plain.body.length)
      const whole = await call(url, chatBody('sim@split=100'))
      t.equal(whole.complete, true)
      t.same(whole.body, (await call(url, chatBody('sim'))).body)
    },
  )

  t.test('one write a token', async (t) => {
    const chunksIn = (wire: Buffer) => wire.toString('latin1').match(/(^|\r\n)[0-9a-f]+\r\ndata/g)?.length
    const plain = await call(url, chatBody('sim@tokens=5', STREAM))
    t.equal(chunksIn(plain.wire), 5 + 4)
  })

  t.test('a paced answer begins while most of it is still to come, and stops with its caller', async (t) => {
    const socket = open(url, chatRequest(chatBody('sim@tps=20,tokens=100000', STREAM)))
    let received = ''
    while (dataOf(Buffer.from(received)).length < 4) received += String((await once(socket, 'data'))[0])
    t.match((await callsOf(url)).at(-1), { state: 'running', stream: true })
    socket.destroy()
    const closed = await lastCallThat(url, (record) => record.state !== 'running')
    t.equal(closed.state, 'client_closed')
    t.ok(closed.output_tokens >= 3 && closed.output_tokens < 100_000)
  })

  t.test('a caller who leaves before the first byte is noticed', async (t) => {
    for (const stream of [true, false]) {
      const socket = open(url, chatRequest(chatBody('sim@ttft=600000', { stream })))
      await lastCallThat(
        url,
        (record) => record.state === 'running' && record.stream === stream && record.model !== null,
      )
      socket.destroy()
      const closed = await lastCallThat(url, (record) => record.state !== 'running')
      t.match(closed, { state: 'client_closed', output_tokens: 0 })
    }
  })

  t.test('a caller who does not read stops the writing; reading on brings the rest', async (t) => {
    const tokens = 60_000
    const socket = open(
      url,
      chatRequest(chatBody(`sim@tokens=${tokens}`, { stream: true }), { connection: 'close' }),
    )
    socket.pause()
    let before = -1
    const stalled = await lastCallThat(url, (record) => {
      const same = record.output_tokens > 0 && record.output_tokens === before
      before = record.output_tokens
      return same
    })
    t.ok(stalled.output_tokens < tokens, 'it did not write everything')
    t.equal(stalled.state, 'running')
    let bytes = 0
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    socket.resume()
    await once(socket, 'close')
    t.ok(bytes > tokens * 100)
    t.match((await callsOf(url)).at(-1), { state: 'completed', output_tokens: tokens })
  })
})

t.test('ticker', async (t) => {
  t.test('tasks run in the order of their times, a cancelled one never', async (t) => {
    const ticker = new Ticker()
    const ran: string[] = []
    const now = ticker.now()
    await new Promise<void>((done) => {
      const unwanted = () => ran.push('unwanted')
      ticker.schedule(now + 60, done)
      ticker.schedule(now + 40, () => ran.push('second'))
      ticker.schedule(now + 20, () => ran.push('first'))
      ticker.cancel(ticker.schedule(now + 30, unwanted), unwanted)
      ticker.schedule(now - 1_000, () => ran.push('overdue'))
    })
    t.same(ran, ['overdue', 'first', 'second'])
  })

  t.test('no task runs before its time, and one may ask for the next', async (t) => {
    const ticker = new Ticker()
    const early: number[] = []
    await new Promise<void>((done) => {
      let dueMs = ticker.now() + 3
      let left = 5
      const task = () => {
        if (ticker.now() < dueMs) early.push(left)
        left -= 1
        if (left === 0) return done()
        dueMs += 7
        ticker.schedule(dueMs, task)
      }
      ticker.schedule(dueMs, task)
    })
    t.same(early, [])
  })

  t.test('a stopped ticker forgets its tasks and can be used again', async (t) => {
    const ticker = new Ticker()
    let forgotten = true
    const now = ticker.now()
    ticker.schedule(now + 10, () => {
      forgotten = false
    })
    ticker.stop()
    await new Promise<void>((done) => {
      ticker.schedule(now + 30, done)
    })
    t.equal(forgotten, true)
  })
})
