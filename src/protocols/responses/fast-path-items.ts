/** Input items and tools of the responses protocol that are plainly as the contract, `responsesRequest`, wants them. */
import { FieldFinder, foundIn, Words } from '../../core/json/scanner/tape.ts'
import { isFullText, isListOf, isMissing, isObjectAt, isText, typeOf } from '../request/fast-path-items.ts'
import type { FastPathItems } from '../request/fast-path-lists.ts'

const ITEM = new FieldFinder(['type', 'role', 'content', 'output', 'result'])
const ROLES = new Words(['user', 'assistant', 'system', 'developer'])
const TOOL = new FieldFinder(['type', 'name', 'description', 'parameters'])
const FUNCTION = new Words(['function'])

/** Items of earlier turns that say all that they stand for. One of another type is read: it may name what is stored. */
const FULL_ITEMS = new Words([
  ...['function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'],
  ...['reasoning', 'web_search_call', 'local_shell_call', 'local_shell_call_output'],
])
/** Parts of another type may hold a link: they are read. */
const isPlainPart = (node: number): boolean => PLAIN_PARTS.has(typeOf(node))
const PLAIN_PARTS = new Words([
  ...['input_text', 'output_text', 'text', 'summary_text', 'reasoning_text', 'refusal'],
])
const PICTURE = new Words(['image_generation_call'])

export const fastPathInput: FastPathItems = {
  placeholder: '{"role":"user","content":""}',
  matches(node) {
    if (!ITEM.find(node)) return false
    const type = foundIn(ITEM.place.type)
    const role = foundIn(ITEM.place.role)
    const content = foundIn(ITEM.place.content)
    const output = foundIn(ITEM.place.output)
    if (output !== 0 && !isText(output) && !isListOf(output, isPlainPart)) return false
    const hasContent = isText(content) || isListOf(content, isPlainPart)
    if (ROLES.has(role)) return (type === 0 || isText(type)) && hasContent
    const isFull = FULL_ITEMS.has(type) || (PICTURE.has(type) && isText(foundIn(ITEM.place.result)))
    return role === 0 && isFull && (hasContent || isMissing(content))
  },
}

/** The client's own. One of another type is read: it may be built in. */
export const fastPathTools: FastPathItems = {
  placeholder: null,
  matches(node) {
    if (!TOOL.find(node)) return false
    const description = foundIn(TOOL.place.description)
    const parameters = foundIn(TOOL.place.parameters)
    return (
      FUNCTION.has(foundIn(TOOL.place.type)) &&
      isFullText(foundIn(TOOL.place.name)) &&
      (isMissing(description) || isText(description)) &&
      (isMissing(parameters) || isObjectAt(parameters))
    )
  },
}
