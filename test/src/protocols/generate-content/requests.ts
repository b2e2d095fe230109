/** How the request tests translate to generate-content, and words for what they send and expect. */
import type { Test } from 'tap'
import { Failure } from '../../../../schemas/failure.ts'
import type { ChatCall, EncodeOptions } from '../../../../src/protocols/dialect.ts'
import { encodeOptions } from '../encode-options.ts'
import { chatCall } from '../messages/streams.ts'
import { TO_GENERATE_CONTENT } from './streams.ts'

export const OPTIONS = encodeOptions({ upstreamModel: 'gemini-2.5-flash', outputCeiling: null })
export const REDUCED = { upstreamModel: 'gemini-2.0-flash' }
export const HI = { role: 'user', content: 'Hi' }
export const PNG = 'iVBORw0KGgo='

/** `dropped` is all that is named, as the call log has it. */
export function sent(body: object, options: Partial<EncodeOptions> = {}, call: Partial<ChatCall> = {}) {
  const wire = TO_GENERATE_CONTENT.encodeRequest(chatCall({ messages: [HI], ...body }, call), {
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

export const contentsOf = (...messages: object[]) => sent({ messages }).contents
export const configOf = (body: object, options: Partial<EncodeOptions> = {}) =>
  sent(body, options).generationConfig
export const text = (text: string) => ({ type: 'text', text })
export const user = (...parts: object[]) => ({ role: 'user', parts })
export const model = (...parts: object[]) => ({ role: 'model', parts })
export const call = (id: string, name: string, args = '{}', more: object = {}) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
  ...more,
})
export const assistant = (...tool_calls: object[]) => ({ role: 'assistant', content: null, tool_calls })
export const tool = (id: string, content: unknown) => ({ role: 'tool', tool_call_id: id, content })
export const functionCall = (name: string, args: object = {}) => ({ functionCall: { name, args } })
export const functionResponse = (name: string, response: object) => ({ functionResponse: { name, response } })
export const offer = (name: string, more: object = {}) => ({ type: 'function', function: { name, ...more } })
