/**
 * Event streams that begin with a byte order mark, and lines that end with LF, CRLF or CR: read alike in every
 * protocol, passed as they came, wherever they are cut.
 */
import t from 'tap'
import { ChatCompletionsMeter } from '../../../../src/protocols/chat-completions/meter.ts'
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { GenerateContentMeter } from '../../../../src/protocols/generate-content/meter.ts'
import { MessagesMeter } from '../../../../src/protocols/messages/meter.ts'
import { ResponsesMeter } from '../../../../src/protocols/responses/meter.ts'
import { weighed } from '../chat-completions/reference.ts'
import { translatedStream as fromGenerateContent } from '../generate-content/streams.ts'
import { translatedStream as fromMessages, runInPieces } from '../messages/streams.ts'

const MARK = '\ufeff'
const STYLES = { LF: '\n', CRLF: '\r\n', CR: '\r' }

/** Events as lines, each of which ends an event where it is empty. */
const chat = [
  ': a comment',
  '',
  'event: chunk',
  'data: {"choices":[{"index":0,"delta":{"content":"Grüße"}}]}',
  '',
  'data: {"choices":[{"index":0,"delta":{"content":" an"}}]}',
  '',
  'data: {"choices":[{"index":0,"delta":{"content":" alle"}}]}',
  '',
  'data: {"choices":[{"index":0,"delta":{},',
  'data: "finish_reason":"stop"}]}',
  '',
]
const chatUsage = ['data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}', '']
const chatDone = ['data: [DONE]', '']
const messages = [
  'event: message_start',
  'data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":9}}}',
  '',
  'event: content_block_delta',
  'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße"}}',
  '',
  'event: content_block_delta',
  'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" an alle"}}',
  '',
  'event: message_delta',
  'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},',
  'data: "usage":{"output_tokens":4}}',
  '',
  'event: message_stop',
  'data: {"type":"message_stop"}',
  '',
]
const responses = [
  'event: response.output_text.delta',
  'data: {"type":"response.output_text.delta","delta":"Grüße"}',
  '',
  'event: response.output_text.delta',
  'data: {"type":"response.output_text.delta","delta":" an alle"}',
  '',
  'event: response.completed',
  'data: {"type":"response.completed",',
  'data: "response":{"usage":{"input_tokens":9,"output_tokens":4}}}',
  '',
]
const generateContent = [
  'id: 1',
  'data: {"candidates":[{"content":{"parts":[{"text":"Grüße"}]}}]}',
  '',
  'data: {"candidates":[{"content":{"parts":[{"text":" an alle"}]},"finishReason":"STOP"}],',
  'data: "usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4}}',
  '',
]

interface Way {
  readonly open: () => AnswerStream
  readonly lines: readonly string[]
  /** What the client gets of them; null where it gets chunks of ours. */
  readonly passed: readonly string[] | null
}
const WAYS: Readonly<Record<string, Way>> = {
  'chat-completions, usage withheld': {
    open: () => new ChatCompletionsMeter({ withholdUsage: true }),
    lines: [...chat, ...chatUsage, ...chatDone],
    passed: [...chat, ...chatDone],
  },
  'chat-completions, usage wanted': {
    open: () => new ChatCompletionsMeter({ withholdUsage: false }),
    lines: [...chat, ...chatUsage, ...chatDone],
    passed: [...chat, ...chatUsage, ...chatDone],
  },
  messages: { open: () => new MessagesMeter(), lines: messages, passed: messages },
  'messages, translated': { open: fromMessages, lines: messages, passed: null },
  responses: { open: () => new ResponsesMeter(), lines: responses, passed: responses },
  'generate-content': {
    open: () => new GenerateContentMeter('sse'),
    lines: generateContent,
    passed: generateContent,
  },
  'generate-content, translated': { open: fromGenerateContent, lines: generateContent, passed: null },
}

const textOf = (lines: readonly string[], end: string) => lines.map((line) => line + end).join('')
/** Ids and times of our own chunks differ from answer to answer. */
const withoutIds = (output: Buffer) => output.toString().replaceAll(/"id":"[^"]*"/g, '')

for (const [name, { open, lines, passed }] of Object.entries(WAYS))
  t.test(name, async (t) => {
    const plain = withoutIds(runInPieces(open(), Buffer.from(textOf(lines, '\n')), []).output)
    for (const [style, end] of Object.entries(STYLES))
      for (const mark of ['', MARK]) {
        const stream = Buffer.from(mark + textOf(lines, end))
        const expected = passed === null ? plain : mark + textOf(passed, end)
        const everyByte = Array.from({ length: stream.length - 1 }, (_, at) => at + 1)
        for (const cuts of [[], everyByte, ...everyByte.map((at) => [at])]) {
          const { output, said } = runInPieces(open(), stream, cuts)
          const { usage, characters, isUsageWhole, isComplete } = said
          const found = [usage?.prompt, usage?.output, characters, isUsageWhole, isComplete].join()
          const got = passed === null ? withoutIds(output) : output.toString()
          if (found === `9,4,${weighed('Grüße an alle')},true,true` && got === expected) continue
          t.equal(
            found,
            `9,4,${weighed('Grüße an alle')},true,true`,
            `${style}, mark '${mark}', cut at ${cuts}`,
          )
          t.equal(got, expected, `${style}, mark '${mark}', cut at ${cuts}`)
          return
        }
        t.pass(`${style}, ${mark === '' ? 'without' : 'with'} a mark`)
      }
  })
