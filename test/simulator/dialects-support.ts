/** One way to call each dialect, so that what holds for all of them is tested once. */

import { chatBody, post, type RawAnswer } from './support.ts'

/** Any JSON, for tests that look into it by path: what stands there is compared, and has no other use. */
export interface Json {
  readonly [field: string]: Json | undefined
}

export type AskOptions = {
  /** Fields beside the question. */
  readonly fields?: object
  readonly stream?: boolean
  readonly headers?: Record<string, string>
}

/** Asks one question; directives stand in the model's name, where they begin with `@`. */
export type Ask = (url: string, directives: string, options?: AskOptions) => Promise<RawAnswer>

export const MESSAGES_HEADERS = { 'x-api-key': 'sim-key', 'anthropic-version': '2023-06-01' }
const QUESTION = 'How is the river?'

export const askChat: Ask = (url, directives, { fields, stream = false, headers } = {}) =>
  post(
    url,
    '/v1/chat/completions',
    chatBody(`sim${directives}`, { ...(stream ? { stream } : {}), ...fields }),
    headers,
  )

export const askMessages: Ask = (url, directives, { fields, stream = false, headers } = {}) => {
  const messages = [{ role: 'user', content: QUESTION }]
  const body = { model: `sim${directives}`, max_tokens: 4096, messages, stream, ...fields }
  return post(url, '/v1/messages', JSON.stringify(body), { ...MESSAGES_HEADERS, ...headers })
}

/** `alt` is the query of a stream: server-sent events, or one array. */
export function askGenerateContent(query: '?alt=sse' | ''): Ask {
  return (url, directives, { fields, stream = false, headers } = {}) => {
    const method = stream ? `streamGenerateContent${query}` : 'generateContent'
    const contents = [{ role: 'user', parts: [{ text: QUESTION }] }]
    const path = `/v1beta/models/sim${directives}:${method}`
    return post(url, path, JSON.stringify({ contents, ...fields }), { 'x-goog-api-key': 'k', ...headers })
  }
}

export const askResponses: Ask = (url, directives, { fields, stream = false, headers } = {}) => {
  const input = [{ role: 'user', content: QUESTION }]
  const body = { model: `sim${directives}`, input, instructions: 'Be brief.', stream, ...fields }
  return post(url, '/v1/responses', JSON.stringify(body), headers)
}

export const EVERY_DIALECT: Readonly<Record<string, Ask>> = {
  'chat-completions': askChat,
  messages: askMessages,
  'generate-content': askGenerateContent('?alt=sse'),
  'generate-content as an array': askGenerateContent(''),
  responses: askResponses,
}

export type StreamEvent = { readonly event: string | null; readonly data: Json }

/** The events of a stream, in whichever line ends; the end mark has no data. */
export function eventsOf(body: Buffer): StreamEvent[] {
  const blocks = body.toString('utf8').split(/\r?\n\r?\n/)
  return blocks.filter(Boolean).map((block) => {
    const event = /^event: (.*?)\r?$/m.exec(block)?.[1] ?? null
    const data = /^data: (.*?)\r?$/m.exec(block)?.[1] ?? ''
    return { event, data: (data === '[DONE]' ? {} : JSON.parse(data)) as Json }
  })
}

export function jsonOf({ body }: RawAnswer): Json {
  return JSON.parse(body.toString('utf8')) as Json
}
