/** Images, files and audio given by URL, in each protocol that takes them: those inline count by their bytes alone. */
import t from 'tap'
import { readChatCall } from '../../../../src/protocols/chat-completions/dialect.ts'
import { messagesDialect } from '../../../../src/protocols/messages/dialect.ts'
import { responsesDialect } from '../../../../src/protocols/responses/dialect.ts'

const URL = 'https://example.com/x'
const INLINE = 'data:image/png;base64,AAAA'
const NONE = { image: 0, file: 0, audio: 0, urls: [] }

const bodyOf = (more: object) => Buffer.from(JSON.stringify({ model: 'm', max_tokens: 5, ...more }))
const user = (content: unknown) => [{ role: 'user', content }]

const READERS = {
  chat: (parts: unknown) => readChatCall(bodyOf({ messages: user(parts) })).links,
  messages: (parts: unknown) =>
    messagesDialect.read({ path: '/v1/messages', query: '', body: bodyOf({ messages: user(parts) }) }).links,
  responses: (parts: unknown) =>
    responsesDialect.read({ path: '/v1/responses', query: '', body: bodyOf({ input: user(parts) }) }).links,
}

const source = (url: string) => ({ type: 'image', source: { type: 'url', url } })
const base64 = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const found = { type: 'web_search_result', url: URL, title: 't', encrypted_content: 'x' }
const result = (content: unknown) => ({ type: 'tool_result', tool_use_id: 't', content })

const CASES: Readonly<Record<keyof typeof READERS, ReadonlyArray<readonly [parts: unknown, links: object]>>> =
  {
    chat: [
      ['plain', NONE],
      [[{ type: 'text', text: `"image_url":"${URL}"` }], NONE],
      [[{ type: 'image_url', image_url: { url: INLINE } }], NONE],
      [
        [
          { type: 'image_url', image_url: { url: URL } },
          { type: 'image_url', image_url: URL },
        ],
        { image: 2 },
      ],
      [[{ type: 'file', file: { filename: 'f', file_data: URL } }], { file: 1 }],
      [[{ type: 'file', file: { filename: 'f', file_data: 'AAAA' } }], NONE],
      [[{ type: 'audio_url', audio_url: { url: URL } }], { audio: 1, image: 0, urls: [URL] }],
      [[{ type: 'document_url', document_url: URL }], { file: 1 }],
    ],
    messages: [
      [[{ type: 'text', text: URL }, base64], NONE],
      [[{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: URL } }], NONE],
      [[source(URL), { type: 'document', source: { type: 'url', url: URL } }], { image: 1, file: 1 }],
      [[result([source(URL)])], { image: 1 }],
      [
        [source(URL), { type: 'web_search_tool_result', tool_use_id: 's', content: [found] }],
        { image: 1, file: 0 },
      ],
      [[result([base64]), result(URL), { type: 'tool_use', id: 't', name: 'f', input: { url: URL } }], NONE],
    ],
    responses: [
      [
        [
          { type: 'input_text', text: URL },
          { type: 'input_image', image_url: INLINE },
        ],
        NONE,
      ],
      [
        [
          { type: 'input_image', image_url: URL },
          { type: 'input_file', file_url: URL },
        ],
        { image: 1, file: 1 },
      ],
    ],
  }

for (const [protocol, read] of Object.entries(READERS))
  t.test(protocol, async (t) => {
    for (const [parts, links] of CASES[protocol as keyof typeof READERS])
      t.match(read(parts), links, JSON.stringify(parts))
  })

t.test('images of earlier answers, and the masks of tools', async (t) => {
  const image = (url: string) => ({ type: 'image_url', image_url: { url } })
  const chat = (messages: readonly object[], tools: readonly object[] = []) =>
    readChatCall(bodyOf({ messages, tools, stream: true })).links
  const drawn = (url: string) => [...user('x'), { role: 'assistant', content: '', images: [image(url)] }]
  t.match(chat(drawn(URL)), { image: 1, urls: [URL] })
  t.match(chat(drawn(INLINE)), NONE)
  const tools = (image_url: string) => [{ type: 'image_generation', input_image_mask: { image_url } }]
  t.match(chat(user('x'), tools(URL)), { image: 1, urls: [URL] })
  const masked = (url: string) => bodyOf({ input: user('x'), tools: tools(url) })
  const responses = (body: Buffer) => responsesDialect.read({ path: '/v1/responses', query: '', body }).links
  t.match(responses(masked(URL)), { image: 1, urls: [URL] })
  t.match(responses(masked(INLINE)), NONE)
})
