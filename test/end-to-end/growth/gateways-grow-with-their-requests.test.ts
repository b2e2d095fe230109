/**
 * The time that a gateway spends on a request grows with its length, and no faster, whatever it holds: at each endpoint
 * that reads a body, a form, a query, a path or a header of a client.
 */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { growthFault } from '../../growth/measure.ts'
import { SHAPES } from '../../growth/shapes.ts'
import { descendantsOf } from '../../support/descendants.ts'
import { borrowService } from '../../support/lend-services.ts'
import { MANAGE, signIn } from '../../support/manage.ts'
import type { LentService } from '../../support/service.ts'
import { demonstration } from '../media/support.ts'

const BODY_BYTES = 4_096
/** The head of a request has 64 KiB at most, and a byte of a text three characters in a URL. */
const HEAD_BYTES = 1_000

/** Bodies of JSON by endpoint; `%` stands for the value. */
const BODIES: Readonly<Record<string, string>> = {
  '/v1/chat/completions': '{"model":"sonata-large","messages":[{"role":"user","content":%}],"x":%}',
  '/v1/chat/completions?to=messages':
    '{"model":"ballad-large","messages":[{"role":"user","content":"a"}],"x":%}',
  '/v1/chat/completions?to=generate-content':
    '{"model":"canto-large","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","parameters":%}}]}',
  '/v1/messages': '{"model":"ballad-large","max_tokens":9,"messages":[{"role":"user","content":"a"}],"x":%}',
  '/v1/messages/count_tokens': '{"model":"ballad-large","messages":[{"role":"user","content":%}]}',
  '/v1/responses': '{"model":"sonata-large","input":"a","x":%}',
  '/v1/conversations': '{"metadata":{"a":"b"},"items":[{"role":"user","content":%}]}',
  '/v1beta/models/canto-large:generateContent': '{"contents":[{"parts":[{"text":"a"}]}],"x":%}',
  '/v1beta/models/canto-large:streamGenerateContent': '{"contents":%}',
  '/v1beta/models/canto-large:countTokens': '{"contents":[{"parts":[{"text":%}]}]}',
  '/v1/embeddings': '{"model":"none","input":%}',
  '/v1/images/generations': '{"model":"demo-image","prompt":%,"n":0,"x":%}',
  '/v1/images/edits': '{"model":"demo-image","prompt":"a","image":%}',
  '/v1/videos/generations': '{"model":"demo-video","prompt":%,"duration":0,"x":%}',
  '/v1/videos/avatars': '{"name":%,"x":%}',
  '/v1/videos/clip-subtitles': '{"video_url":%,"x":%}',
  '/v1/music/generations': '{"model":"demo-music","prompt":%,"n":-1,"x":%}',
  '/v1/audio/speech': '{"model":"demo-speech","input":%,"speed":99,"x":%}',
  '/v1/audio/voices': '{"model":"voice-clone-pro","name":%,"x":%}',
  '/v1/transcripts/extract': '{"model":"video-transcript","url":%,"x":%}',
  '/mcp':
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_by_tag","arguments":{"tag":%}}}',
}

/** Bodies of the management API. */
const ACTS: Readonly<Record<string, string>> = {
  '/accounts': '{"name":%,"x":%}',
  '/agents': '{"name":%,"x":%}',
  '/sign-in': '{"email":%,"password":"a"}',
  '/invitations/look-up': '{"token":%}',
}

/** Queries and paths. */
const URLS: readonly string[] = [
  '/v1/logs?model=%',
  '/v1/logs?cursor=%',
  '/v1/images/generations?status=%',
  '/v1/models/%',
  '/v1beta/models/%',
  '/v1/responses/%',
  '/files/%',
  '/api/v1/ext/wiki/search?q=%',
  '/api/v1/ext/wiki/tags/%',
  '/api/v1/ext/wiki/pages?ids=%',
  `${MANAGE}/accounts?search=%`,
]

const HEADERS = [
  'accept',
  'user-agent',
  'x-forwarded-for',
  'cookie',
  'if-none-match',
  'idempotency-key',
  'authorization',
]

const NANOSECONDS_PER_MS = 1_000_000

/** Returns the CPU time of the gateways of a service with all their threads, in milliseconds. */
function gatewayCpuMs(service: LentService): () => number {
  const gateways = descendantsOf(service.pid()).filter((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('tollgate: gateway'),
  )
  const ofThread = (pid: number, thread: string): number => {
    try {
      return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
    } catch {
      return 0
    }
  }
  const ofProcess = (pid: number): number =>
    readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + ofThread(pid, thread), 0)
  return () => gateways.reduce((sum, pid) => sum + ofProcess(pid), 0) / NANOSECONDS_PER_MS
}

t.test('requests', async (t) => {
  const service = await borrowService(t, demonstration())
  const cpuMs = gatewayCpuMs(service)
  t.ok(cpuMs() > 0, 'there is a gateway')
  const { key } = await service.newKey('1000')
  const operator = await signIn(service, { role: 'operator' })
  const json = { 'content-type': 'application/json' }
  const withKey = { ...json, authorization: `Bearer ${key}` }
  const withSession = {
    ...json,
    origin: service.baseUrl,
    cookie: operator.cookie,
    'x-csrf-token': operator.csrfToken,
  }

  const grows = async (name: string, send: (value: string) => Promise<Response>, bytes = BODY_BYTES) => {
    for (const [shape, make] of Object.entries(SHAPES)) {
      const work = async (length: number): Promise<void> => {
        const response = await send(make(length))
        t.not(response.status, 500, `${name}: ${shape} is no error of the gateway's`)
        await response.arrayBuffer()
      }
      t.equal(await growthFault(work, bytes, cpuMs), null, `${name}: ${shape}`)
    }
  }
  const posts = (path: string, headers: Readonly<Record<string, string>>, body: string) => (value: string) =>
    fetch(service.baseUrl + path, { method: 'POST', headers, body: body.split('%').join(value) })

  for (const [path, body] of Object.entries(BODIES)) await grows(path, posts(path, withKey, body))
  for (const [path, body] of Object.entries(ACTS)) await grows(path, posts(MANAGE + path, withSession, body))
  for (const url of URLS) {
    const headers = url.startsWith(MANAGE) ? withSession : withKey
    const send = (value: string) =>
      fetch(service.baseUrl + url.replace('%', () => encodeURIComponent(value.toWellFormed())), { headers })
    await grows(url, send, HEAD_BYTES)
  }
  for (const name of HEADERS) {
    const send = (value: string) =>
      fetch(`${service.baseUrl}/v1/logs`, {
        headers: { ...withKey, [name]: value.replace(/[^\x20-\x7e]/g, '~') },
      })
    await grows(`the header ${name}`, send, HEAD_BYTES)
  }
  await grows('a form', (value) => {
    const form = new FormData()
    for (const field of ['model', 'prompt', 'size']) form.set(field, value)
    form.set('image', new Blob([value], { type: 'image/png' }), 'a.png')
    return fetch(`${service.baseUrl}/v1/images/edits`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: form,
    })
  })
})
