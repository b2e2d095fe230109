/** Requests that no HTTP client sends. */
import { connect } from 'node:net'
import { BOUND_MS } from '../support/eventually.ts'
import type { LentService } from '../support/service.ts'
import { type Answer, parsed } from './world.ts'

/** Sends bytes as they are on a connection of their own, and reads the first answer; null where there is none. */
export function sendRaw(
  service: LentService,
  head: readonly (string | Buffer)[],
  body = '',
): Promise<Answer | null> {
  const { hostname, port } = new URL(service.baseUrl)
  const lines = head.flatMap((line) => [Buffer.isBuffer(line) ? line : Buffer.from(line, 'latin1'), CRLF])
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) })
    let seen = Buffer.alloc(0)
    socket.on('error', reject)
    socket.setTimeout(BOUND_MS, () => socket.destroy())
    socket.on('data', (more: Buffer) => {
      seen = Buffer.concat([seen, more])
      if (isWhole(seen)) socket.end()
    })
    socket.on('close', () => resolve(seen.length === 0 ? null : rawAnswer(seen)))
    socket.write(Buffer.concat([...lines, CRLF, Buffer.from(body)]))
  })
}
const CRLF = Buffer.from('\r\n')

/** Whether as many bytes are there as the head announces; otherwise the answer ends with the connection. */
function isWhole(seen: Buffer): boolean {
  const end = seen.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /content-length: (\d+)/i.exec(seen.subarray(0, end).toString('latin1'))?.[1]
  return length !== undefined && seen.length - end - 4 >= Number(length)
}

function rawAnswer(seen: Buffer): Answer {
  const end = seen.indexOf('\r\n\r\n')
  const [first = '', ...lines] = seen.subarray(0, end).toString('latin1').split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    }),
  )
  const text = seen.subarray(end + 4).toString()
  const trace = headers.get('x-gateway-trace') ?? ''
  return { status: Number(first.split(' ')[1]), headers, text, body: parsed(text), trace }
}
