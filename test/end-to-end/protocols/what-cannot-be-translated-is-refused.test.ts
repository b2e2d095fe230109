/** A refused call is recorded as `rejected`, and no attempt of it is counted. */
import t from 'tap'
import { serveHttp } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import { rowsOf, traceOf, upstreamCalls } from '../support.ts'
import { ask, checkRefused, configOf, ERRORS, simulated } from './support.ts'

type Upstream = 'messages' | 'generate-content'
const call = (args: string) => ({
  role: 'assistant',
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: args } }],
})
const image = (url: string) => [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
const QUESTION = { role: 'user', content: 'hi' }

t.test('what cannot be translated', async (t) => {
  const service = await borrowService(
    t,
    configOf({ messages: {}, 'generate-content': {} }, [
      simulated('messages', { messages: 'sim-messages' }),
      simulated('generate-content', { 'generate-content': 'sim-generate' }),
      // Behind each, a channel that would answer: an invalid request is so everywhere.
      simulated(
        'messages',
        { messages: 'sim-messages', 'generate-content': 'sim-messages' },
        { id: 'second', priority: 1 },
      ),
    ]),
  )
  const { key } = await service.newKey('1000000')
  let visits = 0
  const inside = await serveHttp(t, (_, response) => {
    visits++
    response.end('a secret')
  })
  const { port } = new URL(inside)

  const everywhere: readonly (readonly [more: object, message: RegExp])[] = [
    [
      { messages: [QUESTION, call('{"a":'), { role: 'tool', tool_call_id: 'call_1', content: 'x' }] },
      /arguments/,
    ],
    [
      { messages: [QUESTION, call('[1]'), { role: 'tool', tool_call_id: 'call_1', content: 'x' }] },
      /arguments/,
    ],
    [{ messages: image('ftp://example.com/a.png') }, /neither http nor https/],
    [{ messages: image('data:image/png,plain') }, /image_url/],
    [{ messages: [QUESTION], tools: [{ type: 'function' }] }, /tools\[0\]/],
  ]
  const own: Readonly<Record<Upstream, typeof everywhere>> = {
    messages: [[{ messages: image('data:image/tiff;base64,AAAA') }, /JPEG, PNG/]],
    // Addresses of this machine and of private networks are not fetched from.
    'generate-content': [
      [{ messages: image(`http://127.0.0.1:${port}/a.png`) }, /image|URL|address/i],
      [{ messages: image(`http://localhost:${port}/a.png`) }, /image|URL|address/i],
      [{ messages: image(`http://[::ffff:127.0.0.1]:${port}/a.png`) }, /image|URL|address/i],
      [{ messages: image('http://169.254.169.254/latest/meta-data') }, /image|URL|address/i],
      [{ messages: image(`https://example.com/${'x'.repeat(2048)}`) }, /longer than 2048/],
      [{ messages: [{ role: 'tool', tool_call_id: 'nobody', content: 'x' }] }, /tool_call_id/],
    ],
  }

  const refused: string[] = []
  for (const upstream of ['messages', 'generate-content'] as const)
    await t.test(`to ${upstream} is refused with a word on the field`, async (t) => {
      for (const [more, message] of [...everywhere, ...own[upstream]])
        for (const stream of [false, true]) {
          const response = await ask(service, key, 'chat-completions', upstream, { stream, more })
          await checkRefused(t, response, 'chat-completions', ERRORS.invalidRequest, message)
          t.equal(response.headers.get('x-protocol-translation'), `chat-completions to ${upstream}`)
          refused.push(traceOf(response))
        }
    })

  await t.test('reaches no upstream, nor anything inside, and costs nothing', async (t) => {
    t.same(await upstreamCalls(service), [])
    t.equal(visits, 0)
    for (const row of await rowsOf(service, key, refused))
      t.match(row, {
        status: 'rejected',
        error_code: 'invalid_request',
        cost: '0',
        attempts_count: 0,
        attempts: { length: 0 },
      })
  })

  await t.test('says nothing of the channel', async (t) => {
    for (const model of ['messages', 'generate-content']) {
      const response = await ask(service, key, 'chat-completions', model)
      t.equal(response.status, 200)
      const [seen] = await upstreamCalls(service, traceOf(response))
      t.equal(seen?.model, model === 'messages' ? 'sim-messages' : 'sim-generate')
    }
  })
})
