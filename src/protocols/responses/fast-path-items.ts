/** Input items and tools of the responses protocol that the contract accepts and of which nothing is read. */
import { responsesItem, responsesRequest } from '../../../schemas/chat/responses.ts'
import { type NodeTest, Words } from '../../core/json/scanner/tape.ts'
import { ObjectContract, readType } from '../request/contract-test.ts'
import type { FastPathItems } from '../request/fast-path-lists.ts'

const ITEM = new ObjectContract<'type' | 'role' | 'content' | 'output'>(responsesItem, ['output'])
const TOOL = new ObjectContract<'type'>(responsesRequest.shape.tools.unwrap().unwrap().element)
const FUNCTION = new Words(['function'])

/** Complete items of earlier turns. One of another type is parsed: it may name a stored object. */
const FULL_ITEMS = new Words([
  ...['function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'],
  ...['reasoning', 'web_search_call', 'local_shell_call', 'local_shell_call_output'],
])
/** Parts of another type may hold a link: they are read. */
const isPlainPart: NodeTest = (tape, node) => tape.isOneOf(PLAIN_PARTS, readType(tape, node))
const PLAIN_PARTS = new Words([
  ...['input_text', 'output_text', 'text', 'summary_text', 'reasoning_text', 'refusal'],
])

export const fastPathInput: FastPathItems = {
  placeholder: '{"role":"user","content":""}',
  matches(tape, node) {
    if (!ITEM.accepts(tape, node)) return false
    const { place } = ITEM
    const [type, role] = [tape.found(place.type), tape.found(place.role)]
    const [content, output] = [tape.found(place.content), tape.found(place.output)]
    if (output !== 0 && !tape.isText(output) && !tape.isListOf(output, isPlainPart)) return false
    if (tape.isList(content) && !tape.isListOf(content, isPlainPart)) return false
    return role === 0 ? tape.isOneOf(FULL_ITEMS, type) : !tape.isMissing(content)
  },
}

/** The client's own. One of another type is read: it may be built in. */
export const fastPathTools: FastPathItems = {
  placeholder: null,
  matches: (tape, node) => TOOL.accepts(tape, node) && tape.isOneOf(FUNCTION, tape.found(TOOL.place.type)),
}
