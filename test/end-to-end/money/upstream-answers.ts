/** What upstreams answer, good and bad, in each protocol, and an upstream that answers so over real sockets. */
import type { ServerResponse } from 'node:http'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { serveHttp, textOf } from '../../support/http-server.ts'

/** 16 characters, two of them of two bytes: 5 tokens where they are estimated. */
export const TEXT = 'Grüße from here.'
export const PROMPT_TOKENS = 100
export const OUTPUT_TOKENS = 40
const LOWER_OUTPUT_TOKENS = 5
const PAGE = '<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>'
/** More than a meter keeps of one event. */
const PADDING = 'A'.repeat(400_000)
export const ERROR_TEXT = 'It broke in the middle.'

export const ANSWERS = [
  'reported',
  'page',
  'empty',
  'no-content',
  'no-fields',
  'truncated',
  'error',
  'late-error',
  'usage-missing',
  'interim',
  'contradictory',
  'huge',
  'cut',
] as const
export type AnswerName = (typeof ANSWERS)[number]

/** One protocol's words. `output` of null leaves the count out. */
interface Words {
  whole(usage: object | null, more?: object): object
  usage(output: number | null): object
  readonly opening: string
  readonly said: string
  /** An event that reports usage, behind so much else. */
  report(output: number, padding?: string): string
  /** What an upstream reports before it speaks. */
  readonly interim: string
  readonly ending: string
  readonly error: object
}

const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const padded = (padding: string | undefined): object => (padding === undefined ? {} : { padding })

const chunk = (delta: object, more: object = {}) => event({ choices: [{ index: 0, delta, ...more }] })
const chatUsage = (output: number | null) => ({
  prompt_tokens: PROMPT_TOKENS,
  ...(output !== null && { completion_tokens: output }),
})
const wireUsage = (output: number | null) => ({
  input_tokens: PROMPT_TOKENS,
  ...(output !== null && { output_tokens: output }),
})
const metadata = (output: number | null) => ({
  promptTokenCount: PROMPT_TOKENS,
  ...(output !== null && { candidatesTokenCount: output, totalTokenCount: PROMPT_TOKENS + output }),
})
const candidate = (parts: readonly object[], more: object = {}) => ({
  candidates: [{ index: 0, content: { role: 'model', parts }, ...more }],
})

export const WORDS: Readonly<Record<ChatProtocol, Words>> = {
  'chat-completions': {
    whole: (usage, more) => ({
      choices: [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }],
      ...more,
      usage,
    }),
    usage: chatUsage,
    opening: chunk({ role: 'assistant', content: '' }),
    said: chunk({ content: TEXT }),
    report: (output, padding) => event({ choices: [], ...padded(padding), usage: chatUsage(output) }),
    interim: event({ choices: [{ index: 0, delta: {} }], usage: chatUsage(0) }),
    ending: `${chunk({}, { finish_reason: 'stop' })}data: [DONE]\n\n`,
    error: { error: { message: ERROR_TEXT } },
  },
  messages: {
    whole: (usage, more) => ({
      id: 'msg_1',
      type: 'message',
      content: [{ type: 'text', text: TEXT }],
      stop_reason: 'end_turn',
      ...more,
      usage,
    }),
    usage: wireUsage,
    opening:
      event({ type: 'message_start', message: { id: 'msg_1', content: [] } }) +
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    said: event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: TEXT } }),
    report: (output, padding) =>
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        ...padded(padding),
        usage: wireUsage(output),
      }),
    interim: event({ type: 'message_start', message: { id: 'msg_1', content: [], usage: wireUsage(1) } }),
    ending: event({ type: 'message_stop' }),
    error: { type: 'error', error: { type: 'overloaded_error', message: ERROR_TEXT } },
  },
  'generate-content': {
    whole: (usage, more) => ({
      ...candidate([{ text: TEXT }], { finishReason: 'STOP' }),
      ...more,
      ...(usage && { usageMetadata: usage }),
    }),
    usage: metadata,
    opening: event(candidate([{ text: '' }])),
    said: event(candidate([{ text: TEXT }])),
    report: (output, padding) => event({ ...padded(padding), usageMetadata: metadata(output) }),
    interim: event({ usageMetadata: { promptTokenCount: PROMPT_TOKENS, totalTokenCount: PROMPT_TOKENS } }),
    ending: event(candidate([], { finishReason: 'STOP' })),
    error: { error: { code: 503, status: 'UNAVAILABLE', message: ERROR_TEXT } },
  },
  responses: {
    whole: (usage, more) => ({
      id: 'resp_1',
      status: 'completed',
      output: [{ type: 'message', content: [{ type: 'output_text', text: TEXT }] }],
      ...more,
      usage,
    }),
    usage: wireUsage,
    opening: event({ type: 'response.created', response: { id: 'resp_1', error: null, usage: null } }),
    said: event({ type: 'response.output_text.delta', delta: TEXT }),
    report: (output, padding) =>
      event({ type: 'response.completed', response: { ...padded(padding), usage: wireUsage(output) } }),
    interim: event({ type: 'response.in_progress', response: { usage: wireUsage(0) } }),
    ending: event({ type: 'response.completed', response: { id: 'resp_1' } }),
    error: { type: 'error', error: { message: ERROR_TEXT } },
  },
}

/** A body, and whether the connection breaks behind it. */
interface Sent {
  readonly status?: number
  readonly type?: string
  readonly body: string
  readonly isCut?: boolean
}

const json = (value: object): Sent => ({ type: 'application/json', body: JSON.stringify(value) })

export function wholeAnswer(protocol: ChatProtocol, name: AnswerName): Sent {
  const { whole, usage, error } = WORDS[protocol]
  const good = whole(usage(OUTPUT_TOKENS))
  const written = JSON.stringify(good)
  switch (name) {
    case 'reported':
      return json(good)
    case 'page':
      return { type: 'text/html', body: PAGE }
    case 'empty':
      return { type: 'application/json', body: '' }
    case 'no-content':
      return { status: 204, body: '' }
    case 'no-fields':
      return json({})
    case 'truncated':
      return { type: 'application/json', body: written.slice(0, -1) }
    case 'error':
      return json(error)
    case 'late-error':
      return json({ ...good, base_resp: { status_code: 1004, status_msg: ERROR_TEXT } })
    case 'usage-missing':
      return json(whole(null))
    case 'interim':
      return json(whole(usage(null)))
    case 'contradictory':
      return json({ ...good, error: { message: ERROR_TEXT } })
    case 'huge':
      return json(whole(usage(OUTPUT_TOKENS), { padding: PADDING }))
    case 'cut':
      return { type: 'application/json', body: written, isCut: true }
  }
}

const EVENTS = 'text/event-stream'
const streamed = (...events: readonly string[]): Sent => ({ type: EVENTS, body: events.join('') })

export function streamedAnswer(protocol: ChatProtocol, name: AnswerName): Sent {
  const { opening, said, report, interim, ending, error } = WORDS[protocol]
  switch (name) {
    case 'reported':
      return streamed(opening, said, report(OUTPUT_TOKENS), ending)
    case 'page':
      return { type: 'text/html', body: PAGE }
    case 'empty':
      return streamed()
    case 'no-content':
      return streamed(': waiting\n\n', opening, ending)
    case 'no-fields':
      return streamed(event({}), 'data: [DONE]\n\n')
    case 'truncated':
      return streamed(opening, said)
    case 'error':
      return streamed(opening, event(error), ending)
    case 'late-error':
      return streamed(opening, said, event(error), ending)
    case 'usage-missing':
      return streamed(opening, said, ending)
    case 'interim':
      return streamed(interim, said, ending)
    case 'contradictory':
      return streamed(opening, said, report(OUTPUT_TOKENS), report(LOWER_OUTPUT_TOKENS), ending)
    case 'huge':
      return streamed(opening, said, report(OUTPUT_TOKENS, PADDING), ending)
    case 'cut':
      return { ...streamed(opening, said), isCut: true }
  }
}

function send(response: ServerResponse, { status = 200, type, body, isCut = false }: Sent): void {
  const length = Buffer.byteLength(body)
  response.writeHead(status, {
    connection: 'close',
    ...(type !== undefined && { 'content-type': type }),
    // The rest of a cut body never comes.
    ...(type !== EVENTS && status !== 204 && { 'content-length': isCut ? length + 1 : length }),
  })
  if (!isCut) return void response.end(body)
  response.write(body, () => setTimeout(() => response.destroy(), 20))
}

export interface HostileUpstream {
  readonly url: string
  /** How often a model was called. */
  readonly hits: ReadonlyMap<string, number>
}

/** Answers each call as `answerTo` says of the model that it names, in its path or in its body. */
export async function hostileUpstream(
  t: { teardown(handler: () => unknown): void },
  answerTo: (model: string) => Sent,
): Promise<HostileUpstream> {
  const hits = new Map<string, number>()
  const url = await serveHttp(t, async (request, response) => {
    const body = await textOf(request)
    const inPath = /\/models\/([^/:?]+):/.exec(request.url ?? '')?.[1]
    const model = inPath ?? (JSON.parse(body) as { model: string }).model
    hits.set(model, (hits.get(model) ?? 0) + 1)
    send(response, answerTo(model))
  })
  return { url, hits }
}
