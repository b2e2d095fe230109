/** Makes every kind of call of `/v1`, of knowledge and of the log with a key. */
import { check, dataOf, readStream, type TollgateClient, toForm, untilEnded, withField } from './client.ts'

const HELLO = { role: 'user' as const, content: 'Hello!' }
const CONTENTS = { contents: [{ role: 'user', parts: [{ text: 'Hello!' }] }] }
const LINK = 'https://example.com/one'
const DAY = { from: '2026-01-01', to: '2026-01-02' }

export async function chat(client: TollgateClient): Promise<void> {
  const body = { model: 'sonata-large', messages: [HELLO] }
  const completion = withField(await dataOf(client.POST('/v1/chat/completions', { body })), 'choices')
  check(completion.choices[0]?.message.content !== '', 'a completion has a text')
  await readStream(
    client.POST('/v1/chat/completions', { body: { ...body, stream: true }, parseAs: 'stream' }),
    'data: [DONE]',
  )
  const text = { model: 'sonata-large', prompt: 'Hello!' }
  const { choices } = withField(await dataOf(client.POST('/v1/completions', { body: text })), 'choices')
  check(choices.length === 1, 'one choice')
  await readStream(
    client.POST('/v1/completions', { body: { ...text, stream: true }, parseAs: 'stream' }),
    'data: [DONE]',
  )

  const asked = { model: 'ballad-large', max_tokens: 50, messages: [HELLO] }
  const message = withField(await dataOf(client.POST('/v1/messages', { body: asked })), 'content')
  check(
    message.content.some(({ text }) => text !== undefined),
    'a message has a text',
  )
  await readStream(
    client.POST('/v1/messages', { body: { ...asked, stream: true }, parseAs: 'stream' }),
    'message_stop',
  )
  const counted = { model: 'ballad-large', messages: [HELLO] }
  check(
    (await dataOf(client.POST('/v1/messages/count_tokens', { body: counted }))).input_tokens > 0,
    'tokens',
  )

  const path = { model: 'canto-large' }
  const generated = await dataOf(
    client.POST('/v1beta/models/{model}:generateContent', { params: { path }, body: CONTENTS }),
  )
  check(generated.usageMetadata.promptTokenCount > 0, 'a prompt has tokens')
  await readStream(
    client.POST('/v1beta/models/{model}:streamGenerateContent', {
      params: { path, query: { alt: 'sse' } },
      body: CONTENTS,
      parseAs: 'stream',
    }),
    'finishReason',
  )
  await dataOf(client.POST('/v1beta/models/{model}:countTokens', { params: { path }, body: CONTENTS }))
}

export async function responses(client: TollgateClient): Promise<void> {
  const body = { model: 'kept-chat', input: [HELLO], store: true }
  const first = withField(await dataOf(client.POST('/v1/responses', { body })), 'output')
  await readStream(
    client.POST('/v1/responses', { body: { ...body, stream: true }, parseAs: 'stream' }),
    'response.completed',
  )
  const path = { id: first.id }
  check((await dataOf(client.GET('/v1/responses/{id}', { params: { path } }))).id === first.id, 'it is kept')
  await dataOf(client.GET('/v1/responses/{id}/input_items', { params: { path } }))
  await dataOf(client.POST('/v1/responses/input_tokens', { body }))
  await dataOf(client.POST('/v1/responses', { body: { ...body, previous_response_id: first.id } }))
  check((await dataOf(client.DELETE('/v1/responses/{id}', { params: { path } }))).deleted, 'it is deleted')

  const conversation = await dataOf(client.POST('/v1/conversations', { body: { items: [HELLO] } }))
  const of = { path: { id: conversation.id } }
  await dataOf(client.POST('/v1/responses', { body: { ...body, conversation: conversation.id } }))
  await dataOf(client.GET('/v1/conversations/{id}', { params: of }))
  await dataOf(client.POST('/v1/conversations/{id}', { params: of, body: { metadata: { topic: 'bread' } } }))
  await dataOf(client.POST('/v1/conversations/{id}/items', { params: of, body: { items: [HELLO] } }))
  const items = await dataOf(client.GET('/v1/conversations/{id}/items', { params: of }))
  check(items.data.length > 1, 'a conversation has items')
  await dataOf(client.DELETE('/v1/conversations/{id}', { params: of }))
}

export async function vectors(client: TollgateClient): Promise<void> {
  const made = await dataOf(client.POST('/v1/embeddings', { body: { model: 'embed', input: 'Bread.' } }))
  check(made.data[0]?.index === 0, 'an embedding has an index')
  const body = { model: 'rank', query: 'bread', documents: ['a loaf', 'a river'] }
  const ranking = await dataOf(client.POST('/v1/rerank', { body }))
  check(typeof ranking.results[0]?.relevance_score === 'number', 'a result has a score')
  const file = new File([new Uint8Array(1000)], 'speech.mp3')
  const heard = await dataOf(
    client.POST('/v1/audio/transcriptions', { body: { model: 'hear', file }, bodySerializer: toForm }),
  )
  check(withField(heard, 'text').text !== '', 'speech has words')
}

export async function media(client: TollgateClient, png: Blob): Promise<void> {
  const prompt = 'A lighthouse at dusk'
  const images = await dataOf(
    client.POST('/v1/images/generations', { body: { model: 'demo-image', prompt, size: '64x64' } }),
  )
  check('data' in images && images.data.length === 1, 'an image is made')
  await dataOf(
    client.POST('/v1/images/edits', {
      body: { model: 'demo-image', prompt, 'image[]': [png] },
      bodySerializer: toForm,
    }),
  )
  const later = await dataOf(
    client.POST('/v1/images/generations', { body: { model: 'demo-image', prompt, async: true } }),
  )
  check('status' in later, 'an image to come is a task')
  if ('status' in later)
    await untilEnded(
      () => dataOf(client.GET('/v1/images/generations/{id}', { params: { path: { id: later.id } } })),
      ['succeeded'],
    )
  await dataOf(client.GET('/v1/images/generations', { params: { query: { limit: 2 } } }))

  const video = await dataOf(
    client.POST('/v1/videos/generations', { body: { model: 'demo-video', prompt, duration: 2 } }),
  )
  const path = { id: video.id }
  const film = await untilEnded(
    () => dataOf(client.GET('/v1/videos/generations/{id}', { params: { path } })),
    ['succeeded'],
  )
  check(film.video_url !== undefined, 'a video has a link')
  await dataOf(client.GET('/v1/videos/generations', { params: { query: { limit: 2 } } }))
  await dataOf(client.DELETE('/v1/videos/generations/{id}/files', { params: { path } }))
  await dataOf(client.GET('/v1/videos/avatars/presets'))
  await dataOf(client.GET('/v1/videos/clip-templates'))
  await dataOf(client.GET('/v1/videos/clip-templates/categories'))

  const music = await dataOf(client.POST('/v1/music/generations', { body: { model: 'demo-music', prompt } }))
  await untilEnded(
    () => dataOf(client.GET('/v1/music/generations/{id}', { params: { path: { id: music.id } } })),
    ['succeeded'],
  )
}

export async function sound(client: TollgateClient): Promise<void> {
  const body = { model: 'demo-speech', input: 'Good morning.' }
  const spoken = await dataOf(client.POST('/v1/audio/speech', { body }))
  check('audio_url' in spoken && spoken.characters === 13, 'speech has a link')
  const bytes = await dataOf(
    client.POST('/v1/audio/speech', { body: { ...body, response_format: 'mp3' }, parseAs: 'blob' }),
  )
  check(bytes instanceof Blob && bytes.size > 0, 'speech is sound where the request asks for it')
  await dataOf(client.GET('/v1/audio/speech'))
  const voice = await dataOf(client.POST('/v1/audio/voices', { body: { name: 'Ada', audio_url: LINK } }))
  const path = { id: voice.id }
  await untilEnded(() => dataOf(client.GET('/v1/audio/voices/{id}', { params: { path } })), ['ready'])
  await dataOf(client.GET('/v1/audio/voices'))
  await dataOf(client.DELETE('/v1/audio/voices/{id}', { params: { path } }))
  const words = await dataOf(client.POST('/v1/transcripts/extract', { body: { url: LINK } }))
  check(words.content !== '', 'a transcript has words')
}

export async function reading(client: TollgateClient): Promise<void> {
  const bases = await dataOf(client.GET('/api/v1/ext/wiki/kbs'))
  const kb_id = bases.data.find(({ page_count }) => page_count > 0)?.kb_id
  if (kb_id === undefined) throw new Error('the key reads no base with pages')
  const found = await dataOf(
    client.GET('/api/v1/ext/wiki/search', { params: { query: { q: 'bread', kb_id } } }),
  )
  const id = found.results[0]?.id
  if (id === undefined) throw new Error('the search found nothing')
  const of = { path: { id }, query: { kb_id } }
  const page = await dataOf(client.GET('/api/v1/ext/wiki/pages/{id}', { params: of }))
  check(page.body.includes('oven'), 'a page has its text')
  await dataOf(client.GET('/api/v1/ext/wiki/pages', { params: { query: { ids: id, kb_id } } }))
  await dataOf(client.GET('/api/v1/ext/wiki/pages/{id}/backlinks', { params: of }))
  await dataOf(client.GET('/api/v1/ext/wiki/tags', { params: { query: { kb_id } } }))
  const tools = await dataOf(client.POST('/mcp', { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } }))
  check(JSON.stringify(tools).includes('search_wiki'), 'MCP has its tools')
}

/** Runs last, when every earlier call has its row in the log. */
export async function records(client: TollgateClient): Promise<void> {
  const balance = await dataOf(client.GET('/v1/key/balance'))
  check(Number(balance.remaining) > 0, 'a balance is left')
  await dataOf(client.GET('/v1/usage'))
  await dataOf(client.GET('/api/v1/usage', { params: { query: DAY } }))
  await dataOf(client.GET('/v1/dashboard/billing/subscription'))
  await dataOf(client.GET('/v1/dashboard/billing/usage'))
  await dataOf(client.GET('/v1/dashboard/billing/credit_grants'))
  check((await dataOf(client.GET('/v1/models'))).data.length > 10, 'there are models')
  await dataOf(client.GET('/v1/models/{model}', { params: { path: { model: 'sonata-large' } } }))
  await dataOf(client.GET('/v1beta/models'))
  await dataOf(client.GET('/api/v1/models/public'))
  const page = withField(await dataOf(client.GET('/v1/logs', { params: { query: { limit: 100 } } })), 'data')
  check(
    page.data.length > 20 && page.data.every(({ status }) => status === 'success'),
    'each call is a success',
  )
  const query = { format: 'csv' as const }
  check(
    String(await dataOf(client.GET('/v1/logs', { params: { query }, parseAs: 'text' }))).includes(
      'request_id',
    ),
    'the log is a file too',
  )
  await dataOf(client.GET('/v1/logs/summary', { params: { query: DAY } }))
  const path = { id: String(page.data[0]!.id) }
  await dataOf(client.GET('/v1/logs/{id}', { params: { path } }))
}
