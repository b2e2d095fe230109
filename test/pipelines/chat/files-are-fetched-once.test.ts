/** Files that an upstream cannot fetch: once for all attempts of a call, and no longer than the call. */
import t from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import type { FetchedFile } from '../../../src/protocols/dialect.ts'
import { until } from '../../support/eventually.ts'
import { RunningCall } from './forward-support.ts'

const LINK = 'https://files.example/a.png'
const MESSAGES = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: LINK } }] }]
const FILES = new Map<string, FetchedFile>([[LINK, { mediaType: 'image/png', base64: 'AAAA' }]])
const TRANSLATED = { upstream: 'generate-content', request: { messages: MESSAGES } } as const

t.test('a second attempt has them already', async (t) => {
  let fetches = 0
  const fetchFiles = async () => {
    fetches++
    return FILES
  }
  const call = new RunningCall({ ...TRANSLATED, channels: ['first', 'second'], fetchFiles })
  const attempts = (count: number) => until(`attempt ${count}`, () => call.attempts.length === count)
  await attempts(1)
  call.attempt.answer({}, 503)
  await attempts(2)
  t.match(String(call.attempt.request.body), /AAAA/)
  t.equal(fetches, 1)
  call.abort()
})

t.test('they are fetched for Claude at Bedrock, which takes base64 alone, not for others', async (t) => {
  const asked = { upstream: 'messages', request: { messages: MESSAGES } } as const
  const other = new RunningCall({
    ...asked,
    fetchFiles: () => Promise.reject(new Error('not to be fetched')),
  })
  t.match(String(other.attempt.request.body), LINK)
  other.abort()
  const channelFields = { first: { provider: 'bedrock' } } as const
  const call = new RunningCall({
    ...asked,
    channels: ['first'],
    channelFields,
    fetchFiles: async () => FILES,
  })
  await until('the attempt', async () => call.attempts.length === 1)
  t.match(String(call.attempt.request.body), /"type":"base64","media_type":"image\/png","data":"AAAA"/)
  call.abort()
})

t.test('a client that leaves ends the fetch, and no upstream is called', async (t) => {
  const fetched = Promise.withResolvers<typeof FILES>()
  let signal: AbortSignal | null = null
  const call = new RunningCall({
    ...TRANSLATED,
    fetchFiles: (_urls, _deadlineMs, ended) => {
      signal = ended
      return fetched.promise
    },
  })
  t.match(signal, { aborted: false })
  call.abort()
  t.match(signal, { aborted: true })
  fetched.resolve(FILES)
  await fetched.promise
  t.equal(call.attempts.length, 0)
  t.equal(call.settlement.status, 'interrupted')
})

t.test('a client that leaves while a retry fetches them does not pay the attempt that failed', async (t) => {
  const call = new RunningCall({
    channels: ['first', 'second'],
    channelFields: { second: { protocol: 'generate-content' } },
    request: { messages: MESSAGES },
    fetchFiles: () => new Promise(() => {}),
  })
  call.attempt.answer({}, 503)
  t.equal(call.attempts.length, 1, 'the second waits for its file')
  call.abort()
  t.match(call.settlement, { status: 'interrupted', usage_source: 'none', attempts_count: 1 })
  t.equal(call.settlement.cost, '0')
})

t.test('a file that a retry cannot fetch leaves the failure before it', async (t) => {
  const call = new RunningCall({
    channels: ['first', 'second'],
    channelFields: { second: { protocol: 'generate-content' } },
    request: { messages: MESSAGES },
    fetchFiles: async () => Promise.reject(new Failure('invalid_request', 'It cannot be fetched.')),
  })
  call.attempt.answer({}, 503)
  await until('the answer', () => call.error !== null)
  t.match(call.error, { status: 503 })
  t.match(call.settlement, { status: 'error', error_code: 'upstream_error', attempts_count: 1 })
})
