import t from 'tap'
import { ChatCompletionsMeter } from '../../../../src/protocols/chat-completions/meter.ts'
import { RepeatedEvent } from '../../../../src/protocols/sse/repeated-event.ts'

const event = (text: string, more = '') =>
  Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${text}"}${more}}]}\n\n`)

const SAID_AT = event('').indexOf('""') + 1

function remembering(text: string): RepeatedEvent {
  const repeated = new RepeatedEvent()
  const bytes = event(text)
  repeated.remember(bytes, 0, bytes.length, SAID_AT, SAID_AT + Buffer.byteLength(text))
  return repeated
}

t.test('an event that differs in its text alone is known, its characters weighed by script', async (t) => {
  const repeated = remembering('hello')
  for (const [text, characters] of [
    ['', 0],
    ['x', 1],
    ['你好😀', 4 + 4 + 5.5],
    ['a much longer text', 18],
  ] as const) {
    const bytes = event(text)
    t.equal(repeated.charactersIn(bytes, 0, bytes.length), characters, text)
  }
})

t.test('an event that differs elsewhere, or has an escape or a quote in its text, is not', async (t) => {
  const repeated = remembering('hello')
  const others = [
    event('x', ',"finish_reason":"stop"'),
    event('tab\\t'),
    event('two\nlines'),
    event('x","usage":{"prompt_tokens":1},"content":"y'),
    Buffer.from('data: [DONE]\n\n'),
    Buffer.from('\n'),
  ]
  for (const bytes of others) t.equal(repeated.charactersIn(bytes, 0, bytes.length), -1, bytes.toString())
})

t.test('two remembered halves that overlap in a short event do not make one', async (t) => {
  const repeated = new RepeatedEvent()
  const bytes = Buffer.from('data: "aa"\n\n')
  repeated.remember(bytes, 0, bytes.length, 8, 8)
  const short = Buffer.from('data: "a"\n\n')
  t.equal(repeated.charactersIn(short, 0, short.length), -1)
})

t.test('a stream whose events differ elsewhere each time is metered all the same', async (t) => {
  const meter = new ChatCompletionsMeter({ withholdUsage: true })
  for (let i = 0; i < 40; i++) meter.push(event('four', `,"obfuscation":"${'x'.repeat(i)}"`))
  for (let i = 0; i < 40; i++) meter.push(event('four'))
  t.equal(meter.characters, 4 * 80)
})

t.test('a piece that is one event is passed on as it is, whatever came in the piece before', async (t) => {
  for (const withholdUsage of [true, false]) {
    const meter = new ChatCompletionsMeter({ withholdUsage })
    const sent: string[] = []
    const stream = Buffer.concat([event('one'), event('two'), event('three'), event('four'), event('five')])
    // Cut inside an event, at its end, before its last line end, and between events.
    const { length } = event('one')
    for (const [from, to] of [
      [0, length],
      [length, 2 * length - 1],
      [2 * length - 1, 2 * length],
      [2 * length, 3 * length],
      [3 * length, stream.length],
    ])
      sent.push(meter.push(stream.subarray(from, to))?.toString() ?? '')
    t.equal(sent.join('') + (meter.end()?.toString() ?? ''), stream.toString())
    t.equal(meter.characters, 'onetwothreefourfive'.length)
  }
})
