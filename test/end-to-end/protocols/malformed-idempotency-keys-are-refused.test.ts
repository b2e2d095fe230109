/** A malformed Idempotency-Key is 400 at every billed endpoint, in the shape of its protocol, and nothing runs. */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { demonstration, newClient } from '../media/support.ts'
import { upstreamCalls } from '../support.ts'

const LINK = 'https://example.com'
const messages = [{ role: 'user', content: 'Hello!' }]
const CONTENTS = { contents: [{ role: 'user', parts: [{ text: 'Hello!' }] }] }

/** Requests that would be carried out. */
const REQUESTS: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { model: 'sonata-large', messages },
  '/v1/messages': { model: 'ballad-large', max_tokens: 5, messages },
  '/v1/responses': { model: 'sonata-large', input: messages, instructions: 'Be brief.' },
  '/v1beta/models/canto-large:generateContent': CONTENTS,
  '/v1beta/models/canto-large:streamGenerateContent': CONTENTS,
  '/v1/images/generations': { model: 'demo-image', prompt: 'A mill', size: '64x64' },
  '/v1/images/edits': { model: 'demo-image', prompt: 'A mill', image: `${LINK}/a.png` },
  '/v1/videos/generations': { model: 'demo-video', prompt: 'A fox', duration: 4 },
  '/v1/videos/avatars': { name: 'Ada', source_url: `${LINK}/ada.png` },
  '/v1/videos/clip-subtitles': { video_url: `${LINK}/a.mp4`, async: true },
  '/v1/music/generations': { model: 'demo-music', prompt: 'A waltz' },
  '/v1/audio/speech': { model: 'voice-tts-pro', input: 'Hello!' },
  '/v1/audio/voices': { name: 'Ada', audio_url: `${LINK}/ada.mp3` },
  '/v1/transcripts/extract': { url: `${LINK}/v/1` },
}

/** Field lines by what is wrong with them. Bytes are those of Latin-1. */
const MALFORMED: Readonly<Record<string, string>> = {
  empty: 'idempotency-key:',
  'one space': 'idempotency-key:  ',
  'a space inside': 'idempotency-key: or d',
  'a tab inside': 'idempotency-key: or\td',
  'DEL at the start': 'idempotency-key: \x7ford',
  'DEL inside': 'idempotency-key: or\x7fd',
  'DEL at the end': 'idempotency-key: ord\x7f',
  '201 characters': `idempotency-key: ${'a'.repeat(201)}`,
  'two of them': 'idempotency-key: ord\r\nidempotency-key: other',
  'the same twice': 'idempotency-key: ord\r\nidempotency-key: ord',
  'one, and an empty one': 'idempotency-key: ord\r\nidempotency-key:',
}
const MIDDLE_BYTES = Array.from({ length: 0x80 }, (_, index) => 0x80 + index)
/** All but tab, line feed and carriage return, which end the line. */
const CONTROL_BYTES = Array.from({ length: 0x20 }, (_, index) => index).filter(
  (byte) => ![9, 10, 13].includes(byte),
)

t.test('malformed keys', async (t) => {
  const service = await borrowService(t, demonstration())
  const { key } = await newClient(service, '100000')
  const { hostname, port } = new URL(service.baseUrl)
  const opened = async (path: string, line: string) => {
    const body = JSON.stringify(REQUESTS[path])
    const head = `POST ${path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${line}\r\ncontent-length: ${body.length}\r\n\r\n`
    const socket = connect(Number(port), hostname)
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    socket.write(Buffer.from(head + body, 'latin1'))
    return socket
  }
  const post = async (path: string, line: string): Promise<string> => {
    const socket = await opened(path, line)
    let text = ''
    for await (const bytes of socket) {
      text += String(bytes)
      if (/\r\n\r\n.*\}$/s.test(text)) break
    }
    socket.destroy()
    return text
  }
  const isRefused = (path: string, text: string): boolean => {
    if (!text.startsWith('HTTP/1.1 400 ')) return false
    if (path === '/v1/messages')
      return /"type":"invalid_request_error","message":"There must be one Idem/.test(text)
    if (path.startsWith('/v1beta/'))
      return /"status":"INVALID_ARGUMENT"/.test(text) && /Idempotency-Key/.test(text)
    return /"code":"invalid_idempotency_key"/.test(text)
  }

  for (const path of Object.keys(REQUESTS))
    await t.test(path, async (t) => {
      for (const [name, line] of Object.entries(MALFORMED)) {
        const text = await post(path, line)
        t.ok(isRefused(path, text), `${name}: ${text.slice(0, 30)}`)
      }
    })

  await t.test('each byte that is no ASCII, inside', async (t) => {
    for (const byte of MIDDLE_BYTES) {
      const text = await post('/v1/chat/completions', `idempotency-key: or${String.fromCharCode(byte)}d`)
      t.ok(isRefused('/v1/chat/completions', text), byte.toString(16))
    }
  })

  await t.test('control characters make a request that no server reads', async (t) => {
    for (const byte of CONTROL_BYTES)
      for (const value of ['@ord', 'or@d', 'ord@']) {
        const line = `idempotency-key: ${value.replace('@', String.fromCharCode(byte))}`
        const socket = await opened('/v1/chat/completions', line)
        socket.on('data', (bytes) => t.notMatch(String(bytes), '200 OK', byte.toString(16)))
      }
  })

  t.same(await upstreamCalls(service), [], 'no upstream was called')
})
