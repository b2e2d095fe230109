/** What every translation prints: parts as chunks, parts as one body. See docs/api-rules.md, "Streams". */
import t from 'tap'
import type { Part } from '../../../../schemas/chat/part.ts'
import { ChatCompletionCollector } from '../../../../src/protocols/chat-completions/collector.ts'
import { ChatCompletionsPrinter } from '../../../../src/protocols/chat-completions/printer.ts'
import { EventReader, MAX_EVENT_CHARS } from '../../../../src/protocols/sse/event-reader.ts'
import { type PartReader, TranslatedStream } from '../../../../src/protocols/translate/stream.ts'

const OPTIONS = { model: 'm', created: 1, includeUsage: false }
const USAGE = { prompt: 9, cached: 5, cacheWrite: 0, output: 4, reasoning: 3, serverToolCalls: 0 }
const start: Part = { type: 'start', id: 'gen-1', model: 'upstream' }
const text = (choice: number, text: string): Part => ({ type: 'text', choice, text })
const finish = (choice: number, reason: 'stop' | 'length'): Part => ({ type: 'finish', choice, reason })
const end: Part = { type: 'end' }

function printed(parts: readonly Part[], options: Partial<typeof OPTIONS> = {}): string {
  const printer = new ChatCompletionsPrinter({ ...OPTIONS, ...options })
  for (const part of parts) printer.print(part)
  return printer.take()?.toString() ?? ''
}

const values = (sse: string) =>
  sse
    .split('\n\n')
    .slice(0, -1)
    .map((line) => (line === 'data: [DONE]' ? '[DONE]' : JSON.parse(line.slice('data: '.length))))

function collected(parts: readonly Part[]) {
  const collector = new ChatCompletionCollector(OPTIONS)
  for (const part of parts) collector.add(part)
  return JSON.parse(collector.body().toString())
}

t.test('what one push brought leaves as one buffer, and only once', async (t) => {
  const printer = new ChatCompletionsPrinter(OPTIONS)
  t.equal(printer.take(), null)
  for (const part of [start, text(0, 'a'), text(0, 'b')]) printer.print(part)
  t.equal(values(String(printer.take())).length, 3)
  t.equal(printer.take(), null)
})

t.test('each choice has one role chunk and exactly one finish chunk', async (t) => {
  const parts = [
    start,
    text(0, 'a'),
    text(1, 'b'),
    finish(0, 'stop'),
    finish(0, 'stop'),
    text(2, 'c'),
    finish(1, 'length'),
    end,
  ]
  const chunks = values(printed(parts))
  t.equal(chunks.pop(), '[DONE]')
  for (const index of [0, 1, 2]) {
    const own = chunks.filter(({ choices }) => choices[0].index === index)
    t.equal(own.filter(({ choices }) => choices[0].delta.role === 'assistant').length, 1)
    t.equal(own[0].choices[0].delta.role, 'assistant', 'the role comes first')
    const reasons = own.map(({ choices }) => choices[0].finish_reason)
    t.same(reasons, [...reasons.slice(1).fill(null), index === 1 ? 'length' : 'stop'])
  }
  t.same(
    collected(parts).choices.map((choice: { message: { content: string }; finish_reason: string }) => [
      choice.message.content,
      choice.finish_reason,
    ]),
    [
      ['a', 'stop'],
      ['b', 'length'],
      ['c', 'stop'],
    ],
  )
})

t.test('the first chunk of a choice has the role alone: a text may never come', async (t) => {
  const call: Part = { type: 'tool_call', choice: 0, index: 0, id: 'c', name: 'f', signature: null }
  for (const parts of [[start, call], [call], [start, text(0, 'a')], [start, end]])
    t.strictSame(values(printed(parts))[0].choices[0].delta, { role: 'assistant' })
})

t.test('the usage of the last report, with its details', async (t) => {
  const details = {
    prompt_tokens: 9,
    completion_tokens: 4,
    total_tokens: 13,
    prompt_tokens_details: { cached_tokens: 5 },
    completion_tokens_details: { reasoning_tokens: 3 },
  }
  const reports: Part[] = [
    { type: 'usage', usage: { ...USAGE, output: 2 } },
    { type: 'usage', usage: USAGE },
  ]
  const chunks = values(printed([start, ...reports, end], { includeUsage: true }))
  t.strictSame(chunks.at(-2).usage, details)
  t.strictSame(chunks.at(-2).choices, [])
  t.strictSame(collected([start, ...reports, end]).usage, details)
})

t.test('the signature of the thought behind a call goes with the call', async (t) => {
  const call: Part = { type: 'tool_call', choice: 0, index: 0, id: 'c', name: 'f', signature: 'c2ln' }
  const args: Part = { type: 'tool_arguments', choice: 0, index: 0, json: '{}' }
  const extra_content = { google: { thought_signature: 'c2ln' } }
  const [, named] = values(printed([start, call, args, end]))
  t.strictSame(named.choices[0].delta.tool_calls[0].extra_content, extra_content)
  const { message, finish_reason } = collected([start, call, args, end]).choices[0]
  t.strictSame(message.tool_calls, [
    { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content },
  ])
  t.equal(finish_reason, 'tool_calls', 'also where the upstream gave no reason')
})

t.test('reasoning that was not signed before the model went on belongs to no later signature', async (t) => {
  const reasoning = (text: string): Part => ({ type: 'reasoning', choice: 0, text })
  const call: Part = { type: 'tool_call', choice: 0, index: 0, id: 'c', name: 'f', signature: null }
  const signature: Part = { type: 'signature', choice: 0, signature: 'c2ln' }
  for (const between of [call, text(0, 'x')]) {
    const parts = [start, reasoning('lost'), between, reasoning('kept'), signature, end]
    const blocks = [{ type: 'thinking', thinking: 'kept', signature: 'c2ln' }]
    t.strictSame(collected(parts).choices[0].message.thinking_blocks, blocks)
    t.strictSame(values(printed(parts)).at(-3).choices[0].delta, { thinking_blocks: blocks })
  }
})

t.test('after an error nothing is printed, whatever comes', async (t) => {
  const before = printed([start, text(0, 'a')])
  t.equal(
    printed([start, text(0, 'a'), { type: 'error', payload: '{}' }, text(0, 'b'), finish(0, 'stop'), end]),
    before,
  )
})

t.test('after the end nothing is printed', async (t) => {
  const before = printed([start, end])
  t.equal(printed([start, end, text(0, 'b'), end]), before)
})

t.test('an answer without an id gets one, the same in every chunk', async (t) => {
  for (const parts of [[text(0, 'a'), end], [{ ...start, id: '' }, text(0, 'a'), end], [end]]) {
    const chunks = values(printed(parts)).slice(0, -1)
    t.match(chunks[0].id, /^chatcmpl-[0-9A-Z]{26}$/)
    t.equal(new Set(chunks.map(({ id }) => id)).size, 1)
    t.match(collected(parts).id, /^chatcmpl-/)
  }
})

t.test('a text that would break a frame cannot', async (t) => {
  const hostile = '\n\ndata: [DONE]\n\n\r"}]}\u2028\ud83d\u0000'
  const chunks = values(printed([start, text(0, hostile), end]))
  t.equal(chunks[1].choices[0].delta.content, hostile)
  t.equal(collected([text(0, hostile)]).choices[0].message.content, hostile)
})

t.test('an event of any size below the limit is read whole; a longer one ends the answer', async (t) => {
  const found: number[] = []
  const reader = new EventReader((_name, data) => found.push(data.length))
  const piece = Buffer.alloc(1_048_576, 'x')
  const most = Math.floor(MAX_EVENT_CHARS / piece.length) - 1
  reader.push(Buffer.from('\ufeffdata: '))
  for (let i = 0; i < most; i++) reader.push(piece)
  reader.push(Buffer.from('\n\n'))
  t.same(found, [most * piece.length])

  const silent: PartReader = {
    isFinishing: false,
    read: () => undefined,
    report: null,
    usage: null,
    serviceTier: '',
  }
  const stream = new TranslatedStream(silent, new ChatCompletionsPrinter(OPTIONS))
  stream.push(Buffer.from('data: '))
  for (let i = 0; i < most + 3; i++) stream.push(piece)
  t.match(stream, { isComplete: false, firstError: Buffer })
  t.equal(stream.push(Buffer.from('\n\ndata: {}\n\n')), null)
})
