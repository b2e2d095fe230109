/** Long requests are read in a thread, with the same result as on the event loop. */
import { Buffer } from 'node:buffer'
import t from 'tap'
import { READERS, type ReaderName } from '../../../src/protocols/registry.ts'
import { longRequests } from '../../../src/server/gateway/long-requests.ts'

const errors: string[] = []
const log = { error: (_details: object, message: string) => void errors.push(message) }
const LONG = 'a'.repeat(1024 * 1024)
const TOOL = { name: 'look', description: LONG }

const requestOf = (body: unknown, path = '/v1/anything') => ({
  path,
  query: '',
  body: Buffer.from(JSON.stringify(body)),
})

const REQUESTS: Readonly<Record<ReaderName, ReturnType<typeof requestOf>>> = {
  'chat-completions': requestOf({
    model: 'm',
    max_tokens: 5,
    seed: 7,
    stream: true,
    messages: [{ role: 'user', content: [{ type: 'text', text: LONG }] }],
    tools: [{ type: 'function', function: TOOL }],
  }),
  messages: requestOf({
    model: 'm',
    max_tokens: 5,
    system: [{ type: 'text', text: LONG }],
    messages: [{ role: 'user', content: 'a' }],
  }),
  'generate-content': requestOf(
    { contents: [{ role: 'user', parts: [{ text: LONG }] }], generationConfig: { maxOutputTokens: 5 } },
    '/v1beta/models/m:generateContent',
  ),
  responses: requestOf({ model: 'm', input: [{ role: 'user', content: LONG }], max_output_tokens: 5 }),
  'generate-content-count': requestOf(
    { generateContentRequest: { model: 'models/m', contents: [{ parts: [{ text: LONG }] }] } },
    '/v1beta/models/m:countTokens',
  ),
}

t.test('each protocol is read as on the event loop', async (t) => {
  const long = longRequests(log)
  t.teardown(() => long.close())
  for (const [name, request] of Object.entries(REQUESTS)) {
    const reader = name as ReaderName
    const read = await long.read(reader, request, 'a')
    t.strictSame(read, READERS[reader].read(request), reader)
    t.equal((read.source as { body: Buffer }).body, request.body, 'the body is the one that is there already')
  }
})

t.test('a refusal arrives as it was thrown, and the thread goes on', async (t) => {
  const long = longRequests(log)
  t.teardown(() => long.close())
  const wrong = requestOf({ model: 'm', messages: [{ role: 'user', content: LONG }], max_tokens: 'many' })
  await t.rejects(long.read('chat-completions', wrong, 'a'), {
    name: 'Failure',
    code: 'invalid_request',
    status: 400,
    message: /max_tokens/,
  })
  t.equal((await long.read('responses', REQUESTS.responses, 'a')).model, 'm')
})

t.test('only so many of one account wait, and no more of all', async (t) => {
  const long = longRequests(log)
  const read = (account: string) => long.read('responses', REQUESTS.responses, account)
  // The first is read, sixteen wait.
  const some = Array.from({ length: 17 }, () => read('a'))
  await t.rejects(read('a'), { code: 'service_unavailable', headers: [['retry-after', '1']] })
  const more = ['b', 'c', 'd'].flatMap((account) => Array.from({ length: 16 }, () => read(account)))
  await t.rejects(read('e'), { code: 'service_unavailable' })
  const outcomes = Promise.allSettled([...some, ...more])
  long.close()
  for (const outcome of await outcomes) t.match(outcome, { reason: { code: 'service_unavailable' } })
  t.equal((await read('a')).model, 'm', 'the next request begins another thread')
  long.close()
})

t.test('accounts take turns', async (t) => {
  const long = longRequests(log)
  t.teardown(() => long.close())
  const order: string[] = []
  const read = async (account: string) => {
    await long.read('responses', REQUESTS.responses, account)
    order.push(account)
  }
  await Promise.all([...Array.from({ length: 8 }, () => read('many')), read('one'), read('two')])
  // One of the many is read at once, and one more has the first turn.
  t.same(order.slice(0, 4), ['many', 'many', 'one', 'two'])
})

t.test('an unexpected error in the thread is the failure of its request alone', async (t) => {
  const long = longRequests(log)
  t.teardown(() => long.close())
  // Nothing reads by this name.
  const fatal = long.read('no-reader' as ReaderName, REQUESTS.responses, 'a')
  const other = long.read('responses', REQUESTS.responses, 'b')
  await t.rejects(fatal, { code: 'internal_error' })
  t.equal((await other).model, 'm')
})
