/** What reads texts of clients and upstreams, each with the texts around the value that it is given. */
import { Buffer } from 'node:buffer'
import { readUpstreamRefusal } from '../../pipelines/calls/upstream-error.ts'
import { rejectsUsageOption } from '../../pipelines/chat/forward/route-choice.ts'
import { Failure } from '../../schemas/failure.ts'
import { clipComposeRequest } from '../../schemas/media/clips.ts'
import { imageEditRequest, imageRequest } from '../../schemas/media/images.ts'
import { speechRequest } from '../../schemas/media/speech.ts'
import { rewriteRequest } from '../../src/channels/chat/chat-completions.ts'
import { prefersSound } from '../../src/core/accepted-format.ts'
import { redact } from '../../src/core/call-log/redact.ts'
import { toCanonicalBody } from '../../src/core/json/canonical.ts'
import { hasTextBeyond } from '../../src/core/media/inline-files.ts'
import { readGridPrompt, withoutVideoFlags } from '../../src/core/media/prompt-flags.ts'
import { normalizeEmail } from '../../src/core/people/email.ts'
import { findPasswordProblem } from '../../src/core/people/password-policy.ts'
import { aroundHits } from '../../src/core/search/around-hits.ts'
import { pageImpacts } from '../../src/core/search/impact.ts'
import { nameKey } from '../../src/core/search/name-key.ts'
import { parseQuery } from '../../src/core/search/query.ts'
import { cutSnippet } from '../../src/core/search/snippet.ts'
import { readPage } from '../../src/markdown/page.ts'
import { FileProblemError } from '../../src/markdown/problem.ts'
import { mcpServer } from '../../src/mcp/server.ts'
import { readAgentRequest } from '../../src/protocols/chat-completions/agent-body.ts'
import { protocolAdapter, READERS } from '../../src/protocols/registry.ts'
import { readJsonBody } from '../../src/protocols/request/client-json.ts'
import { readRefusedModel } from '../../src/protocols/request/refused-model.ts'
import { encodeOptions } from '../src/protocols/encode-options.ts'

export interface Reader {
  /** The texts that are read; `%` stands for the value. */
  readonly around: readonly string[]
  readonly read: (text: string) => unknown
}

/** Refusals are answers. */
const orRefused = (read: () => unknown): unknown => {
  try {
    return read()
  } catch (error) {
    if (error instanceof Failure || error instanceof FileProblemError) return error
    throw error
  }
}

const ANYWHERE = ['%']

const CHAT = [
  '{"model":"m","messages":[{"role":"user","content":"a"}],"x":%}',
  '{"model":"m","messages":%}',
  '{"model":"m","messages":[{"role":"user","content":%}]}',
  '{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":%}]}]}',
  '{"model":"m","messages":[{"role":"assistant","x":%,"content":"a","tool_calls":%}]}',
  '{"model":"m","messages":[{"role":"user","content":"a"}],"tools":%}',
  '{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":%}}]}',
  '{"model":"m","messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":%}}}',
  '{"model":"m","messages":[{"role":"user","content":"a"}],"metadata":%,"stop":%}',
  '{"model":"m","stream":true,"messages":[{"role":"user","content":"a"}],"stream_options":%}',
  '{"messages":[{"role":"user","content":"a"}],"x":%,"model":"m"}',
]
const MESSAGES = [
  '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}],"x":%}',
  '{"model":"m","max_tokens":9,"messages":%}',
  '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":%}]}],"system":%}',
  '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"compaction","tool_changes":%}]}]}',
  '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%}]}',
  '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}],"tools":[{"name":"f","input_schema":%}]}',
  '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}],"tools":%}',
]
const RESPONSES = [
  '{"model":"m","input":"a","x":%}',
  '{"model":"m","input":%}',
  '{"model":"m","input":[{"role":"user","content":%}]}',
  '{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":%}]}]}',
  '{"model":"m","input":"a","tools":%}',
  '{"model":"m","input":"a","tools":[{"type":"function","name":"f","parameters":%}]}',
  '{"model":"m","input":"a","tools":[{"type":"namespace","name":"f","tools":%}]}',
  '{"model":"m","input":"a","metadata":%}',
]
const GENERATE = [
  '{"contents":[{"parts":[{"text":"a"}]}],"x":%}',
  '{"contents":%}',
  '{"contents":{"parts":%}}',
  '{"contents":[{"parts":[{"text":%}]}]}',
  '{"contents":[{"parts":[{"text":"a"}]}],"tools":%}',
  '{"contents":[{"parts":[{"text":"a"}]}],"tools":[{"functionDeclarations":%}]}',
  '{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"responseSchema":%}}',
  '{"contents":[{"parts":[{"functionCall":{"name":"f","args":%}}]}]}',
]

const dialect = (name: keyof typeof READERS, around: readonly string[]): Reader => ({
  around,
  read: (text) => READERS[name].read({ model: 'm', query: '', body: Buffer.from(text) }),
})

/** Encodes what the dialect takes, as the channels do. */
const translated = (to: 'messages' | 'generate-content', upstreamModel: string): Reader => ({
  around: [
    ...CHAT,
    // Arguments of a call and results of a tool are texts with JSON in them.
    '{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":&}}]},{"role":"tool","tool_call_id":"1","content":&}]}',
  ],
  read(text) {
    const call = READERS['chat-completions'].read({
      query: '',
      body: Buffer.from(text),
    })
    const adapter = protocolAdapter('chat-completions', to)
    orRefused(() => adapter.urlsToFetch(call, 'bedrock'))
    return adapter.encodeRequest(call, encodeOptions({ upstreamModel }))
  },
})

const CHAT_CALL = READERS['chat-completions'].read({
  query: '',
  body: Buffer.from('{"model":"m","stream":true,"messages":[{"role":"user","content":"a"}]}'),
})
const GENERATE_CALL = READERS['generate-content-stream'].read({
  model: 'm',
  query: 'alt=sse',
  body: Buffer.from('{"contents":[{"parts":[{"text":"a"}]}]}'),
})

/** So much arrives together. */
const PIECE_BYTES = 16_384

/** Reads the answer of an upstream in events, in pieces, and as a whole. */
const answered = (
  from: 'chat-completions' | 'messages' | 'responses' | 'generate-content',
  to: 'chat-completions' | 'messages' | 'responses' | 'generate-content',
  around: readonly string[],
): Reader => ({
  around,
  read(text) {
    const adapter = protocolAdapter(from, to)
    const call = from === 'generate-content' ? GENERATE_CALL : CHAT_CALL
    const stream = adapter.openStream(call)
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) stream.push(bytes.subarray(at, at + PIECE_BYTES))
    stream.end()
    adapter.readWhole(call, bytes)
  },
})

const CHAT_EVENTS = [
  'data: {"choices":[{"index":0,"delta":{"content":%}}]}\n\n',
  'data: {"choices":[{"index":0,"delta":{"content":"a","tool_calls":%}}],"usage":%}\n\n',
  'data: %\n\n',
  '{"choices":[{"message":{"content":%}}],"usage":%}',
]
const MESSAGES_EVENTS = [
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%}}\n\n',
  'data: {"type":"message_start","message":{"id":"a","content":[],"usage":%}}\n\n',
  'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":%}}\n\n',
  '{"type":"message","content":[{"type":"text","text":%,"citations":%}],"usage":%}',
]
const GENERATE_EVENTS = [
  'data: {"candidates":[{"content":{"parts":[{"text":%}]}}],"usageMetadata":%}\n\n',
  'data: {"candidates":%}\n\n',
  '{"candidates":[{"content":{"parts":%},"groundingMetadata":{"groundingChunks":%,"groundingSupports":%}}]}',
]
const RESPONSES_EVENTS = [
  'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":%}\n\n',
  'data: {"type":"response.completed","response":{"output":%,"usage":%}}\n\n',
  '{"object":"response","output":[{"type":"message","content":%}],"usage":%}',
]

/** Of a text in JSON the text itself; of any other value its JSON. */
function plain(value: string): string {
  const quoted = value.startsWith('"') && value.endsWith('"')
  return quoted ? (JSON.parse(value) as string) : value
}

const textReader = (read: (text: string) => unknown): Reader => ({
  around: ANYWHERE,
  read: (text) => read(plain(text)),
})

const server = mcpServer('0.0.0')
const nothingFound = async () => {
  throw new Failure('not_found', 'There is nothing.')
}
const TOOLS = new Proxy({}, { get: () => nothingFound }) as Parameters<typeof server.answer>[1]

export const GROWTH_READERS: Readonly<Record<string, Reader>> = {
  'chat-completions': dialect('chat-completions', CHAT),
  messages: dialect('messages', MESSAGES),
  'messages, to count tokens': dialect('messages-count', MESSAGES),
  responses: dialect('responses', RESPONSES),
  'generate-content': dialect('generate-content', GENERATE),
  'generate-content, to count tokens': dialect('generate-content-count', [
    ...GENERATE.slice(0, 3),
    '{"generateContentRequest":{"model":"models/m","contents":%}}',
  ]),
  agents: { around: CHAT.slice(0, 5), read: (text) => readAgentRequest(Buffer.from(text)) },
  'chat-completions to messages': translated('messages', 'claude-sonnet-4-5'),
  'chat-completions to generate-content': translated('generate-content', 'gemini-2.5-pro'),
  'chat-completions to an older generate-content': translated('generate-content', 'gemini-1.5-pro'),
  'requests for stricter upstreams': {
    around: CHAT.slice(0, 5),
    read: (text) => rewriteRequest(Buffer.from(text), ['known-fields-only', 'nine-character-tool-call-ids']),
  },
  'what requests are compared by': {
    around: [...ANYWHERE, ...CHAT.slice(0, 1)],
    read: (text) => toCanonicalBody(Buffer.from(text)),
  },
  'the model of a refused request': {
    around: CHAT.slice(0, 1),
    read: (text) => readRefusedModel(Buffer.from(text)),
  },
  'the length of a body without its files': {
    around: ANYWHERE,
    read: (text) => [...hasTextBeyond({ bytes: Buffer.from(text), isWhole: true }, 10_000_000)],
  },
  images: {
    around: [
      '{"model":"m","prompt":%}',
      '{"model":"m","prompt":"a","image":%,"size":%}',
      '{"model":"m","prompt":"a","x":%}',
    ],
    read: (text) => readJsonBody(imageRequest, Buffer.from(text)),
  },
  'edits of images': {
    around: ['{"model":"m","prompt":%,"image":%,"mask":%}'],
    read: (text) => readJsonBody(imageEditRequest, Buffer.from(text)),
  },
  speech: {
    around: ['{"model":"m","input":%,"voice":%}', '{"model":"m","input":"a","voice":"b","x":%}'],
    read: (text) => readJsonBody(speechRequest, Buffer.from(text)),
  },
  clips: {
    around: ['{"clips":%,"title":%}', '{"x":%}'],
    read: (text) => readJsonBody(clipComposeRequest, Buffer.from(text)),
  },
  'prompts of videos': textReader(withoutVideoFlags),
  'prompts of images': textReader(readGridPrompt),
  'messages of the model context protocol': {
    around: [
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_by_tag","arguments":{"tag":%}}}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_wiki","arguments":%}}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%}',
      '{"jsonrpc":"2.0","id":1,"method":%}',
      '%',
    ],
    read: (text) =>
      server
        .answer(
          {
            accept: '',
            contentType: 'application/json',
            protocolVersion: '',
            method: '',
            name: '',
            body: Buffer.from(text),
          },
          TOOLS,
          new AbortController().signal,
        )
        .catch((error: unknown) => {
          if (!(error instanceof Failure)) throw error
        }),
  },
  'pages of a knowledge base': {
    around: [
      '%',
      '---\ntitle: %\ntags: [%]\nx: %\n---\n%',
      '# %\n\n- %\n\n> %\n\n| % | % |\n|---|---|\n| % | % |\n',
    ],
    read: (text) => readPage(Buffer.from(plain(text)), 'a.md'),
  },
  'the search index': textReader((text) =>
    pageImpacts({ title: text.slice(0, 300), aliases: [], tags: [], summary: '', text }),
  ),
  'queries of a search': textReader(parseQuery),
  'names of pages': textReader(nameKey),
  'snippets of a search': textReader((text) =>
    cutSnippet(
      text,
      new Map([
        ['word', 1],
        ['a', 1],
        ['漢', 1],
      ]),
    ),
  ),
  'the part of a page around its hits': textReader((text) => aroundHits(text, ['word', 'a', '漢'], 1_000)),
  emails: textReader(normalizeEmail),
  passwords: textReader((text) => findPasswordProblem(text, 'a@b.example')),
  'the Accept header': textReader(prefersSound),
  'errors of upstreams': {
    around: ['{"error":{"message":%,"param":%,"code":%}}', '%'],
    read: (text) =>
      redact(
        readUpstreamRefusal({}, 400, Buffer.from(text), null).message,
        ['upstream-model'],
        ['secret-of-the-channel'],
      ),
  },
  'texts for the call log': textReader((text) => redact(text, ['upstream-model'], ['secret-of-the-channel'])),
  'requests whose usage option is refused': {
    around: CHAT.slice(0, 1),
    read: (text) =>
      rejectsUsageOption(
        { protocol: 'chat-completions', isTranslated: false } as Parameters<typeof rejectsUsageOption>[0],
        { ...CHAT_CALL, source: { body: Buffer.from(text), request: {} } },
        { code: 'invalid_request', message: 'Unknown field stream_options' } as Parameters<
          typeof rejectsUsageOption
        >[2],
      ),
  },
  'answers of chat-completions': answered('chat-completions', 'chat-completions', CHAT_EVENTS),
  'answers of messages': answered('messages', 'messages', MESSAGES_EVENTS),
  'answers of responses': answered('responses', 'responses', RESPONSES_EVENTS),
  'answers of generate-content': answered('generate-content', 'generate-content', GENERATE_EVENTS),
  'answers of messages for chat-completions': answered('chat-completions', 'messages', MESSAGES_EVENTS),
  'answers of generate-content for chat-completions': answered(
    'chat-completions',
    'generate-content',
    GENERATE_EVENTS,
  ),
}

/** Returns the text around the value: `%` is the value, `&` the value as a text. */
export const filled = (around: string, value: string): string =>
  around.includes('&') ? around.split('&').join(JSON.stringify(value)) : around.split('%').join(value)

/** Reads a text; a refusal is an answer. */
export const readGrowing = (reader: Reader, around: string, value: string): unknown =>
  orRefused(() => reader.read(filled(around, value)))
