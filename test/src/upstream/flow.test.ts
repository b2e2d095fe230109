import t from 'tap'
import { READ_BUFFER_BYTES } from '../../../src/upstream/limits.ts'
import { clientFor, serverFor, until } from './fixture.ts'
import { readRequests } from './raw-server.ts'
import { getRequest, LoggingHandler, postRequest, run } from './recorded-calls.ts'

const BODY_BYTES = 64 * 1024 * 1024
const PIECE = Buffer.alloc(65_536, 'a')

t.test('while paused nothing is read, and in the end the upstream cannot write', async (t) => {
  const client = clientFor(t)
  let written = 0
  const server = await serverFor(t, (socket) => {
    const more = (): void => {
      while (written < BODY_BYTES) {
        written += PIECE.length
        if (!socket.write(PIECE)) return
      }
    }
    readRequests(socket, () => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`)
      socket.on('drain', more)
      more()
    })
  })
  const handler = new LoggingHandler()
  let received = 0
  let largest = 0
  const call = client.send(getRequest(server.origin), handler)
  handler.onHead = () => call.pause()
  handler.onData = (bytes) => {
    received += bytes.length
    largest = Math.max(largest, bytes.length)
  }
  let before = -1
  await until(() => {
    const stalled = written > 0 && written === before
    before = written
    return stalled
  })
  t.ok(received <= READ_BUFFER_BYTES, 'only what was read with the head came')
  t.ok(written < BODY_BYTES / 2, 'the upstream is held back')
  call.resume()
  await handler.finished
  t.equal(received, BODY_BYTES)
  t.ok(largest <= READ_BUFFER_BYTES)
})

t.test('pausing and resuming at every piece loses nothing', async (t) => {
  const client = clientFor(t)
  const text = Array.from({ length: 20_000 }, (_, i) => `${i},`).join('')
  const server = await serverFor(t, (socket) => {
    readRequests(socket, () =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`),
    )
  })
  const handler = new LoggingHandler()
  let body = ''
  const call = client.send(getRequest(server.origin), handler)
  handler.onData = (bytes) => {
    body += Buffer.from(bytes).toString('latin1')
    call.pause()
    setImmediate(() => call.resume())
  }
  await handler.finished
  t.equal(body, text)
  t.equal(client.stats().idle, 1, 'the connection is kept, and read again')
})

t.test('paused before it connects: nothing comes until resumed', async (t) => {
  const client = clientFor(t)
  let requests = 0
  const server = await serverFor(t, (socket) => {
    readRequests(socket, () => {
      requests++
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    })
  })
  const handler = new LoggingHandler()
  const call = client.send(getRequest(server.origin), handler)
  call.pause()
  await until(() => requests === 1)
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
  t.equal(handler.log.status, 0)
  call.resume()
  t.match(await handler.finished, { status: 200, body: 'ok', ended: true })
})

t.test('many chunks in one read come as one piece', async (t) => {
  const client = clientFor(t)
  const frames = Array.from({ length: 100 }, (_, i) => `data: ${i}\n\n`)
  const chunks = frames.map((frame) => `${frame.length.toString(16)}\r\n${frame}\r\n`).join('')
  const server = await serverFor(t, (socket) => {
    readRequests(socket, () =>
      socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`),
    )
  })
  const log = await run(client, getRequest(server.origin))
  t.same(log.pieces, [frames.join('')])
})

t.test('a body of 32 MiB arrives whole, and slowly taken does not pile up', async (t) => {
  const client = clientFor(t)
  const body = Buffer.alloc(32 * 1024 * 1024, 'prompt ')
  let received = 0
  let different = 0
  const server = await serverFor(t, (socket) => {
    let headBytes = -1
    socket.on('data', (bytes: Buffer) => {
      if (headBytes < 0) headBytes = bytes.indexOf('\r\n\r\n') + 4
      const data = received === 0 ? bytes.subarray(headBytes) : bytes
      if (!data.equals(body.subarray(received, received + data.length))) different++
      received += data.length
      socket.pause()
      setImmediate(() => socket.resume())
      if (received === body.length) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    })
  })
  const log = await run(client, postRequest(server.origin, body))
  t.match(log, { body: 'ok', ended: true })
  t.equal(received, body.length)
  t.equal(different, 0)
  t.equal(client.stats().idle, 1)
})

for (const size of [1, 16_000, 16_384, 20_000, 131_072, 131_073, 300_000]) {
  t.test(`a body of ${size} bytes arrives as it is`, async (t) => {
    const client = clientFor(t)
    const body = Buffer.from(Array.from({ length: size }, (_, i) => (i * 31) & 0xff))
    let got = ''
    const server = await serverFor(t, (socket) => {
      readRequests(socket, (request) => {
        got = request.slice(request.indexOf('\r\n\r\n') + 4)
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
      })
    })
    const logs = await Promise.all([0, 1, 2].map(() => run(client, postRequest(server.origin, body))))
    t.ok(logs.every((log) => log.ended))
    t.ok(got === body.toString('latin1'))
  })
}
