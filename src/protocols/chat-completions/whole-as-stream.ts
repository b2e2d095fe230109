/** Prints a whole chat completion as the chunks of a stream, for an upstream that did not stream. */
import { Buffer } from 'node:buffer'
import { answerFields } from '../answer/content.ts'
import { fieldsOf, type LooseObject, listOf } from '../loose.ts'

const DONE = 'data: [DONE]\n\n'

/** Returns the message as one delta, in which calls of tools have their places. */
function deltaOf(message: LooseObject): LooseObject {
  const { tool_calls: calls, ...rest } = message
  if (!Array.isArray(calls)) return rest
  return { ...rest, tool_calls: calls.map((call, index) => ({ index, ...fieldsOf(call) })) }
}

/** @param wantsUsage the client asked for the chunk with usage */
export function completionAsStream(body: Buffer, wantsUsage: boolean): Buffer {
  const { choices, usage, ...head } = answerFields(body) ?? {}
  const chunk = (more: LooseObject): string =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...more })}\n\n`
  const noUsage = wantsUsage ? { usage: null } : {}
  const whole = listOf(choices).map(fieldsOf)
  const said = whole.map(({ message, finish_reason: _, ...choice }) => ({
    ...choice,
    delta: deltaOf(fieldsOf(message)),
    finish_reason: null,
  }))
  const finished = whole.map(({ index, finish_reason }) => ({ index, delta: {}, finish_reason }))
  const ofUsage = wantsUsage && usage != null ? chunk({ choices: [], usage }) : ''
  return Buffer.from(
    chunk({ choices: said, ...noUsage }) + chunk({ choices: finished, ...noUsage }) + ofUsage + DONE,
  )
}
