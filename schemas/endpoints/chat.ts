/** The chat endpoints of the four client protocols, embeddings, rerank and transcriptions. */
import { z } from 'zod'
import {
  chatCompletion,
  compaction,
  contentTokenCount,
  generateContentAnswer,
  message,
  response,
  textCompletion,
  tokenCount,
} from '../chat/answers.ts'
import { chatCompletionsRequest } from '../chat/chat-completions.ts'
import { completionsRequest } from '../chat/completions.ts'
import { countContentTokensRequest, generateContentRequest } from '../chat/generate-content.ts'
import { countTokensRequest, messagesRequest } from '../chat/messages.ts'
import {
  embeddingsAnswer,
  embeddingsRequest,
  rerankAnswer,
  rerankRequest,
  transcriptionAnswer,
  transcriptionForm,
} from '../chat/passed.ts'
import { responsesRequest } from '../chat/responses.ts'
import type { FailureCode } from '../failure.ts'
import { idempotencyHeader } from '../idempotency-key.ts'
import { CONVERSATION_ENDPOINTS } from './conversations.ts'
import { EVENT_STREAM, jsonAnswer, type RouteDescription } from './endpoint.ts'
import { STORED_RESPONSE_ENDPOINTS } from './stored-responses.ts'

const TAG = 'Chat'
/** The models that the demonstration serves by each protocol. */
const MODEL = 'sonata-large'
const MESSAGES_MODEL = 'ballad-large'
const HELLO = { role: 'user', content: 'Hello!' } as const

export const maxPriceHeader = {
  'x-max-price': z
    .string()
    .optional()
    .describe(
      'The most that the call may cost, credits: a higher estimate is 400. `max_price` of the key counts too.',
    ),
} as const

const billedHeaders = z.object({
  ...maxPriceHeader,
  ...idempotencyHeader('a repeated call is answered, not billed again.'),
  session_id: z
    .string()
    .optional()
    .describe('Pins a conversation to one upstream channel. `session-id` and `x-session-id` are the same.'),
  conversation_id: z
    .string()
    .optional()
    .describe('The same under another name, where there is no session; also as `conversation-id`.'),
  traceparent: z
    .string()
    .optional()
    .describe('W3C trace context: where the service exports traces, the call is part of it.'),
})
const versionHeaders = z.object({
  'anthropic-version': z
    .string()
    .optional()
    .describe('The protocol version: any passes; without one, 2023-06-01.'),
  'anthropic-beta': z.string().optional().describe('Passed on to channels of the same protocol.'),
})
const messagesHeaders = billedHeaders.extend(versionHeaders.shape)

const answerHeaders = {
  'x-served-model': 'The model that answers in place of the one that was asked for.',
} as const
const TRANSLATION_HEADERS = {
  'x-protocol-translation':
    'Where the call is translated: the protocols, such as `chat-completions to messages`.',
  'x-protocol-warning': 'Names of the fields that the translation left out, with `; ` between them.',
  'x-protocol-changes':
    'Fields that the upstream gets otherwise than they were sent, each with how, with `; ` between them.',
} as const

const ESTIMATE_HEADER = {
  'x-protocol-warning': 'Says so where the count is an estimate by a tokenizer.',
} as const

const CHAT_FAILURES: readonly FailureCode[] = [
  'invalid_request',
  'model_not_found',
  'model_not_allowed',
  'tool_not_supported',
  'invalid_idempotency_key',
  'quota_exceeded',
  'idempotency_key_reuse',
  'idempotency_in_flight',
  'idempotency_response_not_cached',
  'request_too_large',
  'rate_limit_exceeded',
  'upstream_error',
  'upstream_unreachable',
  'no_channel_available',
  'upstream_timeout',
]

const COUNT_FAILURES: readonly FailureCode[] = [
  'invalid_request',
  'model_not_found',
  'model_not_allowed',
  'request_too_large',
  'rate_limit_exceeded',
  'upstream_error',
  'upstream_unreachable',
  'no_channel_available',
  'upstream_timeout',
]

const NATIVE =
  'Where the channel speaks the same protocol, fields that are not listed go to the upstream unchanged, and so do its answers. Fields that choose model, route or price past the gateway, and ids of objects stored at the upstream, are refused.'
const BILLED = 'Billed by tokens; the estimate must be covered by the balance beforehand.'
const COUNTED =
  'Free. The channel of the model counts if it speaks the protocol; if it serves the protocol by translation, the gateway estimates the count by a tokenizer.'
const AGENTS =
  'With an agent key, for which this is the one endpoint, the agent answers: its persona comes first, its model, tools and knowledge are used, and model, tools and functions of the body are ignored.'
const STREAM_END = 'A stream that ends without its closing mark was cut off.'

const generated = { tag: TAG, key: 'anywhere', answerHeaders, failures: CHAT_FAILURES } as const

/** Endpoints whose requests pass to the same path of a channel. */
const passed = {
  ...generated,
  headers: billedHeaders,
  failures: CHAT_FAILURES.filter((code) => code !== 'tool_not_supported'),
  failureStatus: { model_not_found: 404 },
} as const
const PASSED =
  'Served for models whose `endpoint_type` is of this endpoint; any other model is 404. Request and answer pass unchanged except for the name of the model.'

const pathModel = z.object({ model: z.string().describe('Model id or alias.') })
const generateContent = {
  ...generated,
  errorShape: 'generate-content',
  pathParameters: pathModel,
  headers: billedHeaders,
  body: { name: 'GenerateContentRequest', schema: generateContentRequest },
  example: { contents: [{ role: 'user', parts: [{ text: HELLO.content }] }] },
} as const

export const chatEndpoints: readonly RouteDescription[] = [
  {
    ...generated,
    name: 'createChatCompletion',
    summary: 'Answer a conversation, chat-completions protocol.',
    details: `${NATIVE} Other channels are reached by translation, which X-Protocol-Translation names; X-Protocol-Warning lists the names of fields that were dropped, X-Protocol-Changes fields that were changed. ${BILLED} ${AGENTS}`,
    headers: billedHeaders,
    body: { name: 'ChatCompletionRequest', schema: chatCompletionsRequest },
    example: { model: MODEL, stream: true, messages: [HELLO] },
    failures: [...CHAT_FAILURES, 'model_no_vision'],
    answerHeaders: { ...answerHeaders, ...TRANSLATION_HEADERS },
    answers: [
      jsonAnswer('ChatCompletion', chatCompletion),
      {
        contentType: EVENT_STREAM,
        says: `With stream: chunks as data lines, then data: [DONE]. ${STREAM_END}`,
      },
    ],
  },
  {
    ...generated,
    name: 'createCompletion',
    summary: 'Answer a prompt with text, for clients of the older completions endpoint.',
    details: `The prompt becomes the message of a chat, and the answer its text. Other fields are those of POST /v1/chat/completions. ${BILLED}`,
    headers: billedHeaders,
    body: { name: 'CompletionRequest', schema: completionsRequest },
    example: { model: MODEL, prompt: HELLO.content },
    answerHeaders: { ...answerHeaders, ...TRANSLATION_HEADERS },
    answers: [
      jsonAnswer('Completion', textCompletion),
      {
        contentType: EVENT_STREAM,
        says: `With stream: text completions as data lines, then data: [DONE]. ${STREAM_END}`,
      },
    ],
  },
  {
    ...generated,
    name: 'createMessage',
    summary: 'Answer a conversation, messages protocol.',
    details: `${NATIVE} ${BILLED}`,
    errorShape: 'messages',
    headers: messagesHeaders,
    body: { name: 'MessagesRequest', schema: messagesRequest },
    example: { model: MESSAGES_MODEL, max_tokens: 1024, messages: [HELLO] },
    answers: [
      jsonAnswer('Message', message),
      {
        contentType: EVENT_STREAM,
        says: `With stream: events from message_start to message_stop. ${STREAM_END}`,
      },
    ],
  },
  {
    ...generated,
    name: 'countMessageTokens',
    summary: 'Count the tokens of a conversation without answering it.',
    details: COUNTED,
    errorShape: 'messages',
    headers: versionHeaders,
    answerHeaders: ESTIMATE_HEADER,
    body: { name: 'CountTokensRequest', schema: countTokensRequest },
    example: { model: MESSAGES_MODEL, messages: [HELLO] },
    answers: [jsonAnswer('TokenCount', tokenCount)],
    failures: COUNT_FAILURES,
  },
  {
    ...generateContent,
    name: 'generateContent',
    summary: 'Answer a conversation in one piece, generate-content protocol.',
    details: `${NATIVE} ${BILLED}`,
    answers: [jsonAnswer('GenerateContentResponse', generateContentAnswer)],
  },
  {
    ...generateContent,
    name: 'streamGenerateContent',
    summary: 'Answer a conversation as a stream, generate-content protocol.',
    details: `${NATIVE} ${BILLED}`,
    query: z.object({
      alt: z.string().optional().describe('sse: server-sent events; without it one JSON array, in pieces.'),
    }),
    answers: [
      { contentType: EVENT_STREAM, says: `With alt=sse: answers as data lines. ${STREAM_END}` },
      jsonAnswer('GenerateContentResponses', z.array(generateContentAnswer)),
    ],
  },
  {
    ...generateContent,
    name: 'countContentTokens',
    summary: 'Count the tokens of a conversation without answering it, generate-content protocol.',
    details: COUNTED,
    headers: z.object({}),
    answerHeaders: ESTIMATE_HEADER,
    body: { name: 'CountContentTokensRequest', schema: countContentTokensRequest },
    answers: [jsonAnswer('ContentTokenCount', contentTokenCount)],
    failures: COUNT_FAILURES,
  },
  {
    ...generated,
    name: 'createResponse',
    summary: 'Answer a conversation, responses protocol.',
    details: `${NATIVE} A turn goes on with previous_response_id where the channel keeps responses; else the full history goes in input. ${BILLED}`,
    headers: billedHeaders,
    failures: [...CHAT_FAILURES, 'not_found'],
    body: { name: 'ResponsesRequest', schema: responsesRequest },
    example: { model: MODEL, instructions: 'Be brief.', input: [HELLO] },
    answers: [
      jsonAnswer('Response', response),
      {
        contentType: EVENT_STREAM,
        says: `With stream: events from response.created to response.completed. ${STREAM_END}`,
      },
    ],
  },
  {
    name: 'openResponseSocket',
    tag: TAG,
    key: 'anywhere',
    summary: 'Open a WebSocket for calls of the responses protocol.',
    details:
      'An upgrade. Each message {"type": "response.create"} with the fields of a request is a call like POST /v1/responses, billed the same, and each event of its stream comes back as a message.',
    answers: [
      {
        status: 101,
        says: 'The connection is a WebSocket: events of responses, and errors as {"type": "error", "status", "error"}.',
      },
    ],
    failures: ['method_not_allowed', 'rate_limit_exceeded'],
    failureStatus: { method_not_allowed: [405, 426], rate_limit_exceeded: [426, 429] },
  },
  {
    ...generated,
    name: 'compactResponse',
    summary: 'Make a long conversation shorter, responses protocol.',
    details: `Served where a channel of the model speaks the protocol. The items of the answer are the input of the next request, as they are. ${BILLED}`,
    headers: billedHeaders,
    failures: [...CHAT_FAILURES, 'not_found'],
    body: { name: 'ResponsesRequest', schema: responsesRequest },
    example: { model: MODEL, input: [HELLO] },
    answers: [jsonAnswer('Compaction', compaction)],
  },
  {
    ...generated,
    name: 'countResponseTokens',
    summary: 'Count the tokens of a conversation without answering it, responses protocol.',
    details: COUNTED,
    answerHeaders: ESTIMATE_HEADER,
    body: { name: 'ResponsesRequest', schema: responsesRequest },
    example: { model: MODEL, input: [HELLO] },
    answers: [jsonAnswer('TokenCount', tokenCount)],
    failures: [...COUNT_FAILURES, 'not_found'],
  },
  ...STORED_RESPONSE_ENDPOINTS,
  ...CONVERSATION_ENDPOINTS,
  {
    ...passed,
    name: 'createEmbedding',
    summary: 'Make embeddings of texts.',
    details: `${PASSED} ${BILLED}`,
    body: { name: 'EmbeddingsRequest', schema: embeddingsRequest },
    answers: [jsonAnswer('Embeddings', embeddingsAnswer)],
  },
  {
    ...passed,
    name: 'rerank',
    summary: 'Rank documents by how well they answer a query.',
    details: `${PASSED} Billed by searches as the upstream reports them, else one for each 100 documents; the balance must cover the estimate.`,
    body: { name: 'RerankRequest', schema: rerankRequest },
    answers: [jsonAnswer('Ranking', rerankAnswer)],
  },
  {
    ...passed,
    name: 'transcribe',
    summary: 'Transcribe speech to text.',
    details: `${PASSED} Billed by the seconds that the upstream reports, else by the length of the file, at the price of a minute; the balance must cover the estimate.`,
    form: { name: 'TranscriptionForm', schema: transcriptionForm },
    answers: [
      jsonAnswer('Transcription', transcriptionAnswer),
      {
        contentType: EVENT_STREAM,
        says: 'With stream: events from transcript.text.delta to transcript.text.done.',
      },
      { contentType: 'text/plain', says: 'With response_format text, srt or vtt.' },
    ],
  },
]
