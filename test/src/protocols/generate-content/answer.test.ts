/** Answers of generate-content: metered and translated. */
import t, { type Test } from 'tap'
import { keepExtra, NO_USAGE, type TokenUsage } from '../../../../src/core/pricing/usage.ts'
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { GenerateContentMeter, readWholeAnswer } from '../../../../src/protocols/generate-content/meter.ts'
import { protocolAdapter, READERS } from '../../../../src/protocols/registry.ts'
import { Random } from '../../../simulation/random.ts'
import { checkEverySplit } from '../every-split.ts'
import { CREATED_SECONDS, chatCall, MESSAGES_STREAMS, MODEL, runInPieces } from '../messages/streams.ts'
import {
  chunks,
  deltas,
  ended,
  type Fields,
  finish,
  finishes,
  message,
  said,
  USAGE,
  USAGE_OUT,
  whole,
} from './answers.ts'
import {
  ARRAY_STREAMS,
  chunksOfArray,
  chunksOfEvents,
  EVENT_STREAMS,
  GOLDEN,
  saidIn,
  TO_GENERATE_CONTENT,
  translatedStream,
  withoutChance,
} from './streams.ts'

t.test('response row by row', async (t) => {
  // Each row has its test, streamed and whole. See docs/translation.md, "The answer".
  t.test('head of the answer: the client’s name of the model, the upstream’s id', async (t) => {
    const { value } = whole(ended('STOP', [{ text: 'Hi' }]))
    t.match(value, { id: 'resp-1', object: 'chat.completion', created: CREATED_SECONDS, model: MODEL })
    t.strictSame(value.choices[0].message.content, 'Hi')
    for (const chunk of chunks(ended('STOP', [{ text: 'Hi' }])).slice(0, -1))
      t.match(chunk, { id: 'resp-1', object: 'chat.completion.chunk', model: MODEL })
  })

  t.test('text parts become content, thought parts reasoning_content', async (t) => {
    const parts = [
      { text: 'Hm', thought: true },
      { text: 'm.', thought: true },
      { text: 'Yes' },
      { text: '!' },
    ]
    t.match(message(ended('STOP', parts)), { content: 'Yes!', reasoning_content: 'Hmm.' })
    t.strictSame(deltas(said(parts.slice(0, 1)), said(parts.slice(1)), ended('STOP')), [
      { reasoning_content: 'Hm' },
      { reasoning_content: 'm.' },
      { content: 'Yes' },
      { content: '!' },
    ])
  })

  t.test('functionCall becomes tool_calls with generated unique ids and distinct indexes', async (t) => {
    const calls = [
      { functionCall: { name: 'a', args: { x: [1, 'ü'] } }, thoughtSignature: 'c2ln' },
      { functionCall: { name: 'a', args: { x: [1, 'ü'] }, id: 'same' } },
      { functionCall: { name: 'b', id: 'same' } },
    ]
    const { content, tool_calls } = message(ended('STOP', calls))
    t.equal(content, null)
    const ids = tool_calls.map((call: { id: string }) => call.id)
    t.equal(new Set(ids).size, 3)
    t.ok(ids.every((id: string) => /^call_[0-9A-Z]{26}$/.test(id)))
    t.strictSame(
      tool_calls.map((call: { function: object }) => call.function),
      [
        { name: 'a', arguments: '{"x":[1,"ü"]}' },
        { name: 'a', arguments: '{"x":[1,"ü"]}' },
        { name: 'b', arguments: '{}' },
      ],
    )
    t.strictSame(tool_calls[0].extra_content, { google: { thought_signature: 'c2ln' } })
    t.notOk('extra_content' in tool_calls[1])
    const streamed = deltas(said(calls.slice(0, 2)), said(calls.slice(2)), ended('STOP'))
    const heads = streamed.filter((delta) => delta.tool_calls[0].id !== undefined)
    t.strictSame(
      heads.map((delta) => delta.tool_calls[0].index),
      [0, 1, 2],
    )
    t.equal(new Set(heads.map((delta) => delta.tool_calls[0].id)).size, 3)
    t.strictSame(heads[0].tool_calls[0].extra_content, { google: { thought_signature: 'c2ln' } })
  })

  t.test('STOP is stop, and tool_calls if any call appeared anywhere in the stream', async (t) => {
    const call = [{ functionCall: { name: 'a', args: {} } }]
    t.equal(finish(ended('STOP', [{ text: 'x' }])), 'stop')
    t.equal(finish(ended('STOP', call)), 'tool_calls')
    t.strictSame(finishes(ended('STOP', [{ text: 'x' }])), ['stop'])
    t.strictSame(finishes(said(call), said([{ text: 'x' }]), ended('STOP')), ['tool_calls'])
    t.strictSame(finishes(said([{ text: 'x' }]), ended('STOP', call)), ['tool_calls'])
    t.strictSame(finishes(ended('STOP'), said(call)), ['tool_calls'], 'even after it')
  })

  t.test('a limit is length, even after a call', async (t) => {
    for (const reason of ['MAX_TOKENS', 'CONTINUATION']) {
      t.equal(finish(ended(reason)), 'length')
      t.strictSame(finishes(said([{ functionCall: { name: 'a' } }]), ended(reason)), ['length'])
    }
  })

  t.test('filters are content_filter', async (t) => {
    const reasons = [
      ...['SAFETY', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'RECITATION', 'MODEL_ARMOR'],
      ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION', 'IMAGE_OTHER'],
    ]
    for (const reason of reasons) {
      t.equal(finish(ended(reason)), 'content_filter', reason)
      t.strictSame(finishes(said([{ text: 'x' }]), ended(reason)), ['content_filter'], reason)
    }
  })

  t.test('a promptFeedback.blockReason is content_filter, whole and complete', async (t) => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 10 } }
    const { value, isAnswer, metered } = whole(blocked)
    t.equal(isAnswer, true)
    t.strictSame(value.choices, [
      {
        index: 0,
        message: { role: 'assistant', content: '', refusal: null },
        logprobs: null,
        finish_reason: 'content_filter',
      },
    ])
    t.match(metered.usage, { prompt: 10, output: 0 })
    t.strictSame(finishes(blocked), ['content_filter'])
    t.equal(chunks(blocked).at(-1), '[DONE]')
  })

  t.test('anything else is stop', async (t) => {
    for (const reason of [
      'OTHER',
      'LANGUAGE',
      'MALFORMED_FUNCTION_CALL',
      'UNEXPECTED_TOOL_CALL',
      'TOO_MANY_TOOL_CALLS',
      'NO_IMAGE',
      'a reason nobody knows',
      'FINISH_REASON_UNSPECIFIED',
      'constructor',
    ])
      t.equal(finish(ended(reason, [{ text: 'x' }])), 'stop', reason)
  })

  t.test('usage: cached within prompt, tool use added to it, thoughts within completion', async (t) => {
    const usageMetadata = {
      promptTokenCount: 100,
      cachedContentTokenCount: 60,
      toolUsePromptTokenCount: 20,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 7,
      totalTokenCount: 132,
    }
    const expected = {
      prompt_tokens: 120,
      completion_tokens: 12,
      total_tokens: 132,
      prompt_tokens_details: { cached_tokens: 60 },
      completion_tokens_details: { reasoning_tokens: 7 },
    }
    t.strictSame(whole({ ...ended('STOP'), usageMetadata }).value.usage, expected)
    t.strictSame(chunks({ ...ended('STOP'), usageMetadata }).at(-2).usage, expected)
  })

  t.test('Stream: cumulative usage on many chunks goes out once, at the end', async (t) => {
    const events = [
      { ...said([{ text: 'a' }]), usageMetadata: { ...USAGE, candidatesTokenCount: 1 } },
      { ...said([{ text: 'b' }]), usageMetadata: { ...USAGE, candidatesTokenCount: 2 } },
      ended('STOP'),
      { usageMetadata: USAGE },
    ]
    const told = chunks(...events).filter((chunk) => chunk !== '[DONE]' && chunk.usage !== null)
    t.equal(told.length, 1)
    t.strictSame(told[0].choices, [])
    t.strictSame(told[0].usage, USAGE_OUT)
  })

  t.test('Stream: the last chunk may have no parts, no content, no candidates', async (t) => {
    const text = said([{ text: 'x' }])
    const bare = { candidates: [{ finishReason: 'STOP', index: 0 }] }
    for (const last of [
      ended('STOP'),
      bare,
      { candidates: [{ finishReason: 'STOP', content: { role: 'model' } }] },
    ]) {
      t.strictSame(finishes(text, last), ['stop'])
      t.equal(chunks(text, last, { usageMetadata: USAGE }).at(-1), '[DONE]')
    }
  })

  t.test('Stream: exactly one finish per candidate; the upstream’s own [DONE] is not a second', async (t) => {
    t.strictSame(finishes(ended('STOP'), ended('STOP'), ended('STOP')), ['stop'])
    const two = (finishReason?: string) => ({
      candidates: [0, 1].map((index) => ({ content: { parts: [{ text: 'x' }] }, index, finishReason })),
    })
    t.strictSame(finishes(two(), two('STOP'), two('MAX_TOKENS')), ['length', 'length'])
    const stream = translatedStream()
    stream.push(Buffer.from(`data: ${JSON.stringify(ended('STOP'))}\n\ndata: [DONE]\n\n`))
    t.equal(
      stream
        .end()
        ?.toString()
        .match(/\[DONE\]/g)?.length,
      1,
    )
  })

  t.test('Stream: an end before any finishReason gets no finish and no [DONE]', async (t) => {
    const cut = chunks(said([{ text: 'x' }]))
    t.equal(cut.at(-1).choices[0].delta.content, 'x')
    t.strictSame(finishes(said([{ text: 'x' }])), [])
    const oneOfTwo = { candidates: [{ index: 0, finishReason: 'STOP' }, { index: 1 }] }
    t.strictSame(finishes(oneOfTwo), [])
  })

  t.test('Stream: an error event, or one that is no JSON, ends it without finish and [DONE]', async (t) => {
    const error = { error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } }
    t.strictSame(finishes(said([{ text: 'x' }]), error), [])
    t.strictSame(finishes(ended('STOP'), error, ended('STOP')), [])
    for (const payload of [JSON.stringify(error), 'no JSON']) {
      const stream = translatedStream()
      const event = `data: ${payload}\n\n`
      const shown = payload === 'no JSON' ? undefined : event
      t.equal(stream.push(Buffer.from(event))?.toString(), shown, 'as the first event it is the answer')
      t.equal(stream.end(), null)
      t.match(stream, { hasBegun: false, isComplete: false })
      t.match(JSON.parse(stream.firstError!.toString()).error.message, /overloaded|not JSON/)
    }
  })

  t.test('Stream: only a client that asked for usage gets it', async (t) => {
    const call = chatCall({}, { source: { body: Buffer.from('{}'), request: { stream_options: null } } })
    const stream = TO_GENERATE_CONTENT.openStream(call)
    stream.push(Buffer.from(`data: ${JSON.stringify({ ...ended('STOP'), usageMetadata: USAGE })}\n\n`))
    t.notMatch(stream.end()?.toString(), 'usage')
    t.match(stream, { isComplete: true, usage: { prompt: 10, output: 4 } })
  })

  t.test(
    'whole: an error, or what is no answer, is an error despite its status, its bytes kept',
    async (t) => {
      const bodies = [
        '{"error":{"code":500,"message":"m"}}',
        'no JSON',
        '{}',
        '[]',
        'null',
        '{"candidates":[]}',
      ]
      for (const text of bodies) {
        const body = Buffer.from(text)
        const found = TO_GENERATE_CONTENT.readWhole(chatCall(), body)
        t.equal(found.isAnswer, false, text)
        t.equal(found.body, body)
        t.equal(found.metered.characters, 0)
      }
    },
  )

  t.test('whole: several candidates are several choices', async (t) => {
    const candidates = ['one', 'two'].map((text, index) => ({
      content: { parts: [{ text }] },
      index,
      finishReason: 'STOP',
    }))
    const { choices } = whole({ candidates }).value
    t.strictSame(
      choices.map((choice: { message: { content: string } }) => choice.message.content),
      ['one', 'two'],
    )
  })
})

t.test('response beyond text', async (t) => {
  // What an answer of the generate-content protocol says beyond text and calls: pictures, speech, sources, usage.
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
    const expected = {
      content: [{ ...chosen, top_logprobs: [chosen, token('u', -2, [0x75])] }],
      refusal: null,
    }
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
})

t.test('stream split anywhere same output same usage', async (t) => {
  // Every recorded stream, split at every byte: same output, same usage, as events and as an array, native and
  // translated. See docs/failure-modes.md, "Streams", rows 30 and 31.
  const SEED = 30
  const SPLITS = { seed: SEED, pairs: 100 }

  /** Not a byte changed, and the facts of the stream are those of its chunks. */
  function checkNative(t: Test, framing: 'sse' | 'array', stream: Buffer, chunks: readonly unknown[]): void {
    const whole = runInPieces(new GenerateContentMeter(framing), stream, [])
    const { characters, isComplete, firstError } = whole.said
    const error = firstError === null ? null : JSON.parse(firstError.toString()).error
    t.same({ characters, isComplete, firstError: error }, saidIn(chunks))
    checkEverySplit(t, stream, SPLITS, (cuts) => {
      const got = runInPieces(new GenerateContentMeter(framing), stream, cuts)
      if (got.output.equals(stream) && JSON.stringify(got.said) === JSON.stringify(whole.said)) return true
      t.same(got.said, whole.said, `said, cut at ${cuts}`)
      return t.equal(got.output.toString(), stream.toString(), `output, cut at ${cuts}`)
    })
  }

  function checkTranslated(t: Test, open: () => AnswerStream, stream: Buffer, golden: string): void {
    const whole = runInPieces(open(), stream, [])
    checkEverySplit(t, stream, SPLITS, (cuts) => {
      const got = runInPieces(open(), stream, cuts)
      const output = withoutChance(got.output)
      if (output === golden && JSON.stringify(got.said) === JSON.stringify(whole.said)) return true
      t.same(got.said, whole.said, `said, cut at ${cuts}`)
      return t.equal(output, golden, `output, cut at ${cuts}`)
    })
  }

  t.test('there is a golden translation of every recorded stream of events', async (t) => {
    t.not(EVENT_STREAMS.size, 0)
    t.not(ARRAY_STREAMS.size, 0)
    t.same([...GOLDEN.keys()].sort(), [...EVENT_STREAMS.keys()].sort())
  })

  for (const [name, stream] of EVENT_STREAMS) {
    t.test(`${name}, events`, async (t) => checkNative(t, 'sse', stream, chunksOfEvents(stream)))
    t.test(`${name}, translated: as golden`, async (t) =>
      checkTranslated(t, translatedStream, stream, GOLDEN.get(name)!.toString()),
    )
  }

  for (const [name, stream] of ARRAY_STREAMS)
    t.test(`${name}, array`, async (t) => checkNative(t, 'array', stream, chunksOfArray(stream)))

  t.test('an event of any length is read', async (t) => {
    const megabytes = 3
    const picture = 'QUJD'.repeat((megabytes * 1024 * 1024) / 4)
    const chunk = {
      candidates: [
        {
          content: { parts: [{ inlineData: { data: picture } }, { text: 'done' }], role: 'model' },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1290, totalTokenCount: 1293 },
    }
    const stream = Buffer.from(`data: ${JSON.stringify(chunk)}\r\n\r\n`)
    const cuts = Array.from({ length: Math.floor(stream.length / 65_536) }, (_, i) => (i + 1) * 65_536)
    for (const open of [() => new GenerateContentMeter('sse'), translatedStream]) {
      const { said } = runInPieces(open(), stream, cuts)
      t.match(said, { characters: 4, isComplete: true, usage: { prompt: 3, output: 1290 } })
    }
  })

  t.test('malformed bytes make fewer facts, never an error', async (t) => {
    const whole = [...ARRAY_STREAMS.values(), ...EVENT_STREAMS.values()]
    const random = new Random(SEED)
    for (let run = 0; run < 1000; run++) {
      const bytes = Buffer.from(random.pick(whole))
      for (let i = random.int(1, 5); i > 0; i--) {
        const at = random.int(0, bytes.length - 1)
        const byte = random.pick([...Buffer.from('"{}[],:\\\n u')])
        bytes[at] = byte
      }
      const framing = random.pick(['sse', 'array'] as const)
      const { output, said } = runInPieces(new GenerateContentMeter(framing), bytes, [])
      if (!output.equals(bytes)) t.fail('bytes were changed')
      if (!(said.characters >= 0 && said.characters <= 1.5 * bytes.length))
        t.fail(`${said.characters} characters`)
      readWholeAnswer(bytes)
      runInPieces(translatedStream(), bytes, [])
    }
    t.pass()
  })
})

t.test('usage of recorded streams', async (t) => {
  // The same golden usage in both framings, whether the stream passes or is translated.
  // See docs/failure-modes.md, "Money", rows 5, 8 and 12.
  const CALLS = { prompt: 57, output: 104, reasoning: 71 }
  const golden: Readonly<Record<string, Partial<TokenUsage> | null>> = {
    'usage-cumulative': { prompt: 9, output: 12 },
    'escapes-with-done': { prompt: 9, output: 12 },
    'thoughts-and-parallel-calls': CALLS,
    compact: CALLS,
    'max-tokens-while-thinking': { prompt: 5, output: 60, reasoning: 60 },
    'prompt-blocked': { prompt: 14, output: 0 },
    'several-candidates': { prompt: 3, output: 7 },
    'search-cached': {
      ...{ prompt: 100 + 20, cached: 64, output: 3, serverToolCalls: 2 },
      ...keepExtra({ tools: { web_search: 2 } }),
    },
    'code-and-picture': {
      ...{ prompt: 8, output: 1302, serverToolCalls: 1 },
      ...keepExtra({ tools: { code_interpreter: 1 } }),
    },
    'comments-multi-line-open-end': { prompt: 2, output: 7 },
    'no-usage': null,
    'error-first': null,
    'error-alone': null,
    'error-in-the-middle': { prompt: 7, output: 2 },
    'cut-off': { prompt: 30, output: 3, reasoning: 3 },
  }

  const WAYS = [
    ['events', EVENT_STREAMS, () => new GenerateContentMeter('sse')],
    ['array', ARRAY_STREAMS, () => new GenerateContentMeter('array')],
    ['translated', EVENT_STREAMS, translatedStream],
  ] as const

  for (const [way, streams, open] of WAYS) {
    t.test(`golden usage, ${way}`, async (t) => {
      for (const [name, stream] of streams) {
        const expected = golden[name]
        t.not(expected, undefined, name)
        const { usage } = runInPieces(open(), stream, []).said
        t.same(usage, expected === null ? null : { ...NO_USAGE, ...expected }, name)
      }
    })
    t.test(`what an interrupted stream said after its last figure is to be estimated, ${way}`, async (t) => {
      const { said } = runInPieces(open(), streams.get('cut-off')!, [])
      const after = 'is forty-two and th'.length
      t.match(said, {
        characters: 'The answer'.length + after,
        charactersSinceUsage: after,
        isComplete: false,
      })
      const complete = runInPieces(open(), streams.get('usage-cumulative')!, []).said
      t.match(complete, { charactersSinceUsage: 0, isComplete: true })
    })
  }

  const TEXT = { candidates: [{ content: { parts: [{ text: 'Hello' }] }, finishReason: 'STOP' }] }

  t.test('whole answers: what is left out is no zero once something was said', async (t) => {
    type Row = readonly [
      usage: object | undefined,
      told: Partial<TokenUsage> | null,
      beyond: number,
      suspect?: string,
    ]
    const rows: readonly Row[] = [
      [undefined, null, 5],
      [{}, null, 5],
      [{ promptTokenCount: 5 }, { prompt: 5 }, 5],
      [{ candidatesTokenCount: 5 }, { output: 5 }, 0],
      [{ promptTokenCount: -5, candidatesTokenCount: 1 }, { output: 1 }, 0, 'promptTokenCount -5'],
      [{ promptTokenCount: 5, candidatesTokenCount: 2 }, { prompt: 5, output: 2 }, 0],
      [
        { promptTokenCount: 5, candidatesTokenCount: 2, thoughtsTokenCount: 7 },
        { prompt: 5, output: 9, reasoning: 7 },
        0,
      ],
      [{ promptTokenCount: 0, totalTokenCount: 0 }, {}, 5],
      [{ promptTokenCount: 5, totalTokenCount: 5 }, { prompt: 5 }, 5],
      [
        { promptTokenCount: 5, thoughtsTokenCount: 7, totalTokenCount: 12 },
        { prompt: 5, output: 7, reasoning: 7 },
        5,
      ],
      [
        { promptTokenCount: 5, thoughtsTokenCount: 7, totalTokenCount: 14 },
        { prompt: 5, output: 9, reasoning: 7 },
        0,
      ],
      [{ promptTokenCount: 5, toolUsePromptTokenCount: 3, totalTokenCount: 10 }, { prompt: 8, output: 2 }, 0],
      [
        { promptTokenCount: 5, cachedContentTokenCount: 9, candidatesTokenCount: 1 },
        { prompt: 5, cached: 5, output: 1 },
        0,
        'cached 9 > prompt 5',
      ],
      [{ promptTokenCount: 5, candidatesTokenCount: 1e300 }, { prompt: 5 }, 5, 'candidatesTokenCount 1e+300'],
      [{ promptTokenCount: '5', candidatesTokenCount: 1 }, { output: 1 }, 0],
      [{ promptTokenCount: 5, candidatesTokenCount: 0 }, { prompt: 5 }, 5],
    ]
    for (const [usageMetadata, told, beyond, suspect] of rows) {
      const body = Buffer.from(JSON.stringify({ ...TEXT, usageMetadata }))
      const usage = told === null ? null : { ...NO_USAGE, ...told }
      const isUsageWhole = usage !== null && usage.prompt > 0 && (beyond === 0 || isToldZero(usageMetadata))
      const metered = {
        usage,
        characters: 5,
        charactersSinceUsage: beyond,
        isUsageWhole,
        ...(suspect && { suspect }),
      }
      const { metered: read, ...answer } = readWholeAnswer(body)
      const { reported, ...native } = read
      t.same({ ...answer, metered: native }, { body, metered, isAnswer: true }, JSON.stringify(usageMetadata))
      if (suspect !== undefined) t.same(reported, usageMetadata)
      const { reported: _, ...translated } = TO_GENERATE_CONTENT.readWhole(chatCall(), body).metered
      t.same(translated, metered, `${JSON.stringify(usageMetadata)}, translated`)
    }
  })

  /** A zero that is written is a report: no text is estimated where an answer ends with it. */
  const isToldZero = (usage: object | undefined): boolean =>
    (usage as { candidatesTokenCount?: number } | undefined)?.candidatesTokenCount === 0

  for (const [way, , open] of WAYS)
    t.test(`a thought that is counted alone leaves the text to be estimated, ${way}`, async (t) => {
      const chunk = (parts: object[], usageMetadata: object) => ({
        candidates: [{ content: { parts } }],
        usageMetadata: { promptTokenCount: 5, ...usageMetadata },
      })
      const thought = { text: 'Hm, a thought.', thought: true }
      const chunks = [
        chunk([thought], { thoughtsTokenCount: 40, totalTokenCount: 45 }),
        chunk([{ text: 'x'.repeat(100) }], { thoughtsTokenCount: 40, totalTokenCount: 45 }),
      ]
      const stream =
        way === 'array'
          ? JSON.stringify(chunks)
          : chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('')
      const { said } = runInPieces(open(), Buffer.from(stream), [])
      t.match(said, { usage: { output: 40, reasoning: 40 }, charactersSinceUsage: 100, isUsageWhole: false })
    })
})

t.test('filtered answers are answers', async (t) => {
  // A generate-content answer that a filter took, without content and usage, is an answer natively as it is translated.
  const answerOf = (finishReason: string) => JSON.stringify({ candidates: [{ finishReason }] })

  for (const [reason, isAnswer] of [
    ['SAFETY', true],
    ['RECITATION', true],
    ['IMAGE_SAFETY', true],
    ['STOP', false],
    ['MAX_TOKENS', false],
  ] as const)
    t.test(reason, async (t) => {
      const body = Buffer.from(answerOf(reason))
      t.equal(readWholeAnswer(body).isAnswer, isAnswer, 'whole')
      const native = new GenerateContentMeter('sse')
      const translated = translatedStream()
      for (const byte of Buffer.from(`data: ${answerOf(reason)}\n\n`)) {
        native.push(Buffer.from([byte]))
        translated.push(Buffer.from([byte]))
      }
      t.match(native, { isAnswer, isComplete: true })
      translated.end()
      t.equal(translated.isAnswer, isAnswer, 'translated')
    })
})

t.test('a translated stream without alt=sse is one JSON array', async (t) => {
  // As a native one is: the client reads it as JSON, whatever protocol its upstream speaks.
  const body = Buffer.from(JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }))
  const call = READERS['generate-content-stream'].read({ model: 'm', query: '', body })
  const adapter = protocolAdapter('generate-content', 'messages')
  const run = (name: string): string => {
    const stream = adapter.openStream(call)
    const pieces = [stream.push(MESSAGES_STREAMS.get(name)!), stream.end()]
    return Buffer.concat(pieces.map((piece) => piece ?? Buffer.alloc(0))).toString()
  }
  t.equal(adapter.streamContentType(call), 'application/json')
  const answers = JSON.parse(run('thinking-and-parallel-tools')) as { candidates: object[] }[]
  t.ok(answers.length > 1)
  t.match(answers.at(-1)?.candidates, [{ finishReason: 'STOP' }])
  t.match(JSON.parse(run('error-first')), [{ error: { status: 'INTERNAL' } }])
  t.throws(() => JSON.parse(run('error-in-the-middle')), 'it is cut, as an upstream that fails would cut it')
  const whole = Buffer.from(JSON.stringify(answers[0]))
  t.same(JSON.parse(adapter.wholeAsStream(call, whole).toString()), [answers[0]])
})
