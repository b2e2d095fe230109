/** What a hostile client sends, one attack a row. Bodies are made once: an attack costs the client as little as it can. */
import { Buffer } from 'node:buffer'

export interface Attack {
  readonly name: string
  /** `poor`: the key of an account without money. `none`: no key. */
  readonly key: 'rich' | 'poor' | 'none'
  readonly connections: number
  readonly body: () => Buffer
  /** Sends so much of the body at a time, with a pause of 10 ms between; at once without it. */
  readonly pieceBytes?: number
  /** In place of chat-completions. */
  readonly path?: string
  /** All connections together send one request each so many milliseconds; without it each goes on as soon as it may. */
  readonly everyMs?: number
  /** So many requests without a body follow one another on a connection, which reads no answer until it is closed. */
  readonly unread?: { readonly method: 'GET' | 'HEAD' | 'OPTIONS'; readonly requests: number }
  /** The head of the request comes byte by byte, with a pause of 10 ms between, and never ends. */
  readonly headIsSlow?: true
}

const MIB = 1024 * 1024
const SLOWLY_BYTES = 65_536

const chat = (messages: string, more = ''): Buffer =>
  Buffer.from(`{"model":"bench-small","messages":${messages}${more}}`)
const repeated = (item: string, count: number): string => `${`${item},`.repeat(count - 1)}${item}`
const HELLO = '[{"role":"user","content":"hi"}]'
const GENERATE_CONTENT = '/v1beta/models/bench-small:generateContent'
const MESSAGES = repeated('{"role":"user","content":"hi"}', 10_000)
const TOOLS = repeated('{"type":"function","function":{"name":"f","parameters":{}}}', 1_024)
const numbered = (count: number, item: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => item(index)).join()
const picture = '{"type":"image_url","image_url":{"url":"https://example.invalid/a.png"}}'

const PARAGRAPH = 'What was said before, and what came of it. '
/** A conversation of some length with a coding agent, within the limits of `profile: public`. */
const conversation = (model: string, bytes: number): Buffer => {
  const message = `{"role":"user","content":[{"type":"text","text":"${PARAGRAPH.repeat(10)}"}]}`
  const tool =
    '{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}'
  const tools = repeated(tool, 100)
  const messages = repeated(message, Math.floor((bytes - tools.length) / message.length))
  return Buffer.from(`{"model":"${model}","messages":[${messages}],"tools":[${tools}]}`)
}
const LONG_BYTES = 260_000
const TEN_A_SECOND_MS = 100

/** Lists of more than 100 items, which are checked in pieces, far below their surroundings. */
const LISTS = `${'{"a":'.repeat(480)}[${repeated(`[${repeated('0', 101)}]`, 70)}]${'}'.repeat(480)}`
/** Marks that Unicode orders by their class: above and below by turns. */
const marks = (bytes: number): string => `a${'\u0301\u0316'.repeat(bytes / 4)}`
const call = (tag: string): Buffer =>
  Buffer.from(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'list_by_tag', arguments: { tag } },
    }),
  )

export const ATTACKS: readonly Attack[] = [
  ...(['messages', 'generate-content'] as const).map((protocol) => ({
    name: `10 x 260 KB a second, translated to ${protocol}`,
    key: 'rich' as const,
    connections: 4,
    everyMs: TEN_A_SECOND_MS,
    body: () => conversation(`bench-small-${protocol}`, LONG_BYTES),
  })),
  {
    name: '600 x GET /openapi.json on a connection, unread',
    key: 'none',
    connections: 4,
    path: '/openapi.json',
    unread: { method: 'GET', requests: 600 },
    body: () => Buffer.alloc(0),
  },
  {
    name: '50,000 x GET /v1/models on a connection, unread',
    key: 'rich',
    connections: 4,
    path: '/v1/models',
    unread: { method: 'GET', requests: 50_000 },
    body: () => Buffer.alloc(0),
  },
  {
    name: '50,000 preflights on a connection, unread',
    key: 'none',
    connections: 4,
    unread: { method: 'OPTIONS', requests: 50_000 },
    body: () => Buffer.alloc(0),
  },
  {
    name: '17,650 bytes of lists under 480 objects',
    key: 'rich',
    connections: 2,
    body: () => chat(HELLO, `,"metadata":${LISTS}`),
  },
  {
    name: 'the same without money, in messages',
    key: 'poor',
    connections: 2,
    path: '/v1/messages',
    body: () => chat(HELLO, `,"max_tokens":1,"metadata":${LISTS}`),
  },
  {
    name: 'a name of 240 KB of combining marks',
    key: 'rich',
    connections: 2,
    body: () => chat(HELLO, `,"${marks(240_000)}":1`),
  },
  {
    name: 'a name of 40 KB of combining marks',
    key: 'rich',
    connections: 2,
    body: () => chat(HELLO, `,"${marks(40_000)}":1`),
  },
  {
    name: 'a tag of 240 KB of combining marks',
    key: 'rich',
    connections: 2,
    path: '/mcp',
    body: () => call(marks(240_000)),
  },
  {
    name: '20 MiB of empty parts',
    key: 'rich',
    connections: 2,
    body: () => chat(`[{"role":"user","content":[${repeated('{}', 7_000_000)}]}]`),
  },
  {
    name: '100,000 pictures by URL',
    key: 'rich',
    connections: 2,
    body: () => chat(`[{"role":"user","content":[${repeated(picture, 100_000)}]}]`),
  },
  {
    name: '9 MiB without money',
    key: 'poor',
    connections: 2,
    body: () => chat(`[{"role":"user","content":"${'a '.repeat(4.5 * MIB)}"}]`),
  },
  {
    name: '9 MiB of escapes',
    key: 'rich',
    connections: 1,
    body: () => chat(HELLO, `,"user":"${'\\"'.repeat(4.5 * MIB)}","\u00e9":1`),
  },
  {
    name: 'a million levels',
    key: 'rich',
    connections: 2,
    body: () => chat(HELLO, `,"x":${'['.repeat(MIB)}${']'.repeat(MIB)}`),
  },
  {
    name: '20 x 30 MiB without a key, slowly',
    key: 'none',
    connections: 20,
    body: () => chat(`[{"role":"user","content":"${'a '.repeat(15 * MIB)}"}]`),
    pieceBytes: SLOWLY_BYTES,
  },
  {
    name: '200 heads that never end',
    key: 'none',
    connections: 200,
    body: () => Buffer.alloc(0),
    headIsSlow: true,
  },
  {
    name: 'refused as fast as they are answered',
    key: 'rich',
    connections: 8,
    body: () => Buffer.from('{"model":"no-such-model","messages":[]}'),
  },
  {
    name: '10,000 empty parts in one message',
    key: 'rich',
    connections: 2,
    body: () => chat(`[{"role":"user","content":[${repeated('{}', 10_000)}]}]`),
  },
  {
    name: '10,000 wrong parts of generate-content',
    key: 'rich',
    connections: 2,
    path: GENERATE_CONTENT,
    body: () => Buffer.from(`{"contents":[{"parts":[${repeated('{"text":5}', 10_000)}]}]}`),
  },
  {
    name: '10,000 messages, 1,024 tools, a wrong temperature',
    key: 'rich',
    connections: 2,
    body: () => chat(`[${MESSAGES}]`, `,"tools":[${TOOLS}],"temperature":9`),
  },
  {
    name: '90,000 names',
    key: 'rich',
    connections: 2,
    body: () => chat(HELLO, `,"metadata":{${numbered(90_000, (i) => `"n${i}":1`)}}`),
  },
  {
    name: '90,000 long numbers',
    key: 'rich',
    connections: 2,
    body: () => chat(HELLO, `,"metadata":[${numbered(90_000, (i) => `1.${i}0000000000000000000`)}]`),
  },
]
