/** How the tests of answers of the messages protocol translate one, whole and streamed. */
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { chatCall, TO_MESSAGES, translatedStream } from './streams.ts'

type Event = { type: string } & Record<string, unknown>

interface Message {
  readonly content: readonly object[]
  readonly stop_reason?: string | null
  readonly usage?: object
}

export const USAGE = { input_tokens: 10, output_tokens: 4 }

export const whole = ({ content, stop_reason = 'end_turn', usage = USAGE }: Message) => {
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'opus-9',
    content,
    stop_reason,
    usage,
  }
  const answer = TO_MESSAGES.readWhole(chatCall(), Buffer.from(JSON.stringify(message)))
  return { ...answer, value: JSON.parse(answer.body.toString()) }
}

export const event = (data: { type: string }) =>
  Buffer.from(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)

/** The chunks that the client gets of these events; `[DONE]` as it is. */
export const chunks = (...events: readonly Event[]) => chunksOf(translatedStream(), events)

export function chunksOf(stream: AnswerStream, events: readonly Event[]) {
  const out = [...events.map((data) => stream.push(event(data))), stream.end()]
  const lines = out.flatMap((bytes) => (bytes === null ? [] : bytes.toString().split('\n\n').slice(0, -1)))
  return lines.map((line) => (line === 'data: [DONE]' ? '[DONE]' : JSON.parse(line.replace('data: ', ''))))
}

export const START = { type: 'message_start', message: { id: 'msg_1', model: 'opus-9', usage: USAGE } }
export const STOP = { type: 'message_stop' }
export const begin = (index: number, content_block: object) => ({
  type: 'content_block_start',
  index,
  content_block,
})
export const delta = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta })
export const stop = (index: number) => ({ type: 'content_block_stop', index })
export const ended = (stop_reason: string, usage: object = USAGE) => ({
  type: 'message_delta',
  delta: { stop_reason },
  usage,
})
export const deltas = (found: ReturnType<typeof chunks>) =>
  found.flatMap((chunk) => (chunk.choices?.[0] ? [chunk.choices[0].delta] : []))
