/** What the simulator's tests share: a started simulator, and a client that sees every byte. */

import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CallView } from '../../simulator/calls.ts'
import { type Simulator, startSimulator } from '../../simulator/server.ts'

const POLL_MS = 5

export type Ending = 'end' | 'reset'

export type RawAnswer = {
  /** Status line and headers; empty when nothing came, or no HTTP. */
  readonly head: string
  readonly status: number
  /** What came after the head, as it stood on the wire. */
  readonly wire: Buffer
  /** The body without chunk framing, as far as it came. */
  readonly body: Buffer
  /** Whether HTTP itself says that the body is complete. */
  readonly complete: boolean
  readonly ending: Ending
}

/** The callback's Tap test, structurally, so that this file needs none of Tap's types. */
type Teardown = { teardown(task: () => Promise<void>): void }

export async function simulatorFor(t: Teardown): Promise<Simulator> {
  const simulator = await startSimulator({ host: '127.0.0.1', port: 0 })
  t.teardown(() => simulator.close())
  return simulator
}

export function chatBody(model: string, extra: Record<string, unknown> = {}): string {
  return JSON.stringify({ model, messages: [{ role: 'user', content: 'How is the river?' }], ...extra })
}

export function chatRequest(body: string, headers: Record<string, string> = {}): string {
  return postRequest('/v1/chat/completions', body, headers)
}

export function postRequest(path: string, body: string, headers: Record<string, string> = {}): string {
  const lines = Object.entries({ host: 'simulator', 'content-type': 'application/json', ...headers })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `POST ${path} HTTP/1.1\r\n${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

/** Sends a request on a connection of its own. The socket is open, and its bytes are nobody's yet. */
export function open(url: string, request: string): Socket {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.write(request)
  return socket
}

/** One chat call to the end of its connection. */
export function call(url: string, body: string, headers: Record<string, string> = {}): Promise<RawAnswer> {
  return post(url, '/v1/chat/completions', body, headers)
}

/** The same at any path. */
export function post(
  url: string,
  path: string,
  body: string,
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const socket = open(url, postRequest(path, body, { connection: 'close', ...headers }))
    const chunks: Buffer[] = []
    let ending: Ending = 'end'
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', () => {
      ending = 'reset'
    })
    socket.on('close', () => resolve(parse(Buffer.concat(chunks), ending)))
  })
}

function parse(bytes: Buffer, ending: Ending): RawAnswer {
  const split = bytes.indexOf('\r\n\r\n')
  const head = bytes.subarray(0, Math.max(split, 0)).toString('latin1')
  if (!head.startsWith('HTTP/1.1 ')) {
    return { head: '', status: 0, wire: bytes, body: Buffer.alloc(0), complete: false, ending }
  }
  const wire = bytes.subarray(split + 4)
  const status = Number(head.slice(9, 12))
  const length = /content-length: (\d+)/i.exec(head)
  if (length !== null)
    return { head, status, wire, body: wire, complete: wire.length === Number(length[1]), ending }
  return { head, status, wire, ...dechunked(wire), ending }
}

function dechunked(wire: Buffer): { body: Buffer; complete: boolean } {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const line = wire.indexOf('\r\n', at)
    if (line < 0) return { body: Buffer.concat(parts), complete: false }
    const size = Number.parseInt(wire.subarray(at, line).toString('latin1'), 16)
    if (size === 0) return { body: Buffer.concat(parts), complete: true }
    parts.push(wire.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
  }
}

/** The JSON values of a stream's `data:` lines, the end mark left out. */
export function chunksOf(body: Buffer): Chunk[] {
  return dataOf(body)
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data) as Chunk)
}

export function dataOf(body: Buffer): string[] {
  const lines = body.toString('utf8').split('\n')
  return lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice('data: '.length))
}

export function textOf(body: Buffer): string {
  return chunksOf(body)
    .map((chunk) => chunk.choices[0]?.delta.content ?? '')
    .join('')
}

export type WireUsage = {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  prompt_tokens_details: { cached_tokens: number }
  completion_tokens_details: { reasoning_tokens: number }
}

export type Chunk = {
  id: string
  object: string
  created: number
  model: string
  choices: {
    index: number
    delta: { role?: string; content?: string | null; reasoning_content?: string }
    finish_reason: string | null
  }[]
  usage?: WireUsage | null
}

export type Completion = {
  choices: { index: number; message: { content: string | null }; finish_reason: string }[]
  usage?: WireUsage
}

export async function callsOf(url: string, requestId?: string): Promise<CallView[]> {
  const query = requestId === undefined ? '' : `?request_id=${requestId}`
  return (await (await fetch(`${url}/simulator/calls${query}`)).json()) as CallView[]
}

/** Waits until the record of the newest call satisfies the condition; the test's own time limit ends it. */
export async function lastCallThat(url: string, condition: (call: CallView) => boolean): Promise<CallView> {
  for (;;) {
    const last = (await callsOf(url)).at(-1)
    if (last !== undefined && condition(last)) return last
    await sleep(POLL_MS)
  }
}
