import t from 'tap'
import { withHeaderUsage } from '../../../../pipelines/chat/forward/read-whole.ts'
import { withEventStreamFraming } from '../../../../src/protocols/aws/bedrock-stream.ts'
import { EventStreamReader } from '../../../../src/protocols/aws/event-stream.ts'
import { WholeResponse } from '../../../../src/protocols/chat-completions/whole.ts'
import { DIALECTS, protocolAdapter } from '../../../../src/protocols/registry.ts'
import { chunk, exception, message } from '../../../support/event-stream.ts'
import { translatedStream } from '../messages/streams.ts'

const CALL = DIALECTS.messages.read({
  path: '/v1/messages',
  query: '',
  body: Buffer.from('{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}'),
})
const newStream = () => withEventStreamFraming(protocolAdapter('messages', 'messages').openStream(CALL))
const DELTA = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Grüße' } }

t.test('a message without headers and payload has the published checksums', async (t) => {
  // From the format's own examples: 16 bytes, of which both checksums are known.
  const empty = Buffer.from('00000010000000000 5c248eb7d98c8ff'.replace(' ', ''), 'hex')
  t.same(new EventStreamReader().push(empty), [{ headers: {}, payload: Buffer.alloc(0) }])
  t.same(message({}, ''), empty)
})

t.test('messages in pieces of any length are the same', async (t) => {
  const all = Buffer.concat([message({ a: 'ä', b: '' }, 'one'), message({}, 'x'.repeat(3000)), chunk(DELTA)])
  const whole = new EventStreamReader().push(all)
  t.equal(whole.length, 3)
  t.same(whole[0], { headers: { a: 'ä', b: '' }, payload: Buffer.from('one') })
  for (const size of [1, 2, 3, 7, 64, 1000]) {
    const reader = new EventStreamReader()
    const read = []
    for (let at = 0; at < all.length; at += size) read.push(...reader.push(all.subarray(at, at + size)))
    t.same(read, whole, `${size}`)
  }
})

t.test('one wrong bit anywhere is found', async (t) => {
  const sound = message({ name: 'value' }, 'payload')
  for (let at = 0; at < sound.length; at++) {
    const damaged = Buffer.from(sound)
    damaged[at]! ^= 1
    t.throws(() => new EventStreamReader().push(damaged), { name: 'EventStreamError' }, `byte ${at}`)
  }
})

t.test('a damaged stream is an error of the answer, and nothing after it is read', async (t) => {
  const stream = newStream()
  t.match(String(stream.push(chunk(DELTA))), /^event: content_block_delta\ndata: .*Grüße.*\n\n$/)
  const damaged = chunk(DELTA)
  damaged[damaged.length - 1]! ^= 1
  t.match(String(stream.push(damaged)), /^event: error\n.*checksum/s)
  t.equal(stream.push(chunk(DELTA)), null)
  t.not(stream.laterError, null)
})

t.test('an exception is an error in the words of the protocol', async (t) => {
  const stream = newStream()
  stream.push(exception('throttlingException', 'Too many tokens'))
  t.match(String(stream.firstError), /"rate_limit_error".*Too many tokens/)
})

t.test('metrics of the platform are not shown', async (t) => {
  const stop = { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 8 } }
  t.equal(String(newStream().push(chunk(stop))), 'event: message_stop\ndata: {"type":"message_stop"}\n\n')
})

t.test('metrics of the platform are metered, native and translated', async (t) => {
  const METRICS = 'amazon-bedrock-invocationMetrics'
  const events = [
    { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1000, output_tokens: 1 } } },
    DELTA,
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_stop', [METRICS]: { inputTokenCount: 1000, outputTokenCount: 300 } },
  ]
  const all = Buffer.concat(events.map(chunk))
  const ways = { native: newStream, translated: () => withEventStreamFraming(translatedStream()) }
  for (const [way, open] of Object.entries(ways))
    for (const size of [1, 100, all.length]) {
      const stream = open()
      const out: string[] = []
      for (let at = 0; at < all.length; at += size)
        out.push(String(stream.push(all.subarray(at, at + size)) ?? ''))
      out.push(String(stream.end() ?? ''))
      t.match(stream, { usage: { prompt: 1000, output: 300 }, isUsageWhole: true, isComplete: true }, way)
      t.same(stream.reported, { inputTokenCount: 1000, outputTokenCount: 300 })
      t.notMatch(out.join(''), METRICS, way)
      const shown = events.map(({ [METRICS as 'type']: _, ...rest }) => rest as object)
      const text = shown.map(
        (event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`,
      )
      if (way === 'native') t.equal(out.join(''), text.join(''), `in pieces of ${size}`)
      else t.match(out.join(''), /"completion_tokens":300,/)
    }
})

t.test('headers report the usage where the body has none', async (t) => {
  const none = { usage: null, characters: 8, charactersSinceUsage: 8, isUsageWhole: false }
  const counts: Record<string, string> = {
    'x-amzn-bedrock-input-token-count': '20',
    'x-amzn-bedrock-output-token-count': '5',
    'x-amzn-bedrock-cache-read-input-token-count': '100',
    'x-amzn-bedrock-cache-write-input-token-count': '30',
  }
  t.match(withHeaderUsage(none, 'bedrock', { get: (name) => counts[name] }), {
    usage: { prompt: 150, cached: 100, cacheWrite: 30, output: 5 },
    isUsageWhole: true,
  })
  const whole = new WholeResponse(Buffer.from('{"model":"m-1","choices":[{"message":{"content":"four"}}]}'))
  t.match(
    withHeaderUsage(whole, 'bedrock', { get: (name) => counts[name] }),
    { characters: 4, charactersSinceUsage: 0, model: 'm-1' },
    'beside what is counted when it is read',
  )
  t.equal(withHeaderUsage(none, 'bedrock', { get: () => undefined }), none)
  t.equal(withHeaderUsage(none, 'bedrock', { get: () => '-1' }), none)
})
