/** What an answer of the generate-content protocol says beyond text and calls: pictures, speech, sources, usage. */
import t from 'tap'
import { CREATED_SECONDS } from '../messages/streams.ts'
import { chunks, deltas, ended, type Fields, message, said, USAGE, whole } from './answers.ts'

const PNG = 'iVBORw0KGgo='
const drawn = (more: Fields = {}) => ({ inlineData: { mimeType: 'image/png', data: PNG }, ...more })
const image = (index: number, more: Fields = {}) => ({
  type: 'image_url',
  index,
  image_url: { url: `data:image/png;base64,${PNG}` },
  ...more,
})

t.test('inlineData of images: message.images, with the signature of their thought', async (t) => {
  const parts = [{ text: 'Here:' }, drawn({ thought: true }), drawn(), drawn({ thoughtSignature: 'c2ln' })]
  const signed = { extra_content: { google: { thought_signature: 'c2ln' } } }
  const { value, isAnswer } = whole(ended('STOP', parts))
  t.equal(isAnswer, true)
  t.match(value.choices[0].message, { content: 'Here:', images: [image(0), image(1, signed)] })
  t.equal(value.choices[0].message.images.length, 2, 'drafts are no part of the answer')
  t.strictSame(deltas(said(parts.slice(0, 3)), ended('STOP', parts.slice(3))), [
    { content: 'Here:' },
    { images: [image(0)] },
    { images: [image(1, signed)] },
  ])
  t.strictSame(
    deltas(ended('STOP', [{ inlineData: { mimeType: 'video/mp4', data: PNG } }, { inlineData: {} }])),
    [],
  )
})

t.test('inlineData of speech: message.audio', async (t) => {
  const spoken = (text: string) => ({
    inlineData: { mimeType: 'audio/L16;codec=pcm;rate=24000', data: Buffer.from(text).toString('base64') },
  })
  const { audio } = message(ended('STOP', [spoken('a'), spoken('bc')]))
  t.equal(Buffer.from(audio.data, 'base64').toString(), 'abc')
  t.match(audio, { id: /^audio_/, expires_at: CREATED_SECONDS, transcript: '' })
  const [first, second] = deltas(said([spoken('a')]), ended('STOP', [spoken('bc')]))
  t.match(first, { audio: { id: /^audio_/, data: 'YQ==' } })
  t.strictSame(second, { audio: { id: first.audio.id, data: 'YmM=' } })
})

const annotation = (start_index: number, end_index: number, url: string, title: string) => ({
  type: 'url_citation',
  url_citation: { start_index, end_index, url, title },
})
const web = (uri: string, title: string) => ({ web: { uri, title } })

t.test('grounding: annotations, places in bytes become places in characters', async (t) => {
  const text = 'Zürich: 🌧. Bern: sun.'
  const bytes = (until: string) => Buffer.byteLength(text.slice(0, text.indexOf(until)))
  const groundingMetadata = {
    webSearchQueries: ['weather'],
    groundingChunks: [
      web('https://a.example', 'a'),
      { retrievedContext: { uri: 'https://b.example' } },
      { odd: 1 },
    ],
    groundingSupports: [
      { segment: { endIndex: bytes(' Bern'), text: 'Zürich: 🌧.' }, groundingChunkIndices: [0, 1, 2, 9] },
      {
        segment: { startIndex: bytes('Bern'), endIndex: Buffer.byteLength(text) },
        groundingChunkIndices: [0],
      },
      { segment: { startIndex: 0, endIndex: 4, text: 'sun.' }, groundingChunkIndices: [1] },
      { segment: { text: 'not said' }, groundingChunkIndices: [1] },
    ],
  }
  const expected = [
    annotation(0, 10, 'https://a.example', 'a'),
    annotation(0, 10, 'https://b.example', ''),
    annotation(11, 21, 'https://a.example', 'a'),
    annotation(17, 21, 'https://b.example', ''),
    annotation(0, 21, 'https://b.example', ''),
  ]
  const answer = said([{ text }], { finishReason: 'STOP', groundingMetadata })
  t.strictSame(message(answer).annotations, expected)
  const pieces = [...text].map((character) => said([{ text: character }]))
  const { groundingSupports, ...chunksAlone } = groundingMetadata
  const streams = {
    'at the end': [said([], { finishReason: 'STOP', groundingMetadata })],
    'in turn': [
      said([], { groundingMetadata: chunksAlone }),
      said([], { groundingMetadata: { groundingSupports: groundingSupports.slice(0, 2) } }),
      said([], {
        finishReason: 'STOP',
        groundingMetadata: { groundingSupports: groundingSupports.slice(2) },
      }),
    ],
    'again and again': [
      said([], { groundingMetadata }),
      said([], { finishReason: 'STOP', groundingMetadata }),
    ],
  }
  for (const [how, events] of Object.entries(streams))
    t.strictSame(
      deltas(...pieces, ...events).filter((delta) => 'annotations' in delta),
      [{ annotations: expected }],
      how,
    )
})

t.test('sources without a place, and texts that the model recites: annotations', async (t) => {
  const sources = (more: Fields) =>
    message(said([{ text: 'Ja, ja.' }], { finishReason: 'STOP', ...more })).annotations
  t.strictSame(sources({ groundingMetadata: { groundingChunks: [web('https://a.example', 'a')] } }), [
    annotation(0, 7, 'https://a.example', 'a'),
  ])
  const recited = { startIndex: 4, endIndex: 6, uri: 'https://c.example', license: 'x' }
  for (const name of ['citationSources', 'citations'])
    t.strictSame(sources({ citationMetadata: { [name]: [recited] } }), [
      annotation(4, 6, 'https://c.example', ''),
    ])
  t.equal(sources({ groundingMetadata: { webSearchQueries: ['x'] } }), undefined)
  const many = Array.from({ length: 9999 }, (_, index) => web(`https://a.example/${index}`, ''))
  t.equal(sources({ groundingMetadata: { groundingChunks: many } }).length, 512)
})

t.test('code that the upstream ran, and what it printed, are text', async (t) => {
  const parts = [
    { executableCode: { language: 'PYTHON', code: 'print(1)' } },
    { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } },
    { text: 'One.' },
  ]
  const content = '\n```python\nprint(1)\n```\n\n```\n1\n```\nOne.'
  t.equal(message(ended('STOP', parts)).content, content)
  t.equal(
    deltas(ended('STOP', parts))
      .map((delta) => delta.content)
      .join(''),
    content,
  )
})

t.test('logprobsResult: logprobs of the choice', async (t) => {
  const logprobsResult = {
    chosenCandidates: [{ token: 'ü', tokenId: 7, logProbability: -0.5 }],
    topCandidates: [
      { candidates: [{ token: 'ü', logProbability: -0.5 }, { token: 'u', logProbability: -2 }, {}] },
    ],
  }
  const token = (token: string, logprob: number, bytes: number[]) => ({ token, logprob, bytes })
  const chosen = token('ü', -0.5, [0xc3, 0xbc])
  const expected = { content: [{ ...chosen, top_logprobs: [chosen, token('u', -2, [0x75])] }], refusal: null }
  const answer = said([{ text: 'ü' }], { finishReason: 'STOP', logprobsResult })
  t.strictSame(whole(answer).value.choices[0].logprobs, expected)
  const told = chunks(answer).flatMap((chunk) => chunk.choices?.[0]?.logprobs ?? [])
  t.strictSame(told, [expected])
})

t.test('why an answer or a prompt was blocked: message.refusal', async (t) => {
  const reason = { finishReason: 'SAFETY', finishMessage: 'It is not safe.' }
  t.equal(message(said([], reason)).refusal, 'It is not safe.')
  t.equal(message(said([], { ...reason, finishReason: 'STOP' })).refusal, null)
  const blocked = { promptFeedback: { blockReason: 'OTHER', blockReasonMessage: 'No.' } }
  t.equal(message(blocked).refusal, 'No.')
  t.strictSame(deltas(blocked), [{ refusal: 'No.' }])
})

t.test('usage: audio_tokens and the searches of the upstream, where it tells them', async (t) => {
  const details = (tokenCount: number) => [
    { modality: 'TEXT', tokenCount: 1 },
    { modality: 'AUDIO', tokenCount },
  ]
  const usageMetadata = { ...USAGE, promptTokensDetails: details(5), candidatesTokensDetails: details(3) }
  const answer = {
    ...said([{ text: 'x' }], { finishReason: 'STOP', groundingMetadata: { webSearchQueries: ['a', 'b'] } }),
    usageMetadata,
  }
  const expected = {
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 5 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 3 },
    server_tool_use: { web_search_requests: 2 },
  }
  t.match(whole(answer).value.usage, expected)
  t.match(chunks(answer).at(-2).usage, expected)
})
