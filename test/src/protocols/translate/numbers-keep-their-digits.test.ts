/** A number passes through a translation, and into what two requests are compared by, with the digits it was written with. */
import t from 'tap'
import { canonicalBody } from '../../../../src/core/json/canonical.ts'
import { TO_GENERATE_CONTENT } from '../generate-content/streams.ts'
import { HI, OPTIONS } from '../messages/request.ts'
import { chatCall, TO_MESSAGES } from '../messages/streams.ts'

const ARGUMENTS = '{"id":12345678901234567890,"huge":1e400,"exact":1.0,"small":-0.10000000000000000001}'

t.test('arguments of a call in a request', async (t) => {
  const call = { id: 'call_1', type: 'function', function: { name: 'find', arguments: ARGUMENTS } }
  const messages = [
    HI,
    { role: 'assistant', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: ARGUMENTS },
  ]
  const body = chatCall({ messages })
  t.match(TO_MESSAGES.encodeRequest(body, OPTIONS).body.toString(), `"input":${ARGUMENTS}`)
  const wire = TO_GENERATE_CONTENT.encodeRequest(body, OPTIONS).body.toString()
  t.match(wire, `"args":${ARGUMENTS}`)
  t.match(wire, `"response":${ARGUMENTS}`)
})

t.test('arguments of a call in an answer', async (t) => {
  const input = '{"id":12345678901234567890,"huge":1e400}'
  const quoted = JSON.stringify(input)
  const message = `{"type":"message","id":"m","content":[{"type":"tool_use","id":"a","name":"find","input":${input}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`
  t.match(TO_MESSAGES.readWhole(chatCall(), Buffer.from(message)).body.toString(), `"arguments":${quoted}`)
  const candidate = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"find","args":${input}}}]},"finishReason":"STOP"}]}`
  t.match(
    TO_GENERATE_CONTENT.readWhole(chatCall(), Buffer.from(candidate)).body.toString(),
    `"arguments":${quoted}`,
  )
  const stream = TO_GENERATE_CONTENT.openStream(chatCall())
  t.match(String(stream.push(Buffer.from(`data: ${candidate}\n\n`))), `"arguments":${quoted}`)
})

t.test('an answer that nests too deep is none', async (t) => {
  const args = `${'{"a":'.repeat(3000)}1${'}'.repeat(3000)}`
  const candidate = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"find","args":${args}}}]},"finishReason":"STOP"}]}`
  t.equal(TO_GENERATE_CONTENT.readWhole(chatCall(), Buffer.from(candidate)).isAnswer, false)
  const message = `{"type":"message","content":[{"type":"tool_use","id":"a","name":"find","input":${args}}]}`
  t.equal(TO_MESSAGES.readWhole(chatCall(), Buffer.from(message)).isAnswer, false)
})

t.test('two bodies that differ in one digit are two', async (t) => {
  const canonical = (text: string) => String(canonicalBody(Buffer.from(text)))
  t.not(canonical('{"a":9007199254740993}'), canonical('{"a":9007199254740992}'))
  t.not(canonical('{"a":1e400}'), canonical('{"a":null}'))
  t.not(canonical('{"a":1e400}'), canonical('{"a":1e401}'))
  t.equal(canonical('{"a":9007199254740993.0, "b": [1.0]}'), canonical('{"b":[1],"a":9007199254740993}'))
})
