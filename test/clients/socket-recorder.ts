/** Passes a WebSocket on, byte for byte, and keeps each request on it with its events, as an exchange. */
import { type IncomingMessage, request } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Exchange } from './recorder.ts'

const MORE_BIT = 0x80
const TEXT = 1
const CONTINUED = 0
const EVENTS = { 'content-type': 'text/event-stream' }
const LAST = ['response.completed', 'response.incomplete', 'response.failed', 'error']

/** Reads the texts in one direction of a WebSocket (RFC 6455) without extensions. */
class TextReader {
  readonly #take: (text: string) => void
  #bytes = Buffer.alloc(0)
  #parts: Buffer[] = []

  constructor(take: (text: string) => void) {
    this.#take = take
  }

  push(piece: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, piece])
    while (this.#readFrame()) {}
  }

  #readFrame(): boolean {
    const bytes = this.#bytes
    if (bytes.length < 2) return false
    const [first = 0, second = 0] = bytes
    const short = second & 0x7f
    const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0
    const maskAt = 2 + lengthBytes
    const start = maskAt + (second & MORE_BIT ? 4 : 0)
    if (bytes.length < start) return false
    const length =
      lengthBytes === 8 ? Number(bytes.readBigUInt64BE(2)) : lengthBytes ? bytes.readUInt16BE(2) : short
    if (bytes.length < start + length) return false
    const content = Buffer.from(bytes.subarray(start, start + length))
    if (second & MORE_BIT) for (let at = 0; at < length; at += 1) content[at]! ^= bytes[maskAt + (at % 4)]!
    this.#bytes = bytes.subarray(start + length)
    const kind = first & 0x0f
    if (kind !== TEXT && kind !== CONTINUED) return true
    this.#parts.push(content)
    if (first & MORE_BIT) this.#take(Buffer.concat(this.#parts.splice(0)).toString())
    return true
  }
}

/** Passes an upgrade to a target. What refuses it gives the plain answer. */
export function passSocket(
  target: URL,
  incoming: IncomingMessage,
  socket: Duplex,
  exchanges: Exchange[],
): void {
  const { url: path = '', headers } = incoming
  const { host: _host, 'sec-websocket-extensions': _compression, ...passed } = headers
  const onward = request({ host: target.hostname, port: target.port, path, headers: passed, agent: false })
  const isOpen: Exchange[] = []
  const requests = new TextReader((text) => {
    const { type, generate } = JSON.parse(text)
    if (type !== 'response.create') return
    const exchange: Exchange = {
      ...{ method: 'MESSAGE', path, requestHeaders: headers, requestBody: Buffer.from(text) },
      ...{
        status: 200,
        responseHeaders: EVENTS,
        response: [],
        isComplete: false,
        isFree: generate === false,
      },
    }
    exchanges.push(exchange)
    isOpen.push(exchange)
  })
  const events = new TextReader((text) => {
    const [exchange] = isOpen
    if (exchange === undefined) return
    const { type, status } = JSON.parse(text)
    exchange.response.push(Buffer.from(`data: ${text}\n\n`))
    if (!LAST.includes(type)) return
    if (type === 'error') exchange.status = status
    exchange.isComplete = true
    isOpen.shift()
  })
  const printHead = ({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string => {
    const lines = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []))
    return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, '', ''].join('\r\n')
  }
  socket.on('error', () => onward.destroy())
  onward.on('error', () => socket.destroy())
  onward.on('response', (answer) => {
    socket.write(printHead(answer))
    answer.pipe(socket)
  })
  onward.on('upgrade', (answer, far, head) => {
    socket.write(printHead(answer))
    const link = (from: Duplex, to: Duplex, reader: TextReader) => {
      from.on('data', (piece: Buffer) => {
        reader.push(piece)
        to.write(piece)
      })
      from.on('close', () => to.destroy())
      from.on('error', () => to.destroy())
    }
    far.unshift(head)
    link(far, socket, events)
    link(socket, far, requests)
  })
  onward.end()
}
