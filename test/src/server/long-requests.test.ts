/** Long requests are read in a thread, with the same result as on the event loop. */
import { Buffer } from 'node:buffer'
import t from 'tap'
import { agentFile } from '../../../schemas/accounts/agent.ts'
import { BODY_WORK } from '../../../src/protocols/body-work.ts'
import { PLAIN_OPTIONS } from '../../../src/protocols/dialect.ts'
import type { ReaderName } from '../../../src/protocols/registry.ts'
import { openLongRequests } from '../../../src/server/gateway/long-requests.ts'

const errors: string[] = []
const log = { error: (_details: object, message: string) => void errors.push(message) }
const LONG = 'a'.repeat(1024 * 1024)
const AGENT_FILE = agentFile.parse({ name: 'a', model: 'm', persona: 'You are brief.' })
const TOOL = { name: 'look', description: LONG }

const requestOf = (body: unknown) => ({
  model: 'm',
  query: '',
  body: Buffer.from(JSON.stringify(body)),
})

const CONTENTS = {
  contents: [{ role: 'user', parts: [{ text: LONG }] }],
  generationConfig: { maxOutputTokens: 5 },
}
const MESSAGES = {
  model: 'm',
  max_tokens: 5,
  system: [{ type: 'text', text: LONG }],
  messages: [{ role: 'user', content: 'a' }],
}

const RESPONSE = { model: 'm', input: [{ role: 'user', content: LONG }] }

const REQUESTS: Readonly<Record<ReaderName, ReturnType<typeof requestOf>>> = {
  'chat-completions': requestOf({
    model: 'm',
    max_tokens: 5,
    seed: 7,
    stream: true,
    messages: [{ role: 'user', content: [{ type: 'text', text: LONG }] }],
    tools: [{ type: 'function', function: TOOL }],
  }),
  messages: requestOf(MESSAGES),
  'messages-count': requestOf(MESSAGES),
  'generate-content': requestOf(CONTENTS),
  'generate-content-stream': requestOf(CONTENTS),
  responses: requestOf({ ...RESPONSE, max_output_tokens: 5 }),
  'responses-compaction': requestOf(RESPONSE),
  'generate-content-count': requestOf({
    generateContentRequest: { model: 'models/m', contents: [{ parts: [{ text: LONG }] }] },
  }),
  embeddings: requestOf({ model: 'm', input: [LONG, 'a'] }),
  rerank: requestOf({ model: 'm', query: 'a', documents: [LONG, { text: 'a' }], top_n: 5 }),
}

// One for all: a thread takes a second to start.
const long = openLongRequests(log)
t.teardown(() => long.close())

type Request = ReturnType<typeof requestOf>
const toInput = (reader: ReaderName, { model, query }: Request) => ({ reader, model, query })
const readBy = (reader: ReaderName, request: Request, account: string, by = long) =>
  by.work(account, 'read', toInput(reader, request), request.body)

t.test('each protocol is read as on the event loop', async (t) => {
  for (const [name, request] of Object.entries(REQUESTS)) {
    const reader = name as ReaderName
    const read = await readBy(reader, request, 'a')
    t.strictSame(read, BODY_WORK.read(toInput(reader, request), request.body), reader)
    t.equal((read.source as { body: Buffer }).body, request.body, 'the body is the one that is there already')
  }
})

t.test('a refusal arrives as it was thrown, and the thread goes on', async (t) => {
  const wrong = requestOf({ model: 'm', messages: [{ role: 'user', content: LONG }], max_tokens: 'many' })
  await t.rejects(readBy('chat-completions', wrong, 'a'), {
    name: 'Failure',
    code: 'invalid_request',
    status: 400,
    message: /max_tokens/,
  })
  t.equal((await readBy('responses', REQUESTS.responses, 'a')).model, 'm')
})

t.test('only so many of one account wait, and no more of all', async (t) => {
  const long = openLongRequests(log)
  const read = (account: string) => readBy('responses', REQUESTS.responses, account, long)
  // The first two are read, sixty-four wait.
  const some = Array.from({ length: 66 }, () => read('a'))
  await t.rejects(read('a'), { code: 'service_unavailable', headers: [['retry-after', '1']] })
  const others = ['b', 'c', 'd', 'e', 'f', 'g', 'h']
  const more = others.flatMap((account) => Array.from({ length: 64 }, () => read(account)))
  await t.rejects(read('i'), { code: 'service_unavailable' })
  const outcomes = Promise.allSettled([...some, ...more])
  long.close()
  for (const outcome of await outcomes) t.match(outcome, { reason: { code: 'service_unavailable' } })
  t.equal((await read('a')).model, 'm', 'the next request begins another thread')
  long.close()
})

t.test('accounts take turns', async (t) => {
  const { model, query, body } = REQUESTS.responses
  const order: string[] = []
  // The order in which threads finish depends on their speed. A message is cloned when it is handed to a thread.
  const read = (account: string) => {
    const handedOver = {
      reader: 'responses' as const,
      query,
      get model() {
        order.push(account)
        return model
      },
    }
    return long.work(account, 'read', handedOver, body)
  }
  await Promise.all([...Array.from({ length: 8 }, () => read('many')), read('one'), read('two')])
  // Two of the many are worked on at once, and one more has the first turn.
  const many = (count: number) => Array.from({ length: count }, () => 'many')
  t.strictSame(order, [...many(3), 'one', 'two', ...many(5)])
})

t.test('an unexpected error in the thread is the failure of its request alone', async (t) => {
  // Nothing reads by this name.
  const fatal = readBy('no-reader' as ReaderName, REQUESTS.responses, 'a')
  const other = readBy('responses', REQUESTS.responses, 'b')
  await t.rejects(fatal, { code: 'internal_error' })
  t.equal((await other).model, 'm')
})

t.test('a body is compared, rewritten and translated in the thread as on the event loop', async (t) => {
  const { body, query } = REQUESTS['chat-completions']
  const request = { path: '/v1/chat/completions', query }
  const hash = await long.work('a', 'hash', { method: 'POST', ...request }, body)
  t.ok(Buffer.isBuffer(hash))
  t.ok(hash.equals(BODY_WORK.hash({ method: 'POST', ...request }, body)))

  const call = await long.work('a', 'read', { reader: 'chat-completions', ...request }, body)
  const options = { ...PLAIN_OPTIONS, upstreamModel: 'theirs' }
  for (const upstream of ['messages', 'generate-content'] as const) {
    const pair = { client: 'chat-completions', upstream, call } as const
    const encoded = await long.work('a', 'encode', { ...pair, options }, body)
    t.ok(Buffer.isBuffer(encoded.body))
    t.strictSame(encoded, BODY_WORK.encode({ ...pair, options }, body), upstream)
    t.same(await long.work('a', 'urls', { ...pair, provider: undefined }, body), [])
  }

  const given = { file: AGENT_FILE, knowledge: 'what was found' }
  t.strictSame(await long.work('a', 'agent', given, body), BODY_WORK.agent(given, body))
})

t.test('details of a refusal reach the client of messages', async (t) => {
  const threaded = requestOf({
    model: 'm',
    max_tokens: 5,
    thread: 'thr_1',
    messages: [{ role: 'user', content: LONG }],
  })
  const error = await readBy('messages', threaded, 'a').catch((error: unknown) => error)
  t.match(error, { details: { error_code: 'thread_unsupported_request' } })
})
