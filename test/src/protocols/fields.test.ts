/**
 * Each field of a request of messages, responses and generate-content, as the vendors' SDKs know them, reaches an upstream of
 * another protocol, is named in the warning, or is refused. `translate.test.ts` does the same for chat-completions.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { protocolAdapter } from '../../../src/protocols/registry.ts'
import { encodeOptions } from './encode-options.ts'
import { chatWith } from './request/plain-requests.ts'

type Client = Exclude<ChatProtocol, 'chat-completions'>

interface Case {
  /** A value with a meaning. */
  readonly value: unknown
  /** Other fields that it requires. */
  readonly beside?: object
  /** Values that ask for the default. */
  readonly defaults?: readonly unknown[]
}

const SCHEMA = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
}
const MESSAGES_TOOL = { name: 'f', input_schema: SCHEMA }
const RESPONSES_TOOL = { type: 'function', name: 'f', parameters: SCHEMA, strict: false }
const DECLARED = { functionDeclarations: [{ name: 'f', parametersJsonSchema: SCHEMA }] }
const FORCED = { functionCallingConfig: { mode: 'ANY' } }
const JSON_TYPE = { responseMimeType: 'application/json' }
const PICTURE = { responseModalities: ['TEXT', 'IMAGE'] }

/** Fields that the gateway itself obeys. */
const OBEYED: Readonly<Record<Client, readonly string[]>> = {
  messages: ['model', 'messages', 'stream', 'max_tokens', 'betas'],
  responses: ['model', 'input', 'stream', 'stream_options', 'max_output_tokens'],
  'generate-content': ['contents', 'generationConfig', 'maxOutputTokens'],
}

const FIELDS: Readonly<Record<Client, Readonly<Record<string, Case>>>> = {
  messages: {
    system: { value: 'Be brief.' },
    stop_sequences: { value: ['END'], defaults: [[]] },
    temperature: { value: 0.5 },
    top_p: { value: 0.5 },
    top_k: { value: 4 },
    metadata: { value: { user_id: 'u-1' }, defaults: [{}] },
    thinking: {
      value: { type: 'enabled', budget_tokens: 2000 },
      beside: { max_tokens: 4000 },
      defaults: [null],
    },
    tools: { value: [MESSAGES_TOOL], defaults: [[]] },
    tool_choice: { value: { type: 'any' }, beside: { tools: [MESSAGES_TOOL] } },
    cache_control: { value: { type: 'ephemeral' }, defaults: [null] },
    output_config: { value: { effort: 'low' } },
    output_format: { value: { type: 'json_schema', schema: SCHEMA } },
    context_management: { value: { edits: [{ type: 'clear_tool_uses_20250919' }] } },
    compaction: { value: { type: 'auto' } },
    speed: { value: 'fast' },
    fallbacks: { value: [{ model: 'm' }] },
    fallback_credit_token: { value: 'x' },
    mcp_servers: { value: [{ type: 'url', url: 'https://a.example', name: 'a' }] },
    container: { value: 'c' },
    thread: { value: 't' },
    inference_geo: { value: 'us' },
    diagnostics: { value: { level: 'x' } },
    billing_policy: { value: 'x' },
    user_profile_id: { value: 'x' },
    workspace_id: { value: 'x' },
    // Other upstreams have no priority that the client could decline.
    service_tier: { value: undefined, defaults: ['auto', 'standard_only'] },
    something_new: { value: 1 },
  },
  responses: {
    instructions: { value: 'Be brief.' },
    reasoning: { value: { effort: 'low' }, defaults: [null, { effort: null, summary: null }] },
    temperature: { value: 0.5 },
    top_p: { value: 0.5 },
    tools: { value: [RESPONSES_TOOL], defaults: [[]] },
    tool_choice: { value: 'required', beside: { tools: [RESPONSES_TOOL] } },
    parallel_tool_calls: { value: false, beside: { tools: [RESPONSES_TOOL] }, defaults: [true] },
    text: {
      value: { format: { type: 'json_schema', name: 'x', schema: SCHEMA } },
      defaults: [{ format: { type: 'text' }, verbosity: 'medium' }],
    },
    user: { value: 'u-1' },
    safety_identifier: { value: 'u-1' },
    metadata: { value: { order: '7' }, defaults: [{}] },
    // Codex sends it with each call, to its own vendor.
    client_metadata: { value: undefined, defaults: [{ a: 'b' }] },
    prompt_cache_key: { value: 'k' },
    prompt_cache_options: { value: { mode: 'explicit' } },
    prompt_cache_retention: { value: '24h' },
    service_tier: { value: 'flex', defaults: ['auto', 'default'] },
    store: { value: true, defaults: [false, null] },
    include: { value: ['message.output_text.logprobs'], defaults: [['reasoning.encrypted_content'], []] },
    truncation: { value: 'auto', defaults: ['disabled'] },
    top_logprobs: { value: 3, defaults: [0] },
    max_tool_calls: { value: 3 },
    presence_penalty: { value: 0.5, defaults: [0] },
    frequency_penalty: { value: 0.5, defaults: [0] },
    context_management: { value: [{ type: 'compaction', compact_threshold: 2000 }] },
    moderation: { value: { model: 'm' } },
    previous_response_id: { value: 'resp_1', defaults: [null] },
    conversation: { value: 'conv_1', defaults: [null] },
    background: { value: true, defaults: [false, null] },
    prompt: { value: { id: 'pmpt_1' }, defaults: [null] },
    something_new: { value: 1 },
  },
  'generate-content': {
    systemInstruction: { value: { parts: [{ text: 'Be brief.' }] } },
    tools: { value: [DECLARED], defaults: [[]] },
    toolConfig: { value: FORCED, beside: { tools: [DECLARED] } },
    safetySettings: { value: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] },
    labels: { value: { order: '7' }, defaults: [{}] },
    cachedContent: { value: 'cachedContents/1' },
    serviceTier: { value: 'flex' },
    store: { value: true },
    modelArmorConfig: { value: { a: 1 } },
    something_new: { value: 1 },
  },
}

/** Fields of `generationConfig`. */
const CONFIG: Readonly<Record<string, Case>> = {
  temperature: { value: 0.5 },
  topP: { value: 0.5 },
  topK: { value: 3 },
  candidateCount: { value: 2, defaults: [1] },
  stopSequences: { value: ['END'], defaults: [[]] },
  seed: { value: 7 },
  presencePenalty: { value: 0.5, defaults: [0] },
  frequencyPenalty: { value: 0.5, defaults: [0] },
  responseMimeType: { value: 'application/json', defaults: ['text/plain'] },
  responseSchema: { value: { type: 'OBJECT', properties: { a: { type: 'STRING' } } }, beside: JSON_TYPE },
  responseJsonSchema: { value: SCHEMA, beside: JSON_TYPE },
  responseFormat: { value: { type: 'x' } },
  responseLogprobs: { value: true, defaults: [false] },
  logprobs: { value: 3, beside: { responseLogprobs: true } },
  responseModalities: { value: ['TEXT', 'IMAGE'], defaults: [['TEXT']] },
  thinkingConfig: { value: { thinkingBudget: 2000 }, defaults: [{}] },
  speechConfig: { value: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } } },
  imageConfig: { value: { aspectRatio: '1:1' }, beside: PICTURE },
  mediaResolution: { value: 'MEDIA_RESOLUTION_LOW' },
  audioTimestamp: { value: true },
  audioTranscriptionConfig: { value: { a: 1 } },
  translationConfig: { value: { a: 1 } },
  enableAffectiveDialog: { value: true },
  enableEnhancedCivicAnswers: { value: true },
  routingConfig: { value: { autoMode: {} } },
  modelSelectionConfig: { value: { a: 1 } },
  something_new: { value: 1 },
}

const MODELS: Readonly<Record<ChatProtocol, string>> = {
  'chat-completions': 'gpt-5.5',
  messages: 'claude-opus-5',
  'generate-content': 'gemini-3-flash',
  responses: 'gpt-5.5',
}

/** Returns the upstream's request and the named fields, or the refusal. */
function send(client: Client, upstream: ChatProtocol, more: object): string {
  try {
    const options = encodeOptions({ upstreamModel: MODELS[upstream] })
    const encoded = protocolAdapter(client, upstream).encodeRequest(chatWith(client, more), options)
    const { body, dropped, changed } = encoded
    return JSON.stringify([body.toString(), dropped, changed])
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return error.message
  }
}

for (const client of ['messages', 'responses', 'generate-content'] as const)
  for (const upstream of CHAT_PROTOCOLS.filter((other) => other !== client))
    t.test(`${client} to ${upstream}`, async (t) => {
      const check = (field: string, { value, beside = {}, defaults = [] }: Case, within: string | null) => {
        const put = (more: object) => send(client, upstream, within === null ? more : { [within]: more })
        const without = put(beside)
        if (value !== undefined) t.not(put({ ...beside, [field]: value }), without, `${field} is not lost`)
        for (const usual of defaults)
          t.equal(put({ ...beside, [field]: usual }), without, `${field}: ${JSON.stringify(usual)}`)
      }
      for (const [field, each] of Object.entries(FIELDS[client])) check(field, each, null)
      if (client === 'generate-content')
        for (const [field, each] of Object.entries(CONFIG)) check(field, each, 'generationConfig')
    })

t.test('a client that only asks to see the reasoning', async (t) => {
  const shown = (client: Client, upstream: ChatProtocol, more: object) =>
    JSON.parse(JSON.parse(send(client, upstream, more))[0])
  const asked = { generationConfig: { thinkingConfig: { includeThoughts: true } } }
  t.same(shown('generate-content', 'responses', asked).reasoning, { summary: 'auto' })
  t.same(shown('generate-content', 'messages', asked).thinking, { type: 'adaptive', display: 'summarized' })
  const summarized = { reasoning: { summary: 'auto' } }
  t.same(shown('responses', 'generate-content', summarized).generationConfig.thinkingConfig, {
    includeThoughts: true,
  })
  t.same(shown('responses', 'messages', summarized).thinking, { type: 'adaptive', display: 'summarized' })
})

t.test('the lists contain every field that the SDKs know', async (t) => {
  const list = (file: string, opening: string): readonly string[] => {
    const text = readFileSync(new URL(`../../../node_modules/${file}`, import.meta.url), 'utf8')
    const [, after] = text.split(opening)
    return [...after!.slice(0, after!.indexOf('\n}')).matchAll(/^ {4}([a-zA-Z_]+)\??:/gm)].map(
      ([, name]) => name!,
    )
  }
  const opening = 'export interface MessageCreateParamsBase {'
  const known: Readonly<Record<Client, readonly string[]>> = {
    messages: [
      ...list('@anthropic-ai/sdk/resources/messages/messages.d.ts', opening),
      ...list('@anthropic-ai/sdk/resources/beta/messages/messages.d.ts', opening),
    ],
    responses: list(
      'openai/resources/responses/responses.d.ts',
      'export interface ResponseCreateParamsBase {',
    ),
    'generate-content': list('@google/genai/dist/genai.d.ts', 'export declare interface GenerationConfig {'),
  }
  for (const client of ['messages', 'responses', 'generate-content'] as const) {
    const listed = new Set([
      ...OBEYED[client],
      ...Object.keys(FIELDS[client]),
      ...(client === 'generate-content' ? Object.keys(CONFIG) : []),
    ])
    t.ok(known[client].length > 0)
    t.same(
      known[client].filter((name) => !listed.has(name)),
      [],
      client,
    )
  }
})
