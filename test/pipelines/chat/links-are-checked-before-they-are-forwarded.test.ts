/** A chat request whose links an upstream may not follow goes to channels that may take them, or is refused. */
import { from, lastValueFrom, Observable } from 'rxjs'
import t from 'tap'
import type { PricedCall } from '../../../pipelines/chat/select-model.ts'
import { checkLinks } from '../../../pipelines/chat/select-model.ts'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { chatWith } from '../../src/protocols/request/plain-requests.ts'

const INNER = 'http://10.0.0.1/a'
const checked: (readonly string[])[] = []
const deps = {
  checkLinks: async (urls: readonly string[]) => {
    checked.push(urls)
    if (urls.includes(INNER)) throw new Failure('invalid_request', `The file at ${INNER} cannot be fetched.`)
  },
}

function step(protocol: ChatProtocol, request: object, ...trusting: boolean[]) {
  const routes = trusting.map((private_links, id) => ({ channel: { id, private_links } }))
  const call = { protocol, call: chatWith(protocol, request), routes, fallbacks: [] } as unknown as PricedCall
  return checkLinks(deps)(call)
}

const channelsFor = async (protocol: ChatProtocol, request: object, ...trusting: boolean[]) => {
  const next = step(protocol, request, ...trusting)
  const { routes } = (await lastValueFrom(next instanceof Observable ? next : from([next]))) as PricedCall
  return routes.map(({ channel }) => Number(channel.id))
}

const user = (content: unknown) => [{ role: 'user', content }]
const REQUESTS: ReadonlyArray<readonly [ChatProtocol, (url: string) => object]> = [
  ['chat-completions', (url) => ({ messages: user([{ type: 'image_url', image_url: { url } }]) })],
  ['chat-completions', (url) => ({ messages: user([{ type: 'video_url', video_url: { url } }]) })],
  ['chat-completions', (url) => ({ messages: user([{ type: 'document_url', document_url: url }]) })],
  ['chat-completions', (url) => ({ messages: user([{ type: 'file', file: { file_data: url } }]) })],
  ['chat-completions', (url) => ({ messages: user([{ type: 'input_audio', input_audio: { data: url } }]) })],
  ['chat-completions', (url) => ({ messages: user([{ type: 'video', video: [url] }]) })],
  ['chat-completions', (url) => ({ tools: [{ type: 'mcp', server_url: url }], stream: true })],
  ['messages', (url) => ({ messages: user([{ type: 'image', source: { type: 'url', url } }]) })],
  ['messages', (url) => ({ messages: user([{ type: 'video', source: { type: 'url', url } }]) })],
  [
    'messages',
    (url) => ({
      messages: user([
        { type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source: { type: 'url', url } }] },
      ]),
    }),
  ],
  ['messages', (url) => ({ mcp_servers: [{ type: 'url', name: 'a', url }] })],
  ['responses', (url) => ({ input: user([{ type: 'input_image', image_url: url }]) })],
  ['responses', (url) => ({ input: user([{ type: 'input_video', url }]) })],
  [
    'responses',
    (url) => ({
      input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', url }] }],
    }),
  ],
  ['responses', (url) => ({ tools: [{ type: 'mcp', server_label: 'a', server_url: url }] })],
]

for (const [protocol, request] of REQUESTS)
  t.test(`${protocol}: ${JSON.stringify(request('URL'))}`, async (t) => {
    const refused = { code: 'invalid_request', message: /cannot be fetched/ }
    t.same(await channelsFor(protocol, request('https://a.example/'), false, true), [0, 1])
    await t.rejects(channelsFor(protocol, request(INNER), false, false), refused)
    t.same(await channelsFor(protocol, request(INNER), false, true), [1], 'private_links')
  })

t.test('a request without links, and one for private channels alone, waits for nothing', async (t) => {
  const image = { messages: user([{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }]) }
  checked.length = 0
  t.notOk(step('chat-completions', image, false) instanceof Observable)
  t.notOk(step('chat-completions', REQUESTS[0]![1](INNER), true) instanceof Observable)
  t.same(checked, [])
})

t.test('a link to a file that is stored at a provider is refused before', async (t) => {
  const contents = [{ role: 'user', parts: [{ fileData: { fileUri: INNER } }] }]
  t.throws(() => step('generate-content', { contents }, false), {
    code: 'invalid_request',
    message: /fileUri/,
  })
})
