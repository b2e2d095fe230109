/** An upstream of all four protocols that streams one answer and ends as the name of its model says. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import type { ChatProtocol } from '../../schemas/config/catalog.ts'
import { baseUrlAt, type ChannelPlan } from '../end-to-end/protocols/support.ts'
import type { Teardown } from './engines.ts'
import { serveHttp, textOf } from './http-server.ts'

export const USAGE = { input: 20, output: 12 } as const
const WORDS = ['The', ' quick', ' brown', ' fox', ' jumps', ' over', ' the', ' lazy', ' dog', '.']
export const TEXT = WORDS.join('')

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const named = (value: { readonly type: string }): string => `event: ${value.type}\n${event(value)}`

const chunk = (more: object): string =>
  event({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_800_000_000, model: 'm', ...more })
const ofChatCompletions = (): string[] => [
  chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] }),
  ...WORDS.map((content) => chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })),
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
  chunk({
    choices: [],
    usage: {
      prompt_tokens: USAGE.input,
      completion_tokens: USAGE.output,
      total_tokens: USAGE.input + USAGE.output,
    },
  }),
  'data: [DONE]\n\n',
]

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [],
  stop_reason: null,
}
const ofMessages = (): string[] => [
  named({
    type: 'message_start',
    message: { ...message, stop_sequence: null, usage: { input_tokens: USAGE.input, output_tokens: 1 } },
  } as never),
  named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } as never),
  ...WORDS.map((text) =>
    named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } } as never),
  ),
  named({ type: 'content_block_stop', index: 0 } as never),
  named({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: USAGE.output },
  } as never),
  named({ type: 'message_stop' }),
]

function ofResponses(): string[] {
  let number = 0
  const numbered = (type: string, more: object): string =>
    named({ type, sequence_number: number++, ...more } as never)
  const response = { id: 'resp_1', object: 'response', created_at: 1_800_000_000, model: 'm', tools: [] }
  const item = { id: 'msg_1', type: 'message', role: 'assistant' }
  const part = (text: string) => ({ type: 'output_text', text, annotations: [] })
  const at = { item_id: 'msg_1', output_index: 0, content_index: 0 }
  const whole = { ...item, status: 'completed', content: [part(TEXT)] }
  const usage = {
    input_tokens: USAGE.input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: USAGE.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: USAGE.input + USAGE.output,
  }
  return [
    numbered('response.created', { response: { ...response, status: 'in_progress', output: [] } }),
    numbered('response.output_item.added', {
      output_index: 0,
      item: { ...item, status: 'in_progress', content: [] },
    }),
    numbered('response.content_part.added', { ...at, part: part('') }),
    ...WORDS.map((delta) => numbered('response.output_text.delta', { ...at, delta, logprobs: [] })),
    numbered('response.output_text.done', { ...at, text: TEXT, logprobs: [] }),
    numbered('response.content_part.done', { ...at, part: part(TEXT) }),
    numbered('response.output_item.done', { output_index: 0, item: whole }),
    numbered('response.completed', {
      response: { ...response, status: 'completed', output: [whole], usage },
    }),
  ]
}

const candidateOf = (text: string, more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
})
const ofGenerateContent = (): object[] => [
  ...WORDS.slice(0, -1).map((text) => candidateOf(text)),
  {
    ...candidateOf(WORDS.at(-1)!, { finishReason: 'STOP' }),
    usageMetadata: {
      promptTokenCount: USAGE.input,
      candidatesTokenCount: USAGE.output,
      totalTokenCount: USAGE.input + USAGE.output,
    },
  },
]

/** Returns the answer in pieces; without `alt=sse` generate-content streams one JSON array. */
function piecesOf(protocol: ChatProtocol, url: string): string[] {
  switch (protocol) {
    case 'chat-completions':
      return ofChatCompletions()
    case 'messages':
      return ofMessages()
    case 'responses':
      return ofResponses()
    case 'generate-content': {
      const chunks = ofGenerateContent()
      if (url.includes('alt=sse')) return chunks.map(event)
      return chunks.map((value, at) => {
        const end = at === chunks.length - 1 ? ']' : ''
        return (at === 0 ? '[' : ',') + JSON.stringify(value) + end
      })
    }
  }
}

/** What only a complete stream of the protocol holds. */
export const LAST_EVENT: Readonly<Record<ChatProtocol, string>> = {
  'chat-completions': 'data: [DONE]\n\n',
  messages: '"message_stop"}\n\n',
  responses: '"response.completed"',
  'generate-content': '"finishReason"',
}

const WAIT_BETWEEN_PIECES_MS = 2

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = JSON.parse(await textOf(request)) as { model?: string; stream?: boolean }
  const url = request.url ?? ''
  const [, inPath, method] = /\/models\/([^/:?]+):(\w+)/.exec(url) ?? []
  const [protocol, how = '', ms = '0'] = (inPath ?? body.model ?? '').split('.')
  const isStream = method === undefined ? body.stream === true : method === 'streamGenerateContent'
  if (!isStream) return cutWhole(response)
  const isArray = protocol === 'generate-content' && !url.includes('alt=sse')
  response.writeHead(200, { 'content-type': isArray ? 'application/json' : 'text/event-stream' })
  const pieces = piecesOf(protocol as ChatProtocol, url)
  const sent = how === 'late' ? pieces : pieces.slice(0, pieces.length / 2)
  for (const piece of sent) {
    response.write(piece)
    await setTimeout(WAIT_BETWEEN_PIECES_MS)
  }
  if (how === 'hangs') return
  await setTimeout(Number(ms))
  if (how === 'cut') response.socket?.destroy()
  else if (how === 'resets') response.socket?.resetAndDestroy()
  else response.end()
}

/** Half of a JSON body of a known length. */
async function cutWhole(response: ServerResponse): Promise<void> {
  const half = '{"id":"x","choices":[{"index":0,'
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(2 * half.length) })
  response.write(half)
  await setTimeout(WAIT_BETWEEN_PIECES_MS)
  response.socket?.destroy()
}

/**
 * Serves until the test ends. Models are named `protocol.how.ms`: `late` is whole and ends so many milliseconds behind
 * its last event, `cut` and `resets` break the connection in the middle, `stops` ends there in good order, `hangs` says
 * no more.
 */
export const serveScriptedStreams = (t: Teardown): Promise<string> =>
  serveHttp(t, (request, response) => void answer(request, response).catch(() => response.destroy()))

/** A channel of the scripted upstream for these models, by their names at the gateway. */
export const scriptedChannel = (
  url: string,
  protocol: ChatProtocol,
  models: readonly string[],
  more: Partial<ChannelPlan> = {},
): ChannelPlan => ({
  id: `line-${protocol}`,
  protocol,
  base_url: baseUrlAt(url, protocol),
  api_key: 'k',
  models: Object.fromEntries(models.map((model) => [model, model])),
  ...more,
})
