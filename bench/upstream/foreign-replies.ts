/**
 * The same answers in the other chat protocols, for gateways that translate. Each stream has as many beats as the
 * chat-completions stream, and becomes as many chunks.
 */
import { ANSWER, COMPLETION_TOKENS, PROMPT_TOKENS, TOKEN } from './replies.ts'

const named = (type: string, data: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
const unnamed = (data: object): string => `data: ${JSON.stringify(data)}\n\n`

const MESSAGE_START =
  named('message_start', {
    message: {
      id: 'msg_bench',
      type: 'message',
      role: 'assistant',
      model: 'bench',
      content: [],
      stop_reason: null,
      usage: { input_tokens: PROMPT_TOKENS, output_tokens: 1 },
    },
  }) + named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
const MESSAGE_DELTA = named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: TOKEN } })
const messageEnd = (chunks: number): string =>
  named('content_block_stop', { index: 0 }) +
  named('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: chunks - 2 } }) +
  named('message_stop', {})

const usageMetadata = (chunks: number) => ({
  promptTokenCount: PROMPT_TOKENS,
  candidatesTokenCount: chunks - 2,
  totalTokenCount: PROMPT_TOKENS + chunks - 2,
})
const CANDIDATE_DELTA = unnamed({
  candidates: [{ index: 0, content: { role: 'model', parts: [{ text: TOKEN }] } }],
  modelVersion: 'bench',
  responseId: 'bench',
})
const candidateEnd = (chunks: number): string =>
  unnamed({
    candidates: [{ index: 0, content: { role: 'model', parts: [] }, finishReason: 'STOP' }],
    usageMetadata: usageMetadata(chunks),
    modelVersion: 'bench',
    responseId: 'bench',
  })
/** Empty: in this protocol the first text carries the role. */
const COMMENT = ': bench\n\n'

/** The bodies of a small call. */
export const MESSAGES_BODY = JSON.stringify({
  id: 'msg_bench',
  type: 'message',
  role: 'assistant',
  model: 'bench',
  content: [{ type: 'text', text: ANSWER }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: PROMPT_TOKENS, output_tokens: COMPLETION_TOKENS },
})
export const GENERATE_CONTENT_BODY = JSON.stringify({
  candidates: [{ index: 0, content: { role: 'model', parts: [{ text: ANSWER }] }, finishReason: 'STOP' }],
  usageMetadata: usageMetadata(COMPLETION_TOKENS + 2),
  modelVersion: 'bench',
  responseId: 'bench',
})

/** Returns the event at a position of a stream of `chunks`. */
export type StreamWords = (index: number, chunks: number) => string

const words =
  (first: string, middle: string, last: (chunks: number) => string): StreamWords =>
  (index, chunks) => {
    if (index === 0) return first
    return index === chunks - 1 ? last(chunks) : middle
  }

export const messagesWords = words(MESSAGE_START, MESSAGE_DELTA, messageEnd)
export const generateContentWords = words(COMMENT, CANDIDATE_DELTA, candidateEnd)
