/** Input items and tools of the responses protocol that are plainly as the contract, `responsesRequest`, wants them. */
import { FieldFinder, type NodeTest, Words } from '../../core/json/scanner/tape.ts'
import { isFullText, typeOf } from '../request/fast-path-items.ts'
import type { FastPathItems } from '../request/fast-path-lists.ts'

const ITEM = new FieldFinder(['type', 'role', 'content', 'output'])
const ROLES = new Words(['user', 'assistant', 'system', 'developer'])
const TOOL = new FieldFinder(['type', 'name', 'description', 'parameters'])
const FUNCTION = new Words(['function'])

/** Complete items of earlier turns. One of another type is parsed: it may name a stored object. */
const FULL_ITEMS = new Words([
  ...['function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'],
  ...['reasoning', 'web_search_call', 'local_shell_call', 'local_shell_call_output'],
])
/** Parts of another type may hold a link: they are read. */
const isPlainPart: NodeTest = (tape, node) => tape.isOneOf(PLAIN_PARTS, typeOf(tape, node))
const PLAIN_PARTS = new Words([
  ...['input_text', 'output_text', 'text', 'summary_text', 'reasoning_text', 'refusal'],
])

export const fastPathInput: FastPathItems = {
  placeholder: '{"role":"user","content":""}',
  matches(tape, node) {
    if (!tape.find(ITEM, node)) return false
    const type = tape.found(ITEM.place.type)
    const role = tape.found(ITEM.place.role)
    const content = tape.found(ITEM.place.content)
    const output = tape.found(ITEM.place.output)
    if (output !== 0 && !tape.isText(output) && !tape.isListOf(output, isPlainPart)) return false
    const hasContent = tape.isText(content) || tape.isListOf(content, isPlainPart)
    if (tape.isOneOf(ROLES, role)) return (type === 0 || tape.isText(type)) && hasContent
    return role === 0 && tape.isOneOf(FULL_ITEMS, type) && (hasContent || tape.isMissing(content))
  },
}

/** The client's own. One of another type is read: it may be built in. */
export const fastPathTools: FastPathItems = {
  placeholder: null,
  matches(tape, node) {
    if (!tape.find(TOOL, node)) return false
    const description = tape.found(TOOL.place.description)
    const parameters = tape.found(TOOL.place.parameters)
    return (
      tape.isOneOf(FUNCTION, tape.found(TOOL.place.type)) &&
      isFullText(tape, tape.found(TOOL.place.name)) &&
      (tape.isMissing(description) || tape.isText(description)) &&
      (tape.isMissing(parameters) || tape.isObject(parameters))
    )
  },
}
