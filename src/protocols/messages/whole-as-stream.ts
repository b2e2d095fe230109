/** Prints a whole message as the events of a stream, for an upstream that did not stream. */
import { Buffer } from 'node:buffer'
import { answerFields } from '../answer/content.ts'
import { type LooseObject, toFields, toList } from '../loose.ts'

const event = (type: string, fields: LooseObject = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

/** Beginning of a block, and the deltas that complete it. */
interface StreamedBlock {
  readonly begun: LooseObject
  readonly deltas: readonly LooseObject[]
}

function streamBlock(block: LooseObject): StreamedBlock {
  const { type, text, citations, thinking, signature, input } = block
  switch (type) {
    case 'text': {
      const cited = toList(citations).map((citation) => ({ type: 'citations_delta', citation }))
      const begun = { ...block, text: '', ...(Array.isArray(citations) && { citations: [] }) }
      return { begun, deltas: [{ type: 'text_delta', text }, ...cited] }
    }
    case 'thinking':
      return {
        begun: { ...block, thinking: '', signature: '' },
        deltas: [
          { type: 'thinking_delta', thinking },
          { type: 'signature_delta', signature },
        ],
      }
    case 'tool_use':
    case 'server_tool_use':
    case 'mcp_tool_use':
      return {
        begun: { ...block, input: {} },
        deltas: [{ type: 'input_json_delta', partial_json: JSON.stringify(input ?? {}) }],
      }
    default:
      return { begun: block, deltas: [] }
  }
}

function eventsOfBlock(block: LooseObject, index: number): string {
  const { begun, deltas } = streamBlock(block)
  return (
    event('content_block_start', { index, content_block: begun }) +
    deltas.map((delta) => event('content_block_delta', { index, delta })).join('') +
    event('content_block_stop', { index })
  )
}

export function messageAsStream(body: Buffer): Buffer {
  const message = answerFields(body) ?? {}
  const { content, usage, stop_reason, stop_sequence = null, stop_details } = message
  const begun = { ...message, content: [], stop_reason: null, stop_sequence: null }
  const delta = { stop_reason, stop_sequence, ...(stop_details !== undefined && { stop_details }) }
  return Buffer.from(
    event('message_start', { message: begun }) +
      toList(content)
        .map((block, index) => eventsOfBlock(toFields(block), index))
        .join('') +
      event('message_delta', { delta, usage }) +
      event('message_stop'),
  )
}
