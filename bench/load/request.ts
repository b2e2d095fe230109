import { isWhole, markProfile, type Profile } from '../upstream/replies.ts'

/** The address of a subject, and the headers that it needs. */
export interface Endpoint {
  port: number
  /** The path of chat completions. */
  path: string
  headers: Record<string, string>
  /** A gateway that routes by model chooses the upstream by it. */
  model: string
  /** True for a gateway that rewrites answers: the load counts pieces of text instead of events and bytes. */
  rewrites?: boolean
}

const PROMPT =
  'Summarize the following notes for a reader who was not there, in three sentences, plainly and without praise. '
const NOTES =
  'The committee met on Tuesday and discussed the figures of the last quarter, which were better than feared. ' +
  'Two suppliers asked for earlier payment; one was refused. The new depot opens in spring if the road is finished. '

/** Turns of a long conversation, of about 1 KB each. */
const LONG_TURNS = 100

interface Message {
  role: 'system' | 'user' | 'assistant'
  content: string
}

const makeConversation = (profile: Profile): Message[] => {
  if (profile !== 'long') return [{ role: 'user', content: NOTES.repeat(3) }]
  return Array.from({ length: LONG_TURNS }, (_, turn) => ({
    role: turn % 2 === 0 ? 'user' : 'assistant',
    content: `Turn ${turn}:\n"${NOTES.repeat(4)}"`,
  }))
}

/** Returns the body of a chat call: about 100 KB for a long one, 1 KB for any other. */
export const requestBody = (profile: Profile, model: string): string =>
  JSON.stringify({
    model,
    messages: [
      { role: 'system', content: `${markProfile(profile)} ${PROMPT}` },
      ...makeConversation(profile),
    ],
    temperature: 0.7,
    max_tokens: 256,
    ...(isWhole(profile) ? {} : { stream: true }),
  })

/** Returns the bytes of a whole request. Every request of a run is the same. */
export const requestBytes = (endpoint: Endpoint, profile: Profile): Buffer => {
  const body = requestBody(profile, endpoint.model)
  const headers = {
    host: `127.0.0.1:${endpoint.port}`,
    'content-type': 'application/json',
    accept: isWhole(profile) ? 'application/json' : 'text/event-stream',
    ...endpoint.headers,
    'content-length': String(Buffer.byteLength(body)),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`POST ${endpoint.path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}
