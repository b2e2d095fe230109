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
    const read = await long.read(reader, request)
    t.strictSame(read, READERS[reader].read(request), reader)
    t.equal((read.source as { body: Buffer }).body, request.body, 'the body is the one that is there already')
  }
})

t.test('a refusal arrives as it was thrown, and the thread goes on', async (t) => {
  const long = longRequests(log)
  t.teardown(() => long.close())
  const wrong = requestOf({ model: 'm', messages: [{ role: 'user', content: LONG }], max_tokens: 'many' })
  await t.rejects(long.read('chat-completions', wrong), {
    name: 'Failure',
    code: 'invalid_request',
    status: 400,
    message: /max_tokens/,
  })
  t.equal((await long.read('responses', REQUESTS.responses)).model, 'm')
})

t.test('only so many wait, and a thread that ends lets them know', async (t) => {
  const long = longRequests(log)
  const reads = Array.from({ length: 65 }, () => long.read('responses', REQUESTS.responses))
  const outcomes = Promise.allSettled(reads)
  await t.rejects(reads[64]!, { code: 'service_unavailable', headers: [['retry-after', '1']] })
  long.close()
  for (const outcome of (await outcomes).slice(1))
    if (outcome.status === 'rejected') t.match(outcome.reason, { code: 'service_unavailable' })
  t.equal(
    (await long.read('responses', REQUESTS.responses)).model,
    'm',
    'the next request begins another thread',
  )
  long.close()
})
