/** What a hostile client sends, one attack a row. Bodies are made once: an attack costs the client as little as it can. */
import { Buffer } from 'node:buffer'

export interface Attack {
  readonly name: string
  /** `poor`: the key of an account without money. `none`: no key. */
  readonly key: 'rich' | 'poor' | 'none'
  readonly connections: number
  readonly body: () => Buffer
  /** Sends so much of the body at a time, with a pause of 10 ms between; 0 sends it at once. */
  readonly pieceBytes: number
}

const MIB = 1024 * 1024
const AT_ONCE = 0
const SLOWLY_BYTES = 65_536

const chat = (messages: string, more = ''): Buffer =>
  Buffer.from(`{"model":"bench-small","messages":${messages}${more}}`)
const repeated = (item: string, bytes: number): string =>
  `${`${item},`.repeat(Math.floor(bytes / (item.length + 1)))}${item}`
const HELLO = '[{"role":"user","content":"hi"}]'
const picture = '{"type":"image_url","image_url":{"url":"https://example.invalid/a.png"}}'

export const ATTACKS: readonly Attack[] = [
  {
    name: '20 MiB of empty parts',
    key: 'rich',
    connections: 2,
    body: () => chat(`[{"role":"user","content":[${repeated('{}', 20 * MIB)}]}]`),
    pieceBytes: AT_ONCE,
  },
  {
    name: '100,000 pictures by URL',
    key: 'rich',
    connections: 2,
    body: () => chat(`[{"role":"user","content":[${repeated(picture, 100_000 * (picture.length + 1))}]}]`),
    pieceBytes: AT_ONCE,
  },
  {
    name: '9 MiB without money',
    key: 'poor',
    connections: 2,
    body: () => chat(`[{"role":"user","content":"${'a '.repeat(4.5 * MIB)}"}]`),
    pieceBytes: AT_ONCE,
  },
  {
    name: '9 MiB of escapes',
    key: 'rich',
    connections: 1,
    body: () => chat(HELLO, `,"user":"${'\\"'.repeat(4.5 * MIB)}","\u00e9":1`),
    pieceBytes: AT_ONCE,
  },
  {
    name: 'a million levels',
    key: 'rich',
    connections: 2,
    body: () => chat(HELLO, `,"x":${'['.repeat(MIB)}${']'.repeat(MIB)}`),
    pieceBytes: AT_ONCE,
  },
  {
    name: '20 x 30 MiB without a key, slowly',
    key: 'none',
    connections: 20,
    body: () => chat(`[{"role":"user","content":"${'a '.repeat(15 * MIB)}"}]`),
    pieceBytes: SLOWLY_BYTES,
  },
]
