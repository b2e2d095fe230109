/** How the tests of answers of the generate-content protocol translate one, whole and streamed. */

import { chatCall } from '../messages/streams.ts'
import { TO_GENERATE_CONTENT, translatedStream } from './streams.ts'

export type Fields = Readonly<Record<string, unknown>>

export const USAGE = { promptTokenCount: 10, candidatesTokenCount: 4, totalTokenCount: 14 }
export const FOOT = { modelVersion: 'gemini-test-1', responseId: 'resp-1' }
export const USAGE_OUT = {
  prompt_tokens: 10,
  completion_tokens: 4,
  total_tokens: 14,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
}

export const said = (parts: readonly Fields[], more: Fields = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
})
export const ended = (finishReason: string, parts: readonly Fields[] = []) => said(parts, { finishReason })

export function whole(answer: Fields) {
  const found = TO_GENERATE_CONTENT.readWhole(
    chatCall(),
    Buffer.from(JSON.stringify({ usageMetadata: USAGE, ...FOOT, ...answer })),
  )
  return { ...found, value: JSON.parse(found.body.toString()) }
}

export const message = (answer: Fields) => whole(answer).value.choices[0].message
export const finish = (answer: Fields) => whole(answer).value.choices[0].finish_reason

/** The chunks that the client gets of these; `[DONE]` as it is. */
export function chunks(...events: readonly Fields[]) {
  const stream = translatedStream()
  const sent = events.map((event) =>
    stream.push(Buffer.from(`data: ${JSON.stringify({ ...FOOT, ...event })}\r\n\r\n`)),
  )
  const lines = [...sent, stream.end()].flatMap((bytes) =>
    bytes === null ? [] : bytes.toString().split('\n\n').slice(0, -1),
  )
  return lines.map((line) => (line === 'data: [DONE]' ? '[DONE]' : JSON.parse(line.replace('data: ', ''))))
}

export const deltas = (...events: readonly Fields[]) =>
  chunks(...events)
    .filter((chunk) => chunk.choices?.length > 0)
    .map((chunk) => chunk.choices[0].delta)
    .slice(1, -1)
export const finishes = (...events: readonly Fields[]) =>
  chunks(...events).flatMap((chunk) => (chunk.choices ?? []).flatMap((c: Fields) => c.finish_reason ?? []))
