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

export const ATTACKS: readonly Attack[] = [
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
