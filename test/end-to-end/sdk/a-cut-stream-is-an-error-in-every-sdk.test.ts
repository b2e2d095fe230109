/**
 * A stream that its upstream breaks off, or that the gateway's own time ends, is ended without HTTP's mark of the end: no
 * SDK takes half an answer for the whole. See docs/failure-modes.md, "Streams", row 38.
 */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { type LanguageModel, streamText } from 'ai-sdk'
import OpenAI from 'openai'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { installPython, runPython } from '../../support/python-sdks.ts'
import {
  CHAT_PROTOCOLS,
  type ChatProtocol,
  configOf,
  PLAIN,
  postUntilBroken,
  simulated,
} from '../protocols/support.ts'
import { rowOf, traceOf } from '../support.ts'

/** 60 words: a stream of any protocol is longer than the bytes after which a fault strikes. */
const TEXT = Array.from({ length: 60 }, (_, at) => `word${at}`).join(' ')
const MIDDLE_OF_STREAM_BYTES = 4_000
const MIDDLE_OF_ANSWER_BYTES = 40
const HOW = ['cut', 'reset', 'truncate', 'hang']
const modelsOf = (protocol: ChatProtocol) => HOW.map((how) => `${protocol}.${how}`)
const brokenChannel = (protocol: ChatProtocol) => {
  const say = (fault: string) => `sim@text=${encodeURIComponent(TEXT)},fault=${fault}`
  const streams = HOW.map((how) => [`${protocol}.${how}`, say(`${how}:${MIDDLE_OF_STREAM_BYTES}`)])
  const models = {
    ...Object.fromEntries(streams),
    [`${protocol}.half`]: say(`cut:${MIDDLE_OF_ANSWER_BYTES}`),
  }
  return simulated(protocol, models, { timeout_seconds: TIMEOUT_SECONDS, serve: [...CHAT_PROTOCOLS] })
}
const WAYS = CHAT_PROTOCOLS.flatMap((client) => CHAT_PROTOCOLS.map((upstream) => [client, upstream] as const))
const messages = [{ role: 'user' as const, content: 'hi' }]
/** What the call has: its upstream hangs for longer, and even a slow machine brings the middle of the stream sooner. */
const TIMEOUT_SECONDS = 5

type Pieces = AsyncIterable<string>
type Reader = (model: string) => Pieces

/** Reads to the end, or to the error. */
async function readToEnd(pieces: Pieces): Promise<{ text: string; error: unknown }> {
  let text = ''
  try {
    for await (const piece of pieces) text += piece
    return { text, error: null }
  } catch (error) {
    return { text, error }
  }
}

/** The SDKs that speak each protocol. */
function readersOf(baseUrl: string, apiKey: string): Readonly<Record<ChatProtocol, Record<string, Reader>>> {
  const openai = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, maxRetries: 0 })
  const anthropic = new Anthropic({ baseURL: baseUrl, apiKey, maxRetries: 0 })
  const google = new GoogleGenAI({ apiKey, httpOptions: { baseUrl } })
  const byAi = (modelOf: (model: string) => LanguageModel): Reader =>
    async function* (model) {
      const { fullStream } = streamText({ model: modelOf(model), prompt: 'hi', maxRetries: 0, onError() {} })
      for await (const part of fullStream) {
        if (part.type === 'text-delta') yield part.text
        if (part.type === 'error') throw part.error
      }
    }
  const aiOpenai = createOpenAI({ baseURL: `${baseUrl}/v1`, apiKey })
  return {
    'chat-completions': {
      async *openai(model) {
        for await (const { choices } of await openai.chat.completions.create({
          model,
          messages,
          stream: true,
        }))
          yield choices[0]?.delta.content ?? ''
      },
      ai: byAi((model) => aiOpenai.chat(model)),
    },
    responses: {
      async *openai(model) {
        for await (const event of await openai.responses.create({ model, input: messages, stream: true }))
          if (event.type === 'response.output_text.delta') yield event.delta
      },
      ai: byAi((model) => aiOpenai(model)),
    },
    messages: {
      async *'@anthropic-ai/sdk'(model) {
        const stream = anthropic.messages.stream({ model, messages, max_tokens: 64 })
        for await (const event of stream)
          if (event.type === 'content_block_delta' && event.delta.type === 'text_delta')
            yield event.delta.text
      },
      ai: byAi((model) => createAnthropic({ baseURL: `${baseUrl}/v1`, apiKey })(model)),
    },
    'generate-content': {
      async *'@google/genai'(model) {
        for await (const { text } of await google.models.generateContentStream({ model, contents: 'hi' }))
          yield text ?? ''
      },
      ai: byAi((model) => createGoogleGenerativeAI({ baseURL: `${baseUrl}/v1beta`, apiKey })(model)),
    },
  }
}

t.test('a stream that is broken off', async (t) => {
  const channels = CHAT_PROTOCOLS.map(brokenChannel)
  const models = channels.flatMap((channel) => Object.keys(channel.models))
  const service = await borrowService(t, configOf(Object.fromEntries(models.map((id) => [id, {}])), channels))
  const { key } = await service.newKey('10000000')
  const readers = readersOf(service.baseUrl, key)

  for (const [client, upstream] of WAYS)
    for (const [sdk, read] of Object.entries(readers[client])) {
      // All at once: each upstream that hangs is waited for.
      const begun = modelsOf(upstream).map((model) => ({ model, reading: readToEnd(read(model)) }))
      t.test(`${sdk}, ${client} to ${upstream}`, async (t) => {
        for (const { model, reading } of begun) {
          const { error, text } = await reading
          t.ok(error instanceof Error, model)
          t.ok(text !== '' && TEXT.startsWith(text) && text !== TEXT, `${model}: '${text}' was read before`)
        }
      })
    }

  await t.test('by the Python SDKs', async (t) => {
    const sdks = await installPython()
    if ('reason' in sdks) {
      t.comment(`skipped: ${sdks.reason}`)
      return
    }
    const cases = WAYS.flatMap(([client, upstream]) => modelsOf(upstream).map((model) => ({ client, model })))
    const script = new URL('read-streams.py', import.meta.url)
    const found = await runPython(sdks.folder, script, { baseUrl: service.baseUrl, key, cases })
    for (const [at, { text, error }] of (found as { text: string; error: string | null }[]).entries()) {
      const { client, model } = cases[at]!
      t.ok(error !== null, `${client} to ${model}: ${error}`)
      t.ok(text !== TEXT)
    }
  })

  await t.test('an answer in one piece that is cut half-way is an error with a status', async (t) => {
    for (const [client, upstream] of WAYS) {
      const { path, body } = PLAIN[client](`${upstream}.half`, false)
      const response = await postUntilBroken(service, key, path, body)
      t.equal(response.status, 502, `${client} to ${upstream}`)
      t.match(await rowOf(service, key, traceOf(response)), { status: 'error', cost: '0' })
    }
  })
})
