/** How the tests of the adapter to the messages protocol encode a request. */
import type { Test } from 'tap'
import { Failure } from '../../../../schemas/failure.ts'
import type { ChatCall, EncodeOptions } from '../../../../src/protocols/dialect.ts'
import { encodeOptions } from '../encode-options.ts'
import { chatCall, TO_MESSAGES } from './streams.ts'

export const CEILING = 8192
export const OPTIONS = encodeOptions({ upstreamModel: 'opus-9', outputCeiling: CEILING })
export const HI = { role: 'user', content: 'Hi' }
export const PNG = 'iVBORw0KGgo='

/** `dropped` is all that is named, as the call log has it. */
export function sent(body: object, call: Partial<ChatCall> = {}, options: Partial<EncodeOptions> = {}) {
  const wire = TO_MESSAGES.encodeRequest(chatCall({ messages: [HI], ...body }, { stream: false, ...call }), {
    ...OPTIONS,
    ...options,
  })
  return { ...JSON.parse(wire.body.toString()), dropped: wire.notes }
}

export function refused(t: Test, body: object, message: RegExp): void {
  const found = t.throws(() => sent(body)) as unknown as Failure
  t.ok(found instanceof Failure)
  t.equal(found.code, 'invalid_request')
  t.match(found.message, message)
}

export const text = (text: string) => ({ type: 'text', text })
export const user = (...content: object[]) => ({ role: 'user', content })
export const assistant = (...content: object[]) => ({ role: 'assistant', content })
export const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})
export const use = (id: string, name: string, input: object = {}) => ({ type: 'tool_use', id, name, input })
export const result = (id: string, content: unknown) => ({ type: 'tool_result', tool_use_id: id, content })
export const tool = (id: string, content: unknown) => ({ role: 'tool', tool_call_id: id, content })
export const lookUp = { type: 'function', function: { name: 'look_up' } }
export const lookedUp = { name: 'look_up', input_schema: { type: 'object', properties: {} } }
