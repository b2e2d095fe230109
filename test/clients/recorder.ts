/** A proxy that keeps every request and answer that passes, byte for byte, and adds nothing. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Teardown } from '../support/engines.ts'
import { passSocket } from './socket-recorder.ts'

const LOOPBACK = '127.0.0.1'

/** One request and its answer. */
export interface Exchange {
  readonly method: string
  readonly path: string
  readonly requestHeaders: IncomingMessage['headers']
  readonly requestBody: Buffer
  /** 0: no head came. */
  status: number
  responseHeaders: IncomingMessage['headers']
  readonly response: Buffer[]
  /** Whether the answer came to its proper end. */
  isComplete: boolean
  /** A request on a WebSocket; `isFree` is one that warms it up. */
  readonly isFree?: boolean
  /** How long the client waited that left before a head came. */
  leftAfterMs?: number
}

/** Answers with the number of bytes of events so far; no client asks for it. */
const PASSED_PATH = '/-/passed'

export interface Recorder {
  readonly url: string
  /** In the order of their requests. */
  readonly exchanges: readonly Exchange[]
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of stream) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** Starts a recorder in front of `target`, which is a base URL without a path. It ends with the test. */
export async function startRecorder(t: Teardown, target: string): Promise<Recorder> {
  const exchanges: Exchange[] = []
  const to = new URL(target)
  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = '', url: path = '', headers } = incoming
    if (path === PASSED_PATH) {
      const streams = exchanges.filter(({ responseHeaders }) =>
        /event-stream/.test(responseHeaders['content-type'] ?? ''),
      )
      outgoing.end(String(Buffer.concat(streams.flatMap(({ response }) => response)).length))
      return
    }
    const requestBody = await readAll(incoming)
    const exchange: Exchange = {
      ...{ method, path, requestHeaders: headers, requestBody },
      ...{ status: 0, responseHeaders: {}, response: [], isComplete: false },
    }
    exchanges.push(exchange)
    const beganAt = performance.now()
    const { rawHeaders } = incoming
    const onward = request({ host: to.hostname, port: to.port, method, path, agent: false })
    for (let at = 0; at < rawHeaders.length; at += 2)
      if (!/^(host|connection|transfer-encoding|content-length)$/i.test(rawHeaders[at]!))
        onward.appendHeader(rawHeaders[at]!, rawHeaders[at + 1]!)
    if (requestBody.length > 0) onward.setHeader('content-length', requestBody.length)
    // A client that leaves is seen to leave.
    outgoing.once('close', () => {
      if (exchange.status === 0) exchange.leftAfterMs = performance.now() - beganAt
      onward.destroy()
    })
    onward.once('error', () => outgoing.destroy())
    onward.once('response', (answer) => {
      exchange.status = answer.statusCode ?? 0
      exchange.responseHeaders = answer.headers
      outgoing.writeHead(exchange.status, answer.rawHeaders)
      outgoing.flushHeaders()
      answer.on('data', (piece: Buffer) => {
        exchange.response.push(piece)
        outgoing.write(piece)
      })
      answer.once('end', () => {
        exchange.isComplete = true
        outgoing.end()
      })
      answer.once('error', () => outgoing.destroy())
    })
    onward.end(requestBody)
  }
  const server = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch(() => outgoing.destroy())
  })
  server.on('upgrade', (incoming, socket) => passSocket(to, incoming, socket, exchanges))
  server.listen(0, LOOPBACK)
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`, exchanges }
}
